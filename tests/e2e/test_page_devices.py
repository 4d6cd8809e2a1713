"""Which microphone, loudspeaker and camera, and what of them goes out: before a conversation and while it runs."""
import base64
import json

from conftest import ROOT
from pages import SHOTS, STATE, browser, more_answers, number, open_page, stop
from realtime import floats

STREAMS = """window.streams = []; window.wishes = [];
const real = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
navigator.mediaDevices.getUserMedia = async (wanted) => {
    wishes.push(wanted);
    const stream = await real(wanted);
    streams.push(stream);
    return stream;
}"""
SCREEN = """navigator.mediaDevices.getDisplayMedia = async () => {
    const canvas = Object.assign(document.createElement('canvas'), { width: 1600, height: 900 });
    const pen = canvas.getContext('2d');
    setInterval(() => { pen.fillStyle = '#0a0'; pen.fillRect(0, 0, 1600, 900); }, 50);
    return (window.shared = canvas.captureStream(10));
}"""


def appends(page) -> list[dict]:
    return [event["input"] for event in page.sent if event["type"] == "input.append"]


def loud(append: dict) -> bool:
    return bool(abs(floats(append["audio"])).max() > 1e-3)


def select(page, field: str, index: int) -> str:
    """Chooses as a user does, and returns the id."""
    return page.evaluate(
        f"(() => {{ const field = document.getElementById('{field}'); field.selectedIndex = {index}; field.dispatchEvent(new Event('change')); return field.value }})()"
    )


def test_devices_are_tried_and_chosen_before_the_start(server, open_page):
    page = open_page(server, "video")
    page.evaluate(STREAMS)
    page.press("s", 83)
    page.evaluate("document.getElementById('try').click()")
    page.until("document.getElementById('trial').videoWidth === 320 && document.getElementById('level').value > 0.2", 20)
    page.until("document.getElementById('microphone').options.length > 2 && document.getElementById('camera').options.length > 1", 10)
    assert page.evaluate("document.getElementById('microphone').options[1].text").startswith("Fake")
    page.screenshot(SHOTS / "devices.png")
    microphone, speaker, camera = select(page, "microphone", 2), select(page, "loudspeaker", 1), select(page, "camera", 1)
    assert microphone and speaker and camera
    page.until("wishes.length >= 2 && wishes.at(-1).audio.deviceId?.ideal", 10)
    page.evaluate("document.getElementById('settings').close()")
    page.until("streams.flatMap((stream) => stream.getTracks()).every((track) => track.readyState === 'ended')", 10)
    assert page.evaluate("document.getElementById('trial').hidden && document.getElementById('level').value === 0")
    page.reload()
    page.until("document.readyState === 'complete' && document.body?.dataset.mode === 'video'", 10)
    page.press("s", 83)
    page.until(f"document.getElementById('microphone').value === '{microphone}' && document.getElementById('camera').value === '{camera}'", 10)
    page.evaluate("document.getElementById('settings').close()")
    page.evaluate(STREAMS)
    page.click("#start")
    page.until(f"{STATE} === 'listening' || {STATE} === 'speaking'")
    wish = page.evaluate("wishes[0]")
    assert wish["audio"]["deviceId"] == {"ideal": microphone} and wish["video"]["deviceId"] == {"ideal": camera}
    stop(page)
    page.evaluate("localStorage.clear()")


def test_another_microphone_during_a_conversation(server, open_page):
    page = open_page(server, "audio")
    page.evaluate(STREAMS)
    page.click("#start")
    page.until("+document.getElementById('answered').textContent >= 2")
    page.press("s", 83)
    page.until("document.getElementById('microphone').options.length > 2 && document.getElementById('level').value > 0.2", 10)
    select(page, "microphone", 2)
    page.evaluate("document.getElementById('settings').close()")
    page.until("streams.length === 2 && streams[0].getAudioTracks().length === 1 && streams[0].getAudioTracks()[0] === streams[1].getAudioTracks()[0]", 10)
    more_answers(page, 3)
    page.press("m", 77)
    assert not page.evaluate("streams[1].getAudioTracks()[0].enabled"), "the new one is muted, too"
    stop(page)
    page.until("streams[1].getAudioTracks().every((track) => track.readyState === 'ended')", 5)
    assert page.text("#entries").count("the conversation begins") == 1 and page.text("#dropped") == "0" and loud(appends(page)[-2])
    page.evaluate("localStorage.clear()")


def test_a_camera_that_is_off_sends_no_pictures(server, open_page):
    page = open_page(server, "video")
    page.evaluate(STREAMS)
    page.click("#start")
    page.until("+document.getElementById('answered').textContent >= 2")
    page.click("#lens")
    page.until("document.getElementById('preview').hidden && document.getElementById('lens').ariaPressed === 'true'", 5)
    page.until("streams[0].getVideoTracks()[0].readyState === 'ended'", 5)
    page.screenshot(SHOTS / "camera-off.png")
    before = number(page, "sent")
    more_answers(page, 3)
    page.click("#lens")
    page.until("!document.getElementById('preview').hidden && document.getElementById('lens').ariaPressed === 'false'", 10)
    after = number(page, "sent")
    more_answers(page, 3)
    stop(page)
    sent = appends(page)
    assert not any("video_frames" in append for append in sent[int(before) + 1 : int(after) - 1])
    assert "video_frames" in sent[0] or "video_frames" in sent[1]
    assert "video_frames" in sent[-1] or "video_frames" in sent[-2]


def test_the_screen_is_shared_in_place_of_the_camera(server, open_page):
    page = open_page(server, "video")
    page.evaluate(SCREEN)
    page.click("#start")
    page.until("+document.getElementById('answered').textContent >= 1")
    page.click("#screen")
    page.until("document.getElementById('screen').ariaPressed === 'true' && document.getElementById('preview').videoWidth === 1600", 10)
    assert not page.evaluate("document.getElementById('preview').classList.contains('mirrored')"), "letters can be read"
    more_answers(page, 3)
    frame = next(append["video_frames"][0] for append in reversed(appends(page)) if "video_frames" in append)
    size = page.evaluate(f"createImageBitmap(new Blob([Uint8Array.from(atob({json.dumps(frame)}), (c) => c.charCodeAt(0))])).then(({{ width, height }}) => [width, height])")
    assert size == [1344, 756] and base64.b64decode(frame)[:2] == b"\xff\xd8"
    page.evaluate("shared.getTracks()[0].stop(), shared.getTracks()[0].dispatchEvent(new Event('ended'))")
    page.until("document.getElementById('screen').ariaPressed === 'false' && document.getElementById('preview').videoWidth === 320", 10)
    page.evaluate("navigator.mediaDevices.getDisplayMedia = async () => { throw new DOMException('', 'NotAllowedError') }")
    page.click("#screen")
    more_answers(page, 1)
    assert page.evaluate("document.getElementById('preview').videoWidth") == 320 and not page.text("#notice-words"), "who chooses none goes on"
    stop(page)


def test_a_pause_sends_nothing(server, open_page):
    page = open_page(server, "audio")
    page.click("#start")
    page.until("+document.getElementById('answered').textContent >= 2")
    page.press("p", 80)
    page.until("document.getElementById('state').textContent === 'Paused: nothing is sent' && document.getElementById('orb').dataset.look === 'deaf'", 10)
    page.screenshot(SHOTS / "paused.png")
    page.until("document.getElementById('answered').textContent === document.getElementById('sent').textContent", 10)
    sent = number(page, "sent")
    seconds = "document.getElementById('clock').textContent.split(':').reduce((all, part) => 60 * all + +part, 0)"
    page.until(f"{seconds} >= {page.evaluate(seconds) + 4}")  # the clock goes on
    assert number(page, "sent") == sent
    page.click("#pause")
    more_answers(page, 2)
    assert page.text("#dropped") == "0"
    stop(page)


def test_push_to_talk(start_server, open_page):
    """The microphone is open only while the space bar or the button is held; Space ends nothing. Of silence, this model has nothing to say."""
    page = open_page(start_server("--model", str(ROOT / "models/nano")), "audio")
    page.press("s", 83)
    page.click("#push-to-talk")
    page.click("#settings .primary")
    page.evaluate(STREAMS)
    page.press(" ", 32)
    page.until(f"{STATE} === 'listening'")
    opened = "streams[0].getAudioTracks()[0].enabled"
    assert not page.evaluate(opened) and page.text("#state") == "Hold the button or the space bar to talk"
    page.call("Input.dispatchKeyEvent", type="rawKeyDown", key=" ", windowsVirtualKeyCode=32)
    page.until(opened, 5)
    page.until("document.getElementById('hold').ariaPressed === 'true'", 5)
    page.call("Input.dispatchKeyEvent", type="keyUp", key=" ", windowsVirtualKeyCode=32)
    page.until(f"!{opened}", 5)
    box = page.evaluate("document.getElementById('hold').getBoundingClientRect().toJSON()")
    at = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2, "button": "left", "clickCount": 1}
    page.call("Input.dispatchMouseEvent", type="mousePressed", **at)
    page.until(opened, 5)
    page.screenshot(SHOTS / "push-to-talk.png")
    page.call("Input.dispatchMouseEvent", type="mouseReleased", **at)
    page.until(f"!{opened}", 5)
    stop(page)
    page.evaluate("localStorage.clear()")


def test_the_volume_is_kept_and_followed(server, open_page):
    page = open_page(server, "chat")
    peaks = page.evaluate(
        """import('./playback.js').then(async ({ Playback }) => {
            const peaks = [];
            const real = AudioContext.prototype.createGain;
            const gains = [];
            AudioContext.prototype.createGain = function () { const gain = real.call(this); gains.push(gain); return gain; };
            const playback = new Playback(() => {});
            AudioContext.prototype.createGain = real;
            playback.volume = 0.25;
            return gains.map((gain) => gain.gain.value);
        })"""
    )
    assert sorted(peaks) == [0.25, 1]
    page.evaluate("(() => { const field = document.getElementById('volume'); field.value = 0.5; field.dispatchEvent(new Event('input')); field.dispatchEvent(new Event('change')) })()")
    page.reload()
    page.until("document.readyState === 'complete' && document.getElementById('volume')?.value === '0.5'", 10)
    page.evaluate("localStorage.clear()")
