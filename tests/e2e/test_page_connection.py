"""The page between the user and a server that is busy, far away, locked or gone."""
import hashlib
import http.client
import json
import re

from conftest import ROOT
from lossy import Lossy
from pages import SHOTS, STATE, browser, number, open_page, stop
from realtime import Client


def test_a_conversation_outlives_its_connection(server, open_page):
    """Two seconds without a network: the same session goes on, and each second of sound arrives once."""
    with Lossy(server) as network:
        page = open_page(network, "audio")
        page.click("#start")
        page.until("+document.getElementById('answered').textContent >= 2")
        assert page.text("#server") == "connected"
        network.cut()
        page.until(f"{STATE} === 'reconnecting' && document.getElementById('state').textContent === 'Reconnecting…'", 10)
        assert page.evaluate("document.getElementById('server').dataset.ready") == "false" and page.text("#server") == "connection lost"
        page.screenshot(SHOTS / "reconnecting.png")
        page.until("+document.getElementById('sent').textContent - +document.getElementById('answered').textContent >= 2", 10)
        network.mend()
        page.until(f"{STATE} === 'listening' || {STATE} === 'speaking'", 20)
        assert page.evaluate("document.getElementById('server').dataset.ready") == "true" and page.text("#server") == "connected"
        page.until("+document.getElementById('sent').textContent - +document.getElementById('answered').textContent <= 1")
        sent = number(page, "sent")
        page.until(f"+document.getElementById('answered').textContent >= {sent + 1}")
        assert page.text("#dropped") == "0" and not page.text("#notice-words")
        assert page.text("#entries").count("the conversation begins") == 1
        claims = [url for url in page.asked if "resume_token=" in url]
        assert claims and len({re.search("session_id=([^&]*)", url)[1] for url in claims}) == 1
        stop(page)
        assert sum(event["type"] == "session.init" and event["payload"]["resume"] for event in page.sent) == 1
        page.until("document.getElementById('server').textContent === 'ready'", 20)
        page.evaluate("1")
        assert all("WebSocket connection to" in fault for fault in page.faults), "the browser notes each attempt that failed"
        page.faults.clear()


def test_a_connection_that_stays_away_is_told(start_server, open_page):
    with Lossy(start_server("--set", "limits.resume_seconds=2")) as network:
        page = open_page(network, "audio")
        page.click("#start")
        page.until("+document.getElementById('answered').textContent >= 1")
        network.cut()
        page.until(f"{STATE} === 'reconnecting'", 10)
        page.until(f"{STATE} === 'idle' && document.getElementById('notice-words').textContent === 'The connection was lost.'", 20)
        page.evaluate("1")
        page.faults.clear()


def test_attempts_get_rarer_and_are_not_everybodys(server, open_page):
    page = open_page(server, "chat")
    least, most = page.evaluate("import('./connection.js').then(({ retryDelay }) => [0, 1].map((chance) => [0, 1, 2, 9].map((n) => retryDelay(n, chance))))")
    assert least == [100, 200, 400, 2000] and most == [200, 400, 800, 4000]


def test_an_answer_in_writing_outlives_its_connection(server, open_page):
    with Lossy(server) as network:
        page = open_page(network, "chat")
        page.click("#prompt")
        page.type("Tell me something long")
        page.press("Enter", 13)
        page.until("document.querySelector('#entries .model')?.textContent")
        network.cut()
        page.until("document.getElementById('server').textContent === 'connection lost'", 10)
        network.mend()
        page.until("document.getElementById('server').textContent === 'connected'", 20)
        page.until(f"{STATE} === 'idle'")
        assert page.evaluate("document.querySelectorAll('#entries .model').length") == 1 and not page.text("#notice-words")
        page.evaluate("1")
        assert all("WebSocket connection to" in fault for fault in page.faults)
        page.faults.clear()


def test_the_line(start_server, open_page):
    server = start_server("--set", "worker.max_sessions=1")
    with Client(server) as holder:
        holder.init()
        page = open_page(server, "audio")
        page.click("#start")
        page.until(f"{STATE} === 'queued' && !document.getElementById('queue').hidden")
        assert page.text("#queue").startswith("You are next")
        page.screenshot(SHOTS / "queued.png")
        holder.say_goodbye()
    page.until(f"{STATE} === 'listening'")
    stop(page)


def test_a_key_opens_the_door(start_server, open_page, tmp_path):
    keys = tmp_path / "keys.txt"
    keys.write_text(f"ann {hashlib.sha256(b'open-sesame').hexdigest()}\n")
    server = start_server("--set", f"auth.keys_file={keys}")
    page = open_page(server, "audio")
    page.evaluate("window.opened = 0; navigator.mediaDevices.getUserMedia = ((real) => (wanted) => (opened++, real(wanted)))(navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices))")
    page.click("#start")
    page.until("document.getElementById('notice-words').textContent === 'This server asks for an API key: enter yours in the settings, then start again.'")
    page.until(f"{STATE} === 'idle'")
    assert page.evaluate("opened") == 0 and not any(url.startswith("ws") for url in page.asked), "it is told before the microphone is opened"
    page.click("#notice-action")
    assert page.evaluate("document.activeElement.id") == "key"
    page.type("open-barley")
    page.click("#settings .primary")
    page.click("#start")
    page.until("document.getElementById('notice-words').textContent.startsWith('The server does not know this API key')")
    page.until(f"{STATE} === 'idle'")
    page.evaluate("1")
    assert len(page.faults) == 2 and all("401" in fault or "WebSocket connection to" in fault for fault in page.faults), "the browser itself notes the refusals"
    page.faults.clear()
    page.press("s", 83)
    page.evaluate("document.getElementById('key').value = ''")
    page.click("#key")
    page.type("open-sesame")
    page.click("#settings .primary")
    page.click("#start")
    page.until(f"{STATE} === 'listening'")
    assert not any("open-sesame" in url for url in page.asked)
    stop(page)
    page.evaluate("sessionStorage.clear()")


def test_over_tls(start_server, open_page, tmp_path):
    server = start_server("--tls", "auto", "--set", f"tls.cert={tmp_path / 'tls.pem'}", "--set", f"tls.key={tmp_path / 'tls.key'}")
    page = open_page(server, "audio")
    page.click("#start")
    page.until("+document.getElementById('answered').textContent >= 1")
    assert any(url.startswith("wss://") for url in page.asked)
    stop(page)


def test_what_goes_wrong_is_told_in_words(start_server, open_page):
    server = start_server("--set", "worker.max_sessions=1", "--set", "queue.capacity=0")
    with Client(server) as holder:
        holder.init()
        page = open_page(server, "audio")
        page.click("#start")
        page.until("!document.getElementById('notice').hidden")
        assert page.text("#notice-words").startswith("Somebody else is talking with the model")
        page.until(f"{STATE} === 'idle'")
        page.screenshot(SHOTS / "refused.png")


def test_the_end_of_the_time_is_told_in_words(start_server, open_page):
    server = start_server("--set", "limits.audio_seconds=4")
    page = open_page(server, "audio")
    page.click("#start")
    page.until(f"{STATE} === 'listening'")
    page.until("document.getElementById('notice-words').textContent.includes('the time limit')")
    page.until(f"{STATE} === 'idle'")
    page.until("document.getElementById('notice-words').textContent.startsWith('The time for this conversation is over')")


def test_every_error_code_has_words(server, open_page):
    schema = json.loads((ROOT / "tests/data/protocol.schema.json").read_text())
    codes = find_enum(schema, "queue_full")
    page = open_page(server, "chat")
    words = page.evaluate(f"import('./errors.js').then(({{wordsForError}}) => {json.dumps(codes)}.map((code) => wordsForError({{code}})))")
    assert len(codes) >= 10 and len(set(words)) == len(codes) and "Something went wrong." not in words


def find_enum(node, member: str):
    """The first list in a JSON document that holds `member`."""
    if isinstance(node, list) and member in node:
        return node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        if found := find_enum(child, member):
            return found
    return None


def test_a_server_that_is_gone_or_has_another_name_is_told_before_the_microphone_is_opened(start_server, open_page):
    server = start_server()
    page = open_page(server, "audio")
    page.until("document.getElementById('server').textContent === 'ready'", 10)
    page.evaluate("navigator.mediaDevices.getUserMedia = () => { throw new Error('too early') }")
    notice = "document.getElementById('notice-words').textContent"
    for name, said in (("evil.example", "This server does not go by the name"), ("localhost", "")):
        allowed = json.loads(said_under(server, name))["name_allowed"]
        assert allowed == (name == "localhost")
        page.evaluate(f"window.fetch = ((real) => async (...asked) => {{ const facts = await (await real(...asked)).json(); return Response.json({{ ...facts, name_allowed: {json.dumps(allowed)} }}); }})(window.fetch)")
        if said:
            page.click("#start")
            page.until(f"{notice}.startsWith('{said}') && {STATE} === 'idle'", 10)
    page.evaluate("window.fetch = async () => { throw new TypeError('Failed to fetch') }")
    page.click("#start")
    page.until(f"{notice} === `Nobody answers at ${{location.host}}: start the server, or check your network, then start again.`", 10)
    page.evaluate("document.getElementById('language').click()")
    page.click("#start")
    page.until(f"{notice} === `${{location.host}} 没有响应：请启动服务器或检查网络，然后重新开始。` && {STATE} === 'idle'", 10)
    page.evaluate("localStorage.clear()")


def said_under(server, name: str) -> str:
    """What GET /ready answers who came by that name."""
    connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
    connection.request("GET", "/ready", headers={"Host": name})
    return connection.getresponse().read().decode()


def test_no_words_of_the_browser_or_the_server_are_in_the_chinese_page(server, open_page):
    """Whatever a device fails with, and whatever keeps the server from taking a conversation."""
    page = open_page(server, "audio")
    page.evaluate("localStorage.setItem('parley.language', 'zh')")
    names = ["NotAllowedError", "NotFoundError", "NotReadableError", "OverconstrainedError", "AbortError", "SecurityError", "TypeError", "insecure"]
    reasons = re.findall(r'"([a-z][a-z ]{8,})"', (ROOT / "actors/queue/worker_table.cpp").read_text().split("unready_words{", 1)[1].split("}", 1)[0])
    assert len(reasons) == 5
    page.reload()
    page.until("document.documentElement?.lang === 'zh-CN' && document.readyState === 'complete'", 10)
    said = page.evaluate(
        f"""Promise.all([import('./errors.js'), import('./server.js')]).then(([{{ wordsForDevice, wordsForError }}, {{ wordsForReason }}]) => [
            ...{json.dumps(names)}.map((name) => wordsForDevice(new DOMException('Something in English', name)).replace(name, '')),
            ...{json.dumps(reasons)}.map(wordsForReason),
            wordsForError({{ code: 'service_unavailable', message: {json.dumps(reasons[0])} }})])"""
    )
    known = r"https|localhost|ssh|tls|auto|-L|server\\.names|API|IP"
    assert [text for text in said if re.search("[A-Za-z]{2}", re.sub(known, "", text))] == []
    page.evaluate("localStorage.clear()")


def test_a_running_session_asks_nothing_besides(server, open_page):
    """Its own connection tells how the server is: while that is lost, no other request fails, too."""
    page = open_page(server, "audio")
    page.call("Page.addScriptToEvaluateOnNewDocument", source="window.setInterval = ((real) => (run, ms) => real(run, Math.min(ms, 200)))(window.setInterval)")
    page.reload()
    page.until("document.readyState === 'complete' && document.getElementById('server')?.textContent === 'ready'", 10)
    page.click("#start")
    page.until("+document.getElementById('answered').textContent >= 1")
    page.evaluate("window.asked = 0; window.fetch = ((real) => (...what) => (asked++, real(...what)))(window.fetch)")
    more = number(page, "answered") + 2
    page.until(f"+document.getElementById('answered').textContent >= {more}")
    assert page.evaluate("asked") == 0
    stop(page)
    page.until("asked >= 2", 10)
