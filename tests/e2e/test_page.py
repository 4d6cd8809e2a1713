"""The page at `/` in a real Chromium against the real server, with a microphone and a camera that are fed from files."""
import hashlib
import json
import re

import numpy as np
import pytest

from chromium import Browser, write_camera
from conftest import BINARY, ROOT
from lossy import Lossy
from realtime import SPOKEN, Client, floats, http, speech
from test_recording import wait_for

SHOTS = BINARY.parent / "screenshots"
STATE = "document.body.dataset.state"
SPEAKS = (ROOT / "models/tiny-omni/assets").is_dir()


def number(page, name: str) -> float:
    return float(page.text(f"#{name}").split()[0])


def choose(page, mode: str):
    page.evaluate(f"document.querySelector('[name=mode][value={mode}]').click()")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chromium")
    SHOTS.mkdir(exist_ok=True)
    write_camera(folder / "camera.y4m")
    started = Browser(folder / "profile", SPOKEN, folder / "camera.y4m", folder / "log")
    yield started
    started.close()


@pytest.fixture
def open_page(browser):
    """A factory of tabs; at the test's end none of them may have met an error or asked another host for anything."""
    pages = []

    def start(server, mode: str, **screen):
        page = browser.open(server.http, **screen)
        pages.append((page, server))
        choose(page, mode)
        return page

    yield start
    for page, server in pages:
        page.evaluate("1")  # takes in what the browser still had to tell
        strangers = [url for url in page.asked if not re.match(rf"(https?|wss?)://{re.escape(server.host)}:{server.port}/|about:|blob:", url)]
        faults = page.faults
        page.close()
        assert not strangers and not faults


def test_a_conversation_by_voice(server, open_page):
    page = open_page(server, "audio")
    page.screenshot(SHOTS / "audio-idle.png")
    page.click("#start")
    page.until(f"{STATE} === 'listening'")
    page.until("document.querySelector('#entries .model')?.textContent")
    page.until("+document.getElementById('answered').textContent >= 6")
    page.screenshot(SHOTS / "audio.png")
    assert page.text("#caption").strip() and not page.text("#notice-words")
    assert "of 8,192 tokens" in page.text("#memory-now") and "ms" in page.text("#latency-now")

    page.press("m", 77)
    assert page.evaluate("document.getElementById('mute').getAttribute('aria-pressed')") == "true"
    page.press(" ", 32)
    page.until(f"{STATE} === 'idle'")
    units = [floats(event["input"]["audio"]) for event in page.sent if event["type"] == "input.append"]
    assert len(units) >= 6 and all(len(unit) == 16000 for unit in units)
    assert max(abs(unit).max() for unit in units) > 0.05, "the microphone was heard"
    assert [event["type"] for event in page.sent][0] == "session.init" and page.sent[-1] == {"type": "session.close", "reason": "user_stop"}


@pytest.mark.skipif(not SPEAKS, reason="the embedded model has no voice")
def test_the_answer_is_heard(server, open_page):
    page = open_page(server, "audio")
    page.click("#start")
    page.until("parseFloat(document.getElementById('played').textContent) >= 0.5")
    page.press(" ", 32)
    page.until(f"{STATE} === 'idle'")


def test_a_recorded_conversation_is_replayed(start_server, open_page, tmp_path):
    server = start_server("--set", f"record.dir={tmp_path}", "--set", "engine.seed=7")
    page = open_page(server, "video")
    page.click("#start")
    page.until("+document.getElementById('answered').textContent >= 5 && document.querySelector('#entries .model')?.textContent")
    assert "records this conversation" in page.text("#entries")
    page.click("#start")
    page.until(f"{STATE} === 'idle'")
    wait_for(lambda: [session for session in http(server, "/sessions")[1]["sessions"] if session["state"] == "closed"])
    page.call("Page.navigate", url=page.evaluate("document.querySelector('footer a[href=\"replay.html\"]').href"))
    page.until("document.querySelector('#recordings button')")
    page.click("#recordings button")
    page.until("!document.getElementById('player').hidden && document.querySelectorAll('#lines li').length >= 2")
    assert "Parley: " in page.text("#lines") and "the conversation ends: stopped" in page.text("#lines")
    spoken = page.evaluate("document.querySelector('#lines div').textContent.replace('Parley: ', '')")
    page.until("document.querySelector('#recordings button span').textContent.length > 3")
    assert spoken.startswith(page.text("#recordings button span").removesuffix("…")) and page.text("#recordings small").endswith("stopped")
    page.click("#play")
    page.until(f"{STATE} === 'playing' && +document.getElementById('position').value >= 2 && document.querySelector('#lines li.said')")
    page.until("document.getElementById('picture').naturalWidth === 320")
    page.screenshot(SHOTS / "replay.png")
    page.press(" ", 32)
    page.until(f"{STATE} === 'idle'")


def test_a_replay_plays_what_was_heard(server, open_page):
    """Two seconds of speech that were cut after half a second, a turn that played out, and a picture."""
    page = open_page(server, "chat")
    sound = lambda at, samples: {"wav": "output.wav", "at": at, "samples": samples}
    delta = lambda t, **fields: {"t": t, "from": "server", "event": {"type": "response.output.delta", **fields}}
    append = lambda t, at, **fields: {"t": t, "from": "client", "event": {"type": "input.append", "input": {"audio": {"wav": "input.wav", "at": at, "samples": 16000}, **fields}}}
    events = [
        append(1000, 0, video_frames=[{"file": "frames/000000.jpg", "bytes": 9}]),
        append(2010, 16000),
        delta(2500, kind="text", text="one ", response_id="a"),
        delta(2500, kind="audio", audio=sound(0, 24000), response_id="a"),
        delta(2600, kind="audio", audio=sound(24000, 24000), response_id="a"),
        delta(2700, kind="text", text="two", response_id="a"),
        delta(3000, kind="listen"),
        append(3000, 32000),
        delta(4000, kind="audio", audio=sound(48000, 24000), response_id="b", end_of_turn=True),
        delta(4100, kind="listen"),
        {"t": 4200, "from": "server", "event": {"type": "session.closed", "reason": "user_stop"}},
    ]
    laid = page.evaluate(f"import('./replay_timeline.js').then(({{ layOut }}) => layOut({json.dumps(events)}))")
    assert [(p["at"], p["samples"]) for p in laid["output"]] == [(0, 12000), (48000, 24000)], "cut at 3 s, half a second after it began; the next turn plays out"
    assert [p["start"] for p in laid["output"]] == [2.5, 4.0] and laid["seconds"] == 5.0
    assert [p["start"] for p in laid["input"]] == pytest.approx([0, 1.01, 2.01])
    assert [(line["who"], line["text"]) for line in laid["lines"]] == [("model", "one two"), ("end", "user_stop")]
    assert laid["pictures"] == [{"start": 1, "file": "frames/000000.jpg"}]


def test_an_interruption(server, open_page):
    page = open_page(server, "audio")
    page.click("#start")
    page.until(f"{STATE} === 'speaking'")
    page.press("Escape", 27)
    page.until(f"{STATE} === 'listening'")
    page.until("[...document.querySelectorAll('#entries .event')].some((e) => e.textContent.startsWith('interrupted'))")
    answered = number(page, "answered")
    page.until(f"+document.getElementById('answered').textContent >= {answered + 2}")
    page.screenshot(SHOTS / "audio-interrupted.png")
    page.click("#start")
    page.until(f"{STATE} === 'idle'")
    appends = [event["input"] for event in page.sent if event["type"] == "input.append"]
    at = next(n for n, append in enumerate(appends) if append.get("force_listen"))
    sizes = [len(floats(append["audio"])) for append in appends]
    assert sizes[at] + sizes[at + 1] == 16000 and set(sizes[at + 2 :]) <= {16000}, "the seconds stay on their grid"


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
        page.click("#start")
        page.until(f"{STATE} === 'idle'")
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
    page.click("#start")
    page.until(f"{STATE} === 'idle'")


def test_video_sends_a_picture_a_second(server, open_page):
    page = open_page(server, "video")
    page.click("#start")
    page.until("+document.getElementById('answered').textContent >= 4")
    page.screenshot(SHOTS / "video.png")
    assert page.evaluate("document.getElementById('preview').videoWidth") == 320
    page.click("#start")
    page.until(f"{STATE} === 'idle'")
    appends = [event["input"] for event in page.sent if event["type"] == "input.append"]
    pictured = sum("video_frames" in append for append in appends)
    assert pictured >= len(appends) - 1, "a camera may need its first second to start"
    assert all(frame.startswith("/9j/") for append in appends for frame in append.get("video_frames", [])), "JPEG begins so in base64"


def test_chat(server, open_page):
    page = open_page(server, "chat")
    for turn, words in enumerate(("What is your name?", "And who am I?"), 1):
        page.click("#prompt")
        page.type(words)
        page.press("Enter", 13)
        page.until(f"document.querySelectorAll('#entries .model').length === {turn}")
        page.until(f"{STATE} === 'idle'")
    page.screenshot(SHOTS / "chat.png")
    turns = [event["input"]["messages"] for event in page.sent if event["type"] == "input.append"]
    assert [message["role"] for message in turns[1]] == ["user", "assistant", "user"]
    assert turns[1][1]["content"].strip() == page.text("#entries .model p").strip(), "what was streamed is what is remembered"


def test_a_transcript_is_saved(server, open_page, tmp_path):
    page = open_page(server, "chat")
    page.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path), eventsEnabled=True)
    page.click("#prompt")
    page.type("Remember me")
    page.press("Enter", 13)
    page.until(f"document.querySelector('#entries .model') && {STATE} === 'idle'")
    page.evaluate("document.getElementById('save').click()")
    page.until_event("Browser.downloadProgress", state="completed")
    text = next(tmp_path.glob("parley-*.txt")).read_text()
    assert "You: Remember me" in text and "Parley: " in text


def test_prompt_and_voice_are_the_users_choice(server, open_page, tmp_path):
    page = open_page(server, "audio")
    page.press("s", 83)
    page.click("#system-prompt")
    page.type("You are a parrot.")
    noise = tmp_path / "noise.wav"
    noise.write_bytes(b"no sound at all")
    page.give_file("#voice", noise)
    page.until("document.getElementById('voice-state').textContent.startsWith('This file holds no sound')")
    page.give_file("#voice", SPOKEN)
    page.until("document.getElementById('voice-state').textContent.startsWith('3.7 sec of voice')")
    page.screenshot(SHOTS / "settings.png")
    page.click("#settings .primary")
    page.click("#start")
    page.until(f"{STATE} === 'listening'")
    page.click("#start")
    page.until(f"{STATE} === 'idle'")
    payload = page.sent[0]["payload"]
    assert payload["system_prompt"] == "You are a parrot."
    voice = floats(payload["voice"]["ref_audio_base64"])
    assert np.abs(voice - speech()).max() < 1e-3, "the same sound at the same rate"
    page.evaluate("localStorage.clear()")


def test_pictures_go_with_a_message(server, open_page):
    page = open_page(server, "chat")
    page.give_file("#picture", ROOT / "web/icon.png")
    page.until("document.querySelector('#pictures img')?.complete")
    page.click("#prompt")
    page.type("What is that?")
    page.screenshot(SHOTS / "chat-picture.png")
    page.press("Enter", 13)
    page.until(f"document.querySelector('#entries .user') && {STATE} === 'idle'")
    picture, words = next(event["input"]["messages"][0]["content"] for event in page.sent if event["type"] == "input.append")
    assert picture["type"] == "image" and picture["data"].startswith("/9j/") and words == {"type": "text", "text": "What is that?"}


def test_a_file_that_is_no_picture_is_named(server, open_page, tmp_path):
    page = open_page(server, "chat")
    notes = tmp_path / "notes.txt"
    notes.write_text("no picture")
    page.give_file("#picture", notes)
    page.until("document.getElementById('notice-words').textContent.includes('notes.txt')", 10)
    assert not page.evaluate("document.querySelector('#pictures img')")


def test_muted_is_said_and_shown(server, open_page):
    page = open_page(server, "audio")
    page.click("#start")
    page.until(f"{STATE} === 'listening'")
    page.press("m", 77)
    page.until("document.getElementById('state').textContent === 'Muted' && document.getElementById('orb').dataset.look === 'deaf'", 20)
    page.screenshot(SHOTS / "muted.png")
    page.press("m", 77)
    page.until("document.getElementById('state').textContent !== 'Muted' && document.getElementById('orb').dataset.look !== 'deaf'", 20)
    page.click("#start")
    page.until(f"{STATE} === 'idle'")


def test_who_is_recorded_sees_it_beside_start(server, start_server, open_page, tmp_path):
    page = open_page(start_server("--set", f"record.dir={tmp_path}"), "audio")
    page.click("#start")
    page.until(f"{STATE} === 'listening'")
    page.click("#start")
    page.until(f"{STATE} === 'idle'")
    page.call("Page.reload")
    page.until("document.readyState === 'complete' && document.body?.dataset.mode === 'audio' && document.getElementById('recorded')?.hidden === false", 10)
    page.screenshot(SHOTS / "recorded.png")
    page = open_page(server, "audio")
    assert page.evaluate("document.getElementById('recorded').hidden")


def test_what_answers_and_what_to_ask(start_server, open_page):
    page = open_page(start_server("--model", str(ROOT / "models/nano")), "audio")
    page.until("document.getElementById('knows').textContent === 'nano: knows names, sums, days, capitals, shapes.'", 10)
    assert page.evaluate("document.querySelectorAll('#examples button').length") == 3
    page.screenshot(SHOTS / "nano.png")
    page.click("#examples button")
    page.until(f"document.querySelector('#entries .model') && {STATE} === 'idle'")
    assert page.text("#entries .user p") == "What is the capital of France?" and "Paris" in page.text("#entries .model p")
    assert page.text("#model") == "with nano" and not page.evaluate("document.getElementById('hello').checkVisibility()")


def test_figures_wait_behind_details(server, open_page):
    page = open_page(server, "audio")
    assert not page.evaluate("document.getElementById('latency').checkVisibility()")
    page.click("#details summary")
    page.until("document.getElementById('latency').checkVisibility() && document.getElementById('latency').width > 50", 10)
    assert page.evaluate("document.querySelector('.figures dd').innerText").split() == ["0", "s"]
    choose(page, "chat")
    assert page.evaluate("document.querySelector('.figures dd').innerText").split() == ["0", "messages"]


def test_interrupting_is_a_word_while_the_model_speaks(server, open_page):
    page = open_page(server, "audio")
    shown = "getComputedStyle(document.getElementById('interrupt')).visibility === 'visible'"
    assert not page.evaluate(shown) and page.text("#interrupt") == "Interrupt"
    page.click("#start")
    page.until(f"{STATE} === 'speaking' && {shown}")
    page.evaluate("document.getElementById('interrupt').click()")
    page.until("document.querySelector('#caption.broken') && getComputedStyle(document.getElementById('caption')).opacity < 1", 10)
    page.until(f"{STATE} !== 'listening' || !({shown})")
    page.evaluate("document.querySelector('[name=mode][value=chat]').parentElement.click()")
    page.until("document.getElementById('notice-words').textContent.startsWith('Stop this conversation first')", 5)
    assert "Stop this conversation first" in page.evaluate("document.querySelector('[name=mode][value=chat]').parentElement.title")
    before = page.evaluate("document.getElementById('stage').getBoundingClientRect().top")
    page.click("#notice-close")
    assert page.evaluate("document.getElementById('stage').getBoundingClientRect().top") == before, "a notice moves nothing"
    page.click("#start")
    page.until(f"{STATE} === 'idle'")


def test_answers_are_silent_when_the_speaker_is_off(server, open_page):
    page = open_page(server, "chat")
    page.click("#speaker")
    assert page.evaluate("document.getElementById('speaker').getAttribute('aria-pressed')") == "false" and not page.evaluate("document.getElementById('aloud').checked")
    page.click("#prompt")
    page.type("Hello")
    page.press("Enter", 13)
    page.until(f"document.querySelector('#entries .model') && {STATE} === 'idle'")
    assert not any("tts" in event["input"] for event in page.sent if event["type"] == "input.append")
    page.click("#speaker")
    assert page.evaluate("document.getElementById('aloud').checked")


def test_sent_pictures_stay_in_sight(start_server, open_page, tmp_path):
    server = start_server("--set", f"record.dir={tmp_path}")
    page = open_page(server, "chat")
    page.give_file("#picture", ROOT / "web/icon.png")
    page.until("document.querySelector('#pictures img')?.complete")
    page.click("#prompt")
    page.type("What is that?")
    page.press("Enter", 13)
    page.until("document.querySelector('#entries .user .thumbs img')?.naturalWidth > 0", 10)
    page.until(f"document.querySelector('#entries .model') && {STATE} === 'idle'")
    assert page.evaluate("getComputedStyle(document.querySelector('#entries time')).opacity") == "0"
    page.evaluate("document.querySelector('#entries li').focus()")
    page.until("getComputedStyle(document.querySelector('#entries time')).opacity === '1'", 5)
    choose(page, "audio")  # which ends the session
    wait_for(lambda: [session for session in http(server, "/sessions")[1]["sessions"] if session["state"] == "closed"])
    page.call("Page.navigate", url=page.evaluate("document.querySelector('footer a[href=\"replay.html\"]').href"))
    page.until("document.querySelector('#recordings button span')?.textContent === 'What is that?'", 10)
    page.click("#recordings button")
    page.until("document.querySelector('#lines .thumbs img')?.naturalWidth > 0", 10)


def test_the_page_speaks_chinese(server, open_page):
    """Asked for by the browser, or by the switch; then nothing of the page is left in English."""
    page = open_page(server, "audio")
    assert page.evaluate("document.documentElement.lang") == "en"
    page.call("Emulation.setUserAgentOverride", userAgent=page.evaluate("navigator.userAgent"), acceptLanguage="zh-CN,zh;q=0.9")
    page.call("Page.reload")
    page.until("document.documentElement?.lang === 'zh-CN' && document.body && document.getElementById('server')?.textContent === '就绪'", 10)
    assert page.text("#start") == "开始对话" and page.text("#language") == "English"
    latin = page.evaluate(
        """[...document.querySelectorAll('body *')].flatMap((element) => [
            ...[...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data),
            ...['title', 'placeholder', 'ariaLabel', 'alt'].map((name) => element[name] ?? '')].map((text) => [element, text]))
        .filter(([element, text]) => /[A-Za-z]{2}/.test(text.replace(/Parley|API|https|localhost|tiny-omni|Esc/g, '')) && !element.closest('code, kbd, #language'))
        .map(([, text]) => text)"""
    )
    assert latin == []
    page.screenshot(SHOTS / "chinese.png")
    page.click("#language")
    page.until("document.documentElement.lang === 'en' && document.getElementById('start').textContent === 'Start talking'", 5)
    page.until("document.getElementById('server').textContent === 'ready'", 10)
    page.evaluate("localStorage.clear()")


CONTROLS = {"button", "textbox", "checkbox", "radio", "link", "slider", "DisclosureTriangle", "img", "image"}


def unnamed(page) -> list[str]:
    """What a screen reader would have no name for."""
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    shown = [node for node in nodes if not node["ignored"] and node["role"]["value"] in CONTROLS]
    assert len(shown) >= 5
    return [json.dumps(node) for node in shown if not node.get("name", {}).get("value", "").strip()]


def test_every_control_has_a_name(server, open_page):
    page = open_page(server, "audio")
    page.click("#details summary")
    assert unnamed(page) == []
    choose(page, "chat")
    page.click("#open-settings")
    assert unnamed(page) == []
    page.press("Escape", 27)
    page.until("!document.getElementById('settings').open", 5)
    assert unnamed(page) == []


def test_keyboard_alone(server, open_page):
    """Tab reaches everything that a mouse does; a conversation is begun, muted, interrupted and ended without one."""
    page = open_page(server, "audio")
    page.evaluate("document.activeElement.blur()")
    met = []
    for _ in range(30):
        page.press("Tab", 9)
        met.append(page.evaluate("document.activeElement.id || document.activeElement.name || document.activeElement.tagName"))
        if "start" in met and "SUMMARY" in met:
            break
    assert {"mode", "language", "theme", "open-settings", "start", "clear", "save", "SUMMARY"} <= set(met), met
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid", "where one is can be seen"
    page.evaluate("document.activeElement.blur()")
    page.press(" ", 32)
    page.until(f"{STATE} === 'speaking'")
    page.press("Escape", 27)
    page.until("document.querySelector('#caption.broken')", 10)
    page.press("m", 77)
    page.until("document.body.dataset.muted === 'true'", 5)
    page.press(" ", 32)
    page.until(f"{STATE} === 'idle'")


def test_a_key_opens_the_door(start_server, open_page, tmp_path):
    keys = tmp_path / "keys.txt"
    keys.write_text(f"ann {hashlib.sha256(b'open-sesame').hexdigest()}\n")
    server = start_server("--set", f"auth.keys_file={keys}")
    page = open_page(server, "audio")
    page.click("#start")
    page.until("document.getElementById('notice-words').textContent.includes('API key')")
    page.until(f"{STATE} === 'idle'")
    page.evaluate("1")
    assert len(page.faults) == 1 and "WebSocket connection to" in page.faults[0], "the browser itself notes the refusal"
    page.faults.clear()
    page.press("s", 83)
    page.click("#key")
    page.type("open-sesame")
    page.click("#settings .primary")
    page.click("#start")
    page.until(f"{STATE} === 'listening'")
    assert not any("open-sesame" in url for url in page.asked)
    page.click("#start")
    page.until(f"{STATE} === 'idle'")
    page.evaluate("sessionStorage.clear()")


def test_over_tls(start_server, open_page, tmp_path):
    server = start_server("--tls", "auto", "--set", f"tls.cert={tmp_path / 'tls.pem'}", "--set", f"tls.key={tmp_path / 'tls.key'}")
    page = open_page(server, "audio")
    page.click("#start")
    page.until("+document.getElementById('answered').textContent >= 1")
    assert any(url.startswith("wss://") for url in page.asked)
    page.click("#start")
    page.until(f"{STATE} === 'idle'")


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


@pytest.mark.parametrize("rate", [16000, 44100, 48000])
def test_the_resampler(server, open_page, rate):
    """A tone that 16 kHz can hold comes through as it was, one that it cannot is gone, and no second gets longer."""
    page = open_page(server, "chat")
    code = """import('./resampler.js').then(({ Resampler }) => [1000, 10000].map((tone) => {
        const resampler = new Resampler(RATE, 16000), out = [];
        for (let start = 0; start < 2 * RATE; start += 128)
            out.push(...resampler.process(Float32Array.from({ length: 128 }, (_, i) => Math.sin(2 * Math.PI * tone * (start + i) / RATE))));
        const settled = out.slice(2000, 18000);
        const error = Math.max(...settled.map((sample, i) => Math.abs(sample - Math.sin(2 * Math.PI * tone * (2000 + i) / 16000))));
        return { length: out.length, error, peak: Math.max(...settled.map(Math.abs)) };
    }))""".replace("RATE", str(rate))
    kept, gone = page.evaluate(code)
    assert abs(kept["length"] - 32000) < 100 and kept["error"] < 2e-3
    if rate > 20000:
        assert gone["peak"] < 2e-3


def test_playback_plays_out_or_stops_at_once(server, open_page):
    page = open_page(server, "chat")
    played, drained = page.evaluate(
        """import('./playback.js').then(({ Playback }) => new Promise((done) => {
            const playback = new Playback(() => done([playback.secondsPlayed, playback.secondsAhead]));
            for (let i = 0; i < 4; i++) playback.push(new Float32Array(6000).fill(0.1));
        }))"""
    )
    assert abs(played - 1) < 1e-6 and drained == 0
    busy, after, drains = page.evaluate(
        """import('./playback.js').then(({ Playback }) => {
            let drains = 0;
            const playback = new Playback(() => drains++);
            playback.push(new Float32Array(240000));
            const busy = playback.busy;
            playback.cut();
            return [busy, playback.busy || playback.secondsAhead > 0, drains];
        })"""
    )
    assert busy and not after and drains == 0


def test_a_phone_in_daylight(server, open_page):
    page = open_page(server, "audio", width=390, height=844, mobile=True, dark=False)
    page.click("#start")
    page.until("+document.getElementById('answered').textContent >= 4")
    page.evaluate("window.scrollTo(0, 0)")
    page.screenshot(SHOTS / "phone.png")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.click("#start")
    page.until(f"{STATE} === 'idle'")
    page.click("#open-settings")
    page.screenshot(SHOTS / "phone-settings.png")
    assert page.evaluate("document.getElementById('settings').open")


@pytest.mark.parametrize("height", [844, 667, 480, 320])
def test_who_writes_on_a_phone_sees_the_field(server, open_page, height):
    page = open_page(server, "chat", width=390, height=height, mobile=True, dark=False)
    for selector in ("#prompt", "#send"):
        assert page.evaluate(f"(() => {{ const box = document.querySelector('{selector}').getBoundingClientRect(); return box.top > 0 && box.bottom <= innerHeight }})()"), selector
    assert page.evaluate("document.getElementById('hello').clientHeight") >= 32, "and something of what is said"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_preview_shows_what_is_sent(server, open_page):
    """The picture has 4 parts to 3; nothing of it may be cut off on a phone's upright screen."""
    page = open_page(server, "video", width=390, height=844, mobile=True)
    page.click("#start")
    page.until("+document.getElementById('answered').textContent >= 1")
    assert page.evaluate("getComputedStyle(document.getElementById('preview')).objectFit") == "contain"
    page.screenshot(SHOTS / "phone-video.png")
    page.click("#start")
    page.until(f"{STATE} === 'idle'")


def test_a_replay_on_a_phone_is_above_the_list(start_server, open_page, tmp_path):
    server = start_server("--set", f"record.dir={tmp_path}")
    for _ in range(12):
        with Client(server) as client:
            client.init()
            client.say_goodbye()
    wait_for(lambda: len([session for session in http(server, "/sessions")[1]["sessions"] if session["state"] == "closed"]) == 12)
    page = open_page(server, "chat", width=390, height=844, mobile=True)
    page.call("Page.navigate", url=page.evaluate("document.querySelector('footer a[href=\"replay.html\"]').href"))
    page.until("document.querySelectorAll('#recordings button').length === 12")
    page.evaluate("document.querySelector('#recordings li:last-child button').click()")
    page.until("!document.getElementById('player').hidden")
    page.until("(() => { const box = document.getElementById('play').getBoundingClientRect(); return box.top > 0 && box.bottom < innerHeight })()", 5)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.screenshot(SHOTS / "phone-replay.png")
