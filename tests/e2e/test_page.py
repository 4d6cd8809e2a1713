"""The page at `/` in a real Chromium against the real server: conversations, what goes out, and what is kept."""
import json

import numpy as np
import pytest

from conftest import ROOT
from pages import SHOTS, SPEAKS, STATE, browser, choose, more_answers, open_page, stop
from realtime import SPOKEN, floats, sessions, speech
from test_recording import wait_for


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
    stop(page)
    wait_for(lambda: sessions(server, "closed"))
    page.go(page.evaluate("document.querySelector('footer a[href=\"replay.html\"]').href"))
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
    more_answers(page, 2)
    page.screenshot(SHOTS / "audio-interrupted.png")
    stop(page)
    appends = [event["input"] for event in page.sent if event["type"] == "input.append"]
    at = next(n for n, append in enumerate(appends) if append.get("force_listen"))
    sizes = [len(floats(append["audio"])) for append in appends]
    assert sizes[at] + sizes[at + 1] == 16000 and set(sizes[at + 2 :]) <= {16000}, "the seconds stay on their grid"


def test_video_sends_a_picture_a_second(server, open_page):
    page = open_page(server, "video")
    page.click("#start")
    page.until("+document.getElementById('answered').textContent >= 4")
    page.screenshot(SHOTS / "video.png")
    assert page.evaluate("document.getElementById('preview').videoWidth") == 320
    stop(page)
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
    stop(page)
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
    wait_for(lambda: sessions(server, "closed"))
    page.go(page.evaluate("document.querySelector('footer a[href=\"replay.html\"]').href"))
    page.until("document.querySelector('#recordings button span')?.textContent === 'What is that?'", 10)
    page.click("#recordings button")
    page.until("document.querySelector('#lines .thumbs img')?.naturalWidth > 0", 10)


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
