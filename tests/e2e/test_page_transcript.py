"""Both sides of a conversation, at their place in time: on the page, in what is saved, and in the replay."""
import json
import re

import numpy as np
import pytest

from chromium import Browser, write_camera
from conftest import ROOT
from pages import SHOTS, STATE, open_page, stop
from realtime import UNIT, say, sessions, write_wav
from test_recording import wait_for

NANO = ("--model", str(ROOT / "models/nano"), "--set", "engine.seed=7")
KINDS = "[...document.querySelectorAll('#entries li')].map((item) => item.className)"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Its microphone asks for the model's name, and is silent for the seconds that the answer takes."""
    folder = tmp_path_factory.mktemp("chromium")
    SHOTS.mkdir(exist_ok=True)
    question = say("Hello, what is your name?")
    write_wav(folder / "question.wav", np.pad(question, (0, 9 * UNIT - len(question))))
    write_camera(folder / "camera.y4m")
    started = Browser(folder / "profile", folder / "question.wav", folder / "camera.y4m", folder / "log")
    yield started
    started.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    from conftest import Server

    started = Server(*NANO, "--set", "worker.max_sessions=4", log=tmp_path_factory.mktemp("server") / "server.log")
    yield started
    assert started.stop() == 0, started.log.read_text()[-4000:]


def talk(page):
    """Until the question was answered and its length is known."""
    page.click("#start")
    page.until("document.querySelector('#entries .model')?.textContent.includes('My name is') && document.querySelector('#entries .user')")


def test_what_the_user_said_stands_before_the_answer(server, open_page, tmp_path):
    """This model cannot write it down, so the page tells that it was said and how long it took; in the file, too."""
    page = open_page(server, "audio")
    talk(page)
    page.screenshot(SHOTS / "both-sides.png")
    assert re.fullmatch(r"you spoke, \d\.\d sec", page.text("#entries .unwritten p"))
    kinds = page.evaluate(KINDS)
    assert kinds[kinds.index("model") - 1] == "user unwritten", "it was said before it was answered, though it is told later"
    stop(page)
    page.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path), eventsEnabled=True)
    page.evaluate("document.getElementById('save').click()")
    page.until_event("Browser.downloadProgress", state="completed")
    lines = next(tmp_path.glob("parley-*.txt")).read_text().splitlines()
    spoke = next(n for n, line in enumerate(lines) if "(you spoke, " in line)
    assert "Parley: My name is" in lines[spoke + 1]
    assert page.sent[0]["payload"]["config"]["transcribe_input"] is True


def test_what_was_written_down_is_shown(server, open_page):
    """Words come when they come; they stand where they were said. A noise without words is left out."""
    page = open_page(server, "audio")
    shown = page.evaluate(
        """Promise.all(['./captions.js', './sound_clock.js'].map((name) => import(name))).then(([{ Captions }, { SoundClock }]) => {
            const list = document.createElement('ol'), clock = new SoundClock();
            const captions = new Captions(list, document.createElement('p'));
            const now = Date.now();
            for (let second = 1; second <= 10; second++) clock.sent(16000, now - 20000 + (second > 5 ? 7000 : 0) + 1000 * second);
            captions.model('a', 'Paris.');
            captions.heard('And of Spain?', 1, new Date(now + 1000));
            captions.model('b', 'Madrid.');
            captions.heard('What is the capital of France?', 1.5, clock.at(2000));
            captions.heard('', 0.5, clock.at(6500));
            return { order: [...list.children].map((item) => item.querySelector('p').textContent), times: [2000, 4999, 5000, 6500, 99000].map((ms) => clock.at(ms) - now) };
        })"""
    )
    assert shown["order"] == ["What is the capital of France?", "you spoke, 0.5 sec", "Paris.", "Madrid.", "And of Spain?"]
    assert shown["times"] == [-18000, -15001, -8000, -6500, 86000], "the clock of the sound stood still for seven seconds"


def test_a_recording_has_both_sides(start_server, open_page, tmp_path):
    server = start_server(*NANO, "--set", f"record.dir={tmp_path}")
    page = open_page(server, "audio")
    talk(page)
    stop(page)
    wait_for(lambda: sessions(server, "closed"))
    page.click("#recorded a")
    page.until("document.querySelector('#recordings button')")
    page.click("#recordings button")
    page.until("!document.getElementById('player').hidden && document.querySelectorAll('#lines li').length >= 3")
    lines = page.evaluate("[...document.querySelectorAll('#lines li')].map((line) => [+line.dataset.start, line.querySelector('div').textContent])")
    assert lines[0][1].startswith("you spoke, ") and lines[1][1].startswith("Parley: My name is")
    assert 0 <= lines[0][0] < lines[1][0]


def test_a_recording_is_called_by_what_was_asked(server, open_page):
    page = open_page(server, "chat")
    append = lambda t, at: {"t": t, "from": "client", "event": {"type": "input.append", "input": {"audio": {"wav": "input.wav", "at": at, "samples": 16000}}}}
    wrote = lambda t, **fields: {"t": t, "from": "server", "event": {"type": "input.transcript", **fields}}
    events = [
        append(1000, 0),
        append(2000, 16000),
        append(9000, 32000),
        {"t": 2500, "from": "server", "event": {"type": "response.output.delta", "kind": "text", "text": "Paris.", "response_id": "a"}},
        wrote(3000, text="What is the capital of France?", start_ms=100, end_ms=1700),
        wrote(9100, text="", start_ms=2200, end_ms=2900, problem="busy"),
        wrote(9200, text="", start_ms=2950, end_ms=2990),
        {"t": 9300, "from": "client", "event": {"type": "input.transcript", "text": "forged", "start_ms": 0, "end_ms": 1}},
    ]
    code = f"import('./replay_timeline.js').then(({{ layOut, titleOf }}) => {{ const {{ lines }} = layOut({json.dumps(events)}); return [lines, titleOf(lines)]; }})"
    lines, title = page.evaluate(code)
    assert title == "What is the capital of France?"
    assert [(line["who"], line["text"], line.get("spoke")) for line in lines] == [
        ("user", "What is the capital of France?", None),
        ("model", "Paris.", None),
        ("user", "", pytest.approx(0.7)),
    ]
    assert [line["start"] for line in lines] == pytest.approx([0.1, 2.5, 8.2]), "where it stands in the sound, not when it was written down"


def test_the_end_is_told_and_escape_only_interrupts_what_speaks(server, open_page):
    page = open_page(server, "audio")
    page.click("#start")
    page.until(f"{STATE} === 'listening'")
    page.press("Escape", 27)
    assert "interrupted" not in page.text("#entries"), "nobody spoke"
    stop(page)
    assert page.text("#state") == "The conversation has ended"
    assert page.evaluate("document.querySelector('#entries li:last-child p').textContent").startswith("ended after 0:0")
    assert not any(event.get("input", {}).get("force_listen") for event in page.sent)


def test_the_newest_stays_in_sight(server, open_page):
    """Details take room from the transcript; who reads older lines is left alone."""
    page = open_page(server, "chat")
    seen = "(({ scrollHeight, scrollTop, clientHeight }) => scrollHeight - scrollTop - clientHeight)(document.getElementById('entries'))"
    for n in range(1, 7):
        page.click("#prompt")
        page.type("\n".join(f"What is {n} plus {line}?" for line in range(4)))
        page.press("Enter", 13)
        page.until(f"document.querySelectorAll('#entries .model').length === {n} && {STATE} === 'idle'")
    page.click("#details summary")
    page.until("document.getElementById('latency').checkVisibility()", 5)
    page.until(f"{seen} < 2", 5)
    page.evaluate("new Promise((done) => { const list = document.getElementById('entries'); list.addEventListener('scroll', () => done(), { once: true }); list.scrollTop = 0; })")
    page.click("#details summary")
    page.until("!document.getElementById('latency').checkVisibility()", 5)
    assert page.evaluate("document.getElementById('entries').scrollTop") == 0


@pytest.mark.parametrize(
    ("browsers", "chosen", "time"),
    [("en-US,en;q=0.9", "en", "3:04:05 PM"), ("en-GB,en;q=0.9", "en", "15:04:05"), ("de-DE,de;q=0.9", "en", "15:04:05"), ("zh-CN,zh;q=0.9", "zh", "15:04:05"), ("en-US,en;q=0.9", "zh", "15:04:05")],
)
def test_times_of_day(server, open_page, browsers, chosen, time):
    page = open_page(server, "chat")
    page.evaluate(f"localStorage.setItem('parley.language', '{chosen}')")
    page.call("Emulation.setUserAgentOverride", userAgent=page.evaluate("navigator.userAgent"), acceptLanguage=browsers)
    found = page.evaluate(f"import('./words.js?{browsers[:5]}{chosen}').then(({{ atTime }}) => atTime(new Date(2026, 10, 23, 15, 4, 5)))")
    assert found.replace("\u202f", " ") == time
    page.evaluate("localStorage.clear()")


def test_a_file_is_named_by_the_users_own_time(server, open_page):
    page = open_page(server, "chat")
    page.call("Emulation.setTimezoneOverride", timezoneId="Asia/Shanghai")
    named = page.evaluate("import('./files.js').then(({ inFileName }) => inFileName(new Date(Date.UTC(2026, 10, 23, 20, 4, 5))))")
    assert named == "2026-11-24_04-04-05"


MARKDOWN = """# Capitals

The **capital** of *France* is `Paris`, see [the map](https://maps.example/paris?a=1).

1. one
2. two **bold *and* slanted**

- a <b>tag</b> & more
> said
> twice

```js
const a = "**not bold**";
```
snake_case_name, 2 * 3 * 4, **unfinished"""


def test_markdown_is_read(server, open_page):
    """By elements, never as HTML; what is no markup, or dangerous, stays as it was written."""
    page = open_page(server, "chat")
    html = page.evaluate(f"import('./markdown.js').then(({{ rendered }}) => rendered({json.dumps(MARKDOWN)}).innerHTML)")
    for part in (
        "<h3>Capitals</h3>",
        '<p>The <strong>capital</strong> of <em>France</em> is <code>Paris</code>, see <a href="https://maps.example/paris?a=1" target="_blank" rel="noopener noreferrer">the map</a>.</p>',
        "<ol><li>one</li><li>two <strong>bold <em>and</em> slanted</strong></li></ol>".replace("<ol>", '<ol start="1">'),
        "<ul><li>a &lt;b&gt;tag&lt;/b&gt; &amp; more</li></ul>",
        "<blockquote>said\ntwice</blockquote>",
        '<pre><code>const a = "**not bold**";</code></pre>',
        "<p>snake_case_name, 2 * 3 * 4, **unfinished</p>",
    ):
        assert part in html, html
    hostile = ["[x](javascript:alert(1))", "<img src=x onerror=alert(1)>", "[x](//evil.example)", "a\n\nb", "plain", "**", "[]()", "`"]
    assert page.evaluate(f"import('./markdown.js').then(({{ rendered }}) => {json.dumps(hostile)}.map((text) => rendered(text)?.innerHTML ?? null))") == [None] * 8
    spent = page.evaluate("import('./markdown.js').then(({ rendered }) => { const begin = performance.now(); for (const text of ['*', '**a', '_', '[', '`', '# ', '[a](']) rendered(text.repeat(4000)); return performance.now() - begin; })")
    assert spent < 3000, "no text takes long"


def test_an_answer_with_markup_is_shown_as_it_grows(server, open_page):
    page = open_page(server, "chat")
    shown = page.evaluate(
        """import('./captions.js').then(({ Captions }) => {
            const list = document.createElement('ol');
            const captions = new Captions(list, document.createElement('p'));
            const states = [];
            for (const piece of ['Some ', '**bo', 'ld**', ' text', '\\n- one\\n- two']) {
                captions.model('a', piece);
                states.push(list.querySelector('li').lastElementChild.previousElementSibling.outerHTML);
            }
            return [states, captions.lines[0].text];
        })"""
    )
    assert shown[0][:2] == ["<p>Some </p>", "<p>Some **bo</p>"]
    assert shown[0][3] == '<div class="rich"><p>Some <strong>bold</strong> text</p></div>'
    assert shown[0][4] == '<div class="rich"><p>Some <strong>bold</strong> text</p><ul><li>one</li><li>two</li></ul></div>'
    assert shown[1] == "Some **bold** text\n- one\n- two", "what is saved is what was said"
