"""What stays of a conversation: its sound and words as files, the last ones in the browser, and the running one across a reload."""
import io
import json
import wave

import numpy as np

from pages import STATE, browser, choose, more_answers, open_page, stop
from realtime import floats, sessions
from test_recording import wait_for

LINES = "[...document.querySelectorAll('#entries li')].map((item) => item.className + ': ' + item.querySelector('p').textContent)"


def samples(data: bytes) -> tuple[int, np.ndarray]:
    with wave.open(io.BytesIO(data)) as file:
        assert file.getnchannels() == 2 and file.getsampwidth() == 2
        return file.getframerate(), np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, 2) / 32768


def test_a_conversation_is_downloaded_as_sound(server, open_page, tmp_path):
    """The user on the left as they were sent, the model on the right; nothing is asked of the server for it."""
    page = open_page(server, "audio")
    assert page.evaluate("document.getElementById('save-sound').hidden")
    page.click("#start")
    page.until("parseFloat(document.getElementById('played').textContent) >= 1 && +document.getElementById('answered').textContent >= 5")
    stop(page)
    asked = len(page.asked)
    page.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path), eventsEnabled=True)
    page.click("#save-sound")
    page.until_event("Browser.downloadProgress", state="completed")
    assert not [url for url in page.asked[asked:] if not url.startswith("blob:")]
    rate, both = samples(next(tmp_path.glob("parley-*.wav")).read_bytes())
    sent = np.concatenate([floats(event["input"]["audio"]) for event in page.sent if event["type"] == "input.append"])
    assert rate == 24000 and len(both) / rate >= len(sent) / 16000
    there = np.interp(np.arange(len(sent)) / 16000, np.arange(len(both)) / rate, both[:, 0])  # from the first block on they are the same seconds
    best = max(np.corrcoef(np.roll(there, shift)[4000:60000], sent[4000:60000])[0, 1] for shift in range(-1600, 1601, 40))
    assert best > 0.9, "the left channel is what was sent"
    assert (np.abs(both[:, 1]) > 0.01).sum() > rate / 4, "the right channel is what was heard"
    page.click("#clear")
    assert page.evaluate("document.getElementById('save-sound').hidden")


def test_sound_lies_at_its_place_in_time(server, open_page):
    """What is cut was not heard; a pause is silence; small delays do not tear a sentence."""
    page = open_page(server, "chat")
    facts = page.evaluate(
        """import('./conversation_sound.js').then(async ({ ConversationSound }) => {
            const sound = new ConversationSound(1000);
            const tone = (count, value) => new Float32Array(count).fill(value);
            for (let i = 0; i < 25; i++) sound.heard(tone(640, 0.5), 1000 + 40 * (i + 1) + (i % 3) * 20); // one second, shakily
            sound.heard(tone(16000, 0.25), 5000); // from 3 s to 4 s
            sound.played(tone(12000, -0.5), 3000); // from 1.5 s to 2 s
            sound.played(tone(12000, -0.5), 3530); // 30 ms late
            sound.played(tone(24000, 1), 1e9); // far too late
            const view = new DataView(await sound.toWav().arrayBuffer());
            const at = (seconds, channel) => view.getInt16(44 + 4 * Math.round(24000 * seconds) + 2 * channel, true) / 32768;
            return { bytes: view.byteLength, left: [0.5, 0.98, 1.5, 2.9, 3.5].map((s) => at(s, 0)), right: [1.4, 1.6, 2.2, 2.49, 2.6].map((s) => at(s, 1)) };
        })"""
    )
    assert facts["bytes"] == 44 + 4 * 24000 * 4
    assert np.allclose(facts["left"], [0.5, 0.5, 0, 0, 0.25], atol=0.01)
    assert np.allclose(facts["right"], [0, -0.5, -0.5, -0.5, 0], atol=0.01)


def test_playback_tells_what_was_heard(server, open_page):
    page = open_page(server, "chat")
    whole, cut = page.evaluate(
        """import('./playback.js').then(({ Playback }) => new Promise((done) => {
            const pieces = [];
            const playback = new Playback(() => {}, (samples) => {
                pieces.push(samples.length);
                if (pieces.length === 1) setTimeout(() => { playback.cut(); done([pieces[0], pieces.slice(1)]); }, 400);
            });
            playback.push(new Float32Array(6000));
            playback.push(new Float32Array(48000));
            playback.push(new Float32Array(48000));
        }))"""
    )
    assert whole == 6000 and len(cut) == 1 and 4800 < cut[0] < 24000, "of what was cut, what had sounded"


def test_earlier_conversations_stay_in_the_browser(server, open_page):
    page = open_page(server, "chat")
    page.evaluate("localStorage.clear()")
    page.reload()
    page.until("document.readyState === 'complete' && document.getElementById('earlier')?.hidden", 10)
    choose(page, "chat")
    page.click("#prompt")
    page.type("Remember this question")
    page.press("Enter", 13)
    page.until(f"document.querySelector('#entries .model') && {STATE} === 'idle'")
    before = page.evaluate(LINES)
    page.reload()
    page.until("document.readyState === 'complete' && document.getElementById('earlier')?.hidden === false", 10)
    assert page.evaluate("document.querySelectorAll('#entries li').length") == 0
    page.click("#earlier summary")
    page.until("document.querySelector('#conversations button')?.textContent.startsWith('Remember this question')", 5)
    page.click("#conversations button")
    page.until("document.querySelectorAll('#entries li').length >= 2", 5)
    assert [line.strip() for line in page.evaluate(LINES)] == [line.strip() for line in before]
    page.click("#prompt")
    page.type("And this one")
    page.press("Enter", 13)
    page.until(f"document.querySelectorAll('#entries .model').length === 2 && {STATE} === 'idle'")
    messages = [event["input"]["messages"] for event in page.sent if event["type"] == "input.append"][-1]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"] and messages[0]["content"] == "Remember this question"
    page.reload()
    page.until("document.readyState === 'complete' && document.getElementById('earlier')?.hidden === false", 10)
    assert len(json.loads(page.evaluate("localStorage.getItem('parley.conversations')"))) == 1, "it went on with the same one"
    page.click("#earlier summary")
    page.click("#forget")
    page.until("document.getElementById('earlier').hidden", 5)
    assert page.evaluate("localStorage.getItem('parley.conversations')") == "[]"


def test_what_is_kept_is_bounded_and_not_trusted(server, open_page):
    page = open_page(server, "chat")
    kept = page.evaluate(
        """import('./earlier.js').then(({ Earlier }) => {
            const earlier = new Earlier();
            for (let i = 0; i < 12; i++) earlier.keep({ id: `c${i}`, mode: 'audio', lines: Array.from({ length: 400 }, (_, n) => ({ at: n, who: 'You', kind: 'user', text: 'x'.repeat(5000) })).slice(0, i === 11 ? 400 : 2) });
            const all = earlier.all();
            localStorage.setItem('parley.conversations', '{"no": "list"}');
            const odd = earlier.all().length;
            localStorage.setItem('parley.conversations', 'no JSON');
            return [all.length, all[0].id, all[0].lines.length, all[0].lines[0].text.length, odd, earlier.all().length];
        })"""
    )
    assert kept == [10, "c11", 300, 4000, 0, 0]
    page.evaluate("localStorage.clear()")


def test_a_reload_offers_to_go_on(server, open_page):
    """The same session, from where it was: nothing is lost of what the server said meanwhile."""
    page = open_page(server, "audio")
    page.click("#start")
    page.until("+document.getElementById('answered').textContent >= 3 && document.querySelector('#entries .model')")
    page.reload()
    page.until("document.readyState === 'complete' && document.getElementById('notice-action')?.hidden === false", 10)
    assert page.text("#notice-words") == "Your conversation is still there." and page.text("#notice-action") == "Go on"
    assert page.evaluate("sessionStorage.getItem('parley.left')") == "null", "it is offered once"
    before = len(page.sent)
    page.click("#notice-action")
    page.until(f"{STATE} === 'listening' || {STATE} === 'speaking'", 20)
    more_answers(page, 3)
    lines = page.evaluate(LINES)
    assert lines[0] == "event: the conversation begins" and "event: the conversation goes on" in lines
    assert lines.index("event: the conversation goes on") > [line.split(":")[0] for line in lines].index("model")
    later = page.sent[before:]
    assert not any(event["type"] == "session.init" for event in later), "it is no new session"
    assert [event["type"] for event in page.sent].count("session.init") == 1
    stop(page)
    wait_for(lambda: not sessions(server, "active"))
    page.evaluate("localStorage.clear()")


def test_who_loads_another_page_leaves(server, open_page):
    page = open_page(server, "audio")
    page.click("#start")
    page.until("+document.getElementById('answered').textContent >= 1")
    page.go(f"{server.http}/replay.html")
    page.until("document.title.includes('recordings')", 10)
    wait_for(lambda: not sessions(server, "active"), 10)


def test_a_browser_without_such_a_worker_leaves_at_once(server, open_page):
    page = open_page(server, "audio")
    page.call("Page.addScriptToEvaluateOnNewDocument", source="delete window.SharedWorker")
    page.reload()
    page.until("document.readyState === 'complete' && document.body?.dataset.mode === 'audio'", 10)
    page.click("#start")
    page.until("+document.getElementById('answered').textContent >= 1")
    page.reload()
    page.until("document.readyState === 'complete' && document.getElementById('server')?.textContent === 'ready'", 10)
    assert not page.text("#notice-words") and page.evaluate("sessionStorage.getItem('parley.left')") in (None, "null")
    wait_for(lambda: not sessions(server, "active"), 10)  # a session that may be taken up again stays for much longer


def test_a_replay_is_sought_in_lines_and_waves_and_downloaded_as_one(start_server, open_page, tmp_path):
    server = start_server("--set", f"record.dir={tmp_path / 'kept'}", "--set", "engine.seed=7")
    page = open_page(server, "audio")
    page.click("#start")
    page.until("+document.getElementById('answered').textContent >= 5 && parseFloat(document.getElementById('played').textContent) >= 0.5")
    stop(page)
    wait_for(lambda: sessions(server, "closed"))
    assert page.evaluate("document.getElementById('recorded').innerText").startswith("The server records conversations.")
    page.click("#recorded a")
    page.until("document.querySelector('#recordings button')")
    page.click("#recordings button")
    page.until("!document.getElementById('player').hidden && document.querySelectorAll('#lines li').length >= 2")
    position = "+document.getElementById('position').value"
    last = page.evaluate("+document.querySelector('#lines li:last-child').dataset.start")
    page.click("#lines li:last-child .at")
    page.until(f"Math.abs({position} - {last}) < 0.02", 5)
    page.click("#waves")
    page.until(f"Math.abs({position} - document.getElementById('position').max / 2) < 0.1", 5)
    page.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path), eventsEnabled=True)
    page.click("#both")
    page.until_event("Browser.downloadProgress", state="completed")
    rate, both = samples(next(tmp_path.glob("sess_*.wav")).read_bytes())
    assert rate == 24000 and abs(len(both) / rate - page.evaluate("+document.getElementById('position').max")) < 0.01
    assert np.abs(both[:, 0]).max() > 0.05 and np.abs(both[:, 1]).max() > 0.01
    page.evaluate("localStorage.clear()")
