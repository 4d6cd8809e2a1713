"""The page where things go differently: devices that are late, refused or unplugged, a server that is slow or was lost, tabs that are closed."""
import json
import struct
import zlib

import pytest

from pages import STATE, browser, choose, more_answers, open_page, stop
from realtime import Client, http
from test_recording import wait_for

DEVICES = """window.streams = []; window.held = false; window.waiting = [];
const real = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
navigator.mediaDevices.getUserMedia = async (wanted) => {
    const stream = await real(wanted);
    streams.push(stream);
    if (held) await new Promise((go) => waiting.push(go));
    return stream;
}"""
SOCKETS = """window.sockets = [];
window.WebSocket = class {
    static OPEN = 1;
    readyState = 0;
    bufferedAmount = 0;
    texts = [];
    constructor() { sockets.push(this); }
    send(text) { this.texts.push(JSON.parse(text)); }
    close() { this.readyState = 3; }
    open() { this.readyState = 1; this.onopen?.(); }
    tell(event) { this.onmessage?.({ data: JSON.stringify(event) }); }
}"""


def kinds(page, socket: int = 0) -> list[str]:
    return page.evaluate(f"sockets[{socket}].texts.map((event) => event.type)")


def test_who_stops_before_the_connection_is_there_sends_nothing(server, open_page):
    page = open_page(server, "audio")
    page.evaluate(SOCKETS)
    page.click("#start")
    page.until("sockets.length === 1")
    page.click("#start")
    page.until(f"{STATE} === 'idle'", 2)
    page.evaluate("sockets[0].open(), sockets[0].tell({ type: 'session.queue_done' })")
    assert kinds(page) == [] and page.evaluate(STATE) == "idle"


def test_an_answer_after_the_stop_changes_nothing(server, open_page):
    page = open_page(server, "audio")
    page.evaluate(SOCKETS)
    page.click("#start")
    page.until("sockets.length === 1")
    page.evaluate("sockets[0].open(), sockets[0].tell({ type: 'session.queue_done' }), sockets[0].tell({ type: 'session.created', session_id: 'a' })")
    page.until(f"{STATE} === 'listening'")
    page.click("#start")
    assert page.evaluate(STATE) == "closing" and kinds(page)[-1] == "session.close"
    page.evaluate("sockets[0].tell({ type: 'response.output.delta', kind: 'text', text: 'Hello', response_id: 'b' })")
    assert page.evaluate(STATE) == "closing" and not page.text("#entries").endswith("Hello")
    page.evaluate("sockets[0].onclose({ code: 1000 })")
    page.until(f"{STATE} === 'idle'")


def test_what_a_lost_server_had_answered_is_sent_again(server, open_page):
    """A process that died may have lost more than the page: its successor counts on from what it knows."""
    page = open_page(server, "chat")
    page.evaluate(SOCKETS)
    sent = page.evaluate(
        """import('./connection.js').then(({ Connection }) => {
            const on = new Proxy({}, { get: () => () => {} });
            const connection = new Connection('audio', '', on);
            const created = { type: 'session.created', session_id: 'a', resume_token: 't', resume_seconds: 30, event_id: 1 };
            const append = (value) => connection.append(new Float32Array([value]), [], false);
            const answer = (socket, input) => socket.tell({ type: 'response.output.delta', kind: 'listen', input_id: `input_${input}` });
            sockets[0].open(), sockets[0].tell(created);
            for (let i = 1; i <= 5; i++) append(i), answer(sockets[0], i);
            sockets[0].onclose({ code: 1006 });
            return new Promise((done) => {
                const look = () => {
                    if (sockets.length < 2) return setTimeout(look, 20);
                    sockets[1].open(), sockets[1].tell({ type: 'session.resumed', resume_token: 'u', inputs: 3 });
                    done([sockets[1].texts.map((event) => event.input.audio), sockets[0].texts.slice(3).map((event) => event.input.audio), append(6)]);
                };
                look();
            });
        })"""
    )
    assert len(sent[0]) == 2 and sent[0] == sent[1] and sent[2] == "input_6"


def test_a_camera_that_is_flipped_at_the_end_goes_off(server, open_page):
    page = open_page(server, "video")
    page.evaluate(DEVICES)
    page.click("#start")
    page.until("+document.getElementById('answered').textContent >= 1")
    page.evaluate("window.held = true")
    page.press("f", 70)
    page.until("waiting.length === 1")
    page.press(" ", 32)
    page.until(f"{STATE} === 'idle'")
    page.evaluate("waiting[0]()")
    page.until("streams.flatMap((stream) => stream.getTracks()).every((track) => track.readyState === 'ended')", 5)
    assert page.evaluate("document.getElementById('preview').hidden")


@pytest.mark.parametrize("mode", ["audio", "video"])
def test_without_devices_the_reason_stays(server, open_page, mode):
    page = open_page(server, mode)
    page.evaluate("Object.defineProperty(navigator, 'mediaDevices', { value: undefined })")
    for _ in range(2):
        page.click("#start")
        page.until("document.getElementById('notice-words').textContent.startsWith('Browsers give the microphone only')", 3)
        assert page.evaluate(STATE) == "idle"


def test_muted_before_the_microphone_is_open(server, open_page):
    page = open_page(server, "audio")
    page.evaluate(DEVICES)
    page.evaluate("window.held = true")
    page.click("#start")
    page.until("waiting.length === 1")
    page.press("m", 77)
    page.evaluate("waiting[0]()")
    page.until(f"{STATE} === 'listening'")
    assert not page.evaluate("streams[0].getAudioTracks()[0].enabled")
    stop(page)


def test_a_microphone_that_is_unplugged_ends_the_conversation(server, open_page):
    page = open_page(server, "audio")
    page.evaluate(DEVICES)
    page.click("#start")
    page.until(f"{STATE} === 'listening' || {STATE} === 'speaking'")
    page.evaluate("streams[0].getAudioTracks()[0].dispatchEvent(new Event('ended'))")
    page.until(f"{STATE} === 'idle' && document.getElementById('notice-words').textContent.startsWith('The microphone is gone')")


def test_a_camera_that_is_unplugged_leaves_the_conversation(server, open_page):
    page = open_page(server, "video")
    page.evaluate(DEVICES)
    page.click("#start")
    page.until("+document.getElementById('answered').textContent >= 1")
    page.evaluate("streams[0].getVideoTracks()[0].dispatchEvent(new Event('ended'))")
    page.until("document.getElementById('preview').hidden && document.getElementById('notice-words').textContent.startsWith('The camera is gone')")
    more_answers(page, 2)
    stop(page)


def test_clearing_the_transcript_leaves_the_conversation(server, open_page):
    page = open_page(server, "audio")
    page.click("#start")
    page.until(f"{STATE} === 'listening' || {STATE} === 'speaking'")
    page.evaluate(f"window.states = []; new MutationObserver(() => states.push({STATE})).observe(document.body, {{ attributeFilter: ['data-state'] }})")
    page.click("#clear")
    page.evaluate("document.getElementById('speaker').click()")
    more_answers(page, 1)
    assert "idle" not in page.evaluate("states")
    page.evaluate("document.getElementById('speaker').click()")
    stop(page)


def test_who_closes_the_tab_leaves_the_slot(start_server, open_page):
    server = start_server()
    page = open_page(server, "audio")
    page.click("#start")
    page.until("+document.getElementById('answered').textContent >= 1")
    page.go("about:blank")
    wait_for(lambda: not http(server, "/sessions")[1]["sessions"])


def test_who_waits_in_line_to_write_can_leave(start_server, open_page):
    server = start_server("--set", "worker.max_sessions=1")
    with Client(server) as holder:
        holder.init()
        page = open_page(server, "chat")
        page.click("#prompt")
        page.type("Hello")
        page.press("Enter", 13)
        page.until(f"{STATE} === 'queued'")
        assert page.evaluate("getComputedStyle(document.getElementById('send')).display") == "none"
        page.click("#cancel")
        page.until(f"{STATE} === 'idle'")
        wait_for(lambda: http(server, "/status")[1]["queue_length"] == 0)


def test_keys_of_an_input_method_are_its_own(server, open_page):
    page = open_page(server, "chat")
    page.click("#prompt")
    page.type("你好")
    page.evaluate("document.getElementById('prompt').dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', keyCode: 229, bubbles: true }))")
    assert page.evaluate(f"document.getElementById('prompt').value === '你好' && {STATE} === 'idle'")


def test_a_replay_survives_what_a_client_sent(server, open_page):
    page = open_page(server, "chat")
    odd = [None, 7, {"input": {"messages": {}}}, {"input": {"messages": [None]}}, {"input": {"messages": [{"content": [None, 5, {"text": 6}]}]}}, {"x": {"wav": "a", "at": 0, "samples": 1e15}}, {"y": {"file": "../sessions", "bytes": 1}}]
    events = [{"t": 1000 * t, "from": "client", "event": event} for t, event in enumerate(odd)]
    laid = page.evaluate(f"import('./replay_timeline.js').then(({{ layOut }}) => layOut({json.dumps(events)}, {{ 'input.wav': 16000, 'output.wav': 0 }}))")
    assert laid["seconds"] == 6 and laid["input"] == laid["lines"] == laid["pictures"] == []


def test_a_browser_that_keeps_nothing(server, open_page):
    page = open_page(server, "chat")
    page.call("Page.addScriptToEvaluateOnNewDocument", source="for (const area of ['localStorage', 'sessionStorage']) Object.defineProperty(window, area, { get() { throw new DOMException('blocked', 'SecurityError'); } });")
    page.reload()
    page.until("document.getElementById('start')?.textContent === 'Start talking'", 10)
    choose(page, "audio")
    page.evaluate("document.getElementById('theme').click()")
    assert page.evaluate("document.body.dataset.mode") == "audio"


def test_a_long_thin_picture_may_be_sent(server, open_page, tmp_path):
    page = open_page(server, "chat")
    thin = tmp_path / "thin.png"
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    thin.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 5000, 8, 0, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(b"\0\x7f" * 5000)) + chunk(b"IEND", b""))
    page.give_file("#picture", thin)
    page.until("document.querySelectorAll('#pictures li').length === 1")
