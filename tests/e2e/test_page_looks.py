"""What the page shows, on both sizes of screen and in both languages."""
import pytest

from conftest import ROOT
from pages import SHOTS, STATE, browser, choose, open_page, stop
from realtime import Client, sessions
from test_recording import wait_for


def test_who_is_recorded_sees_it_beside_start(server, start_server, open_page, tmp_path):
    page = open_page(start_server("--set", f"record.dir={tmp_path}"), "audio")
    page.click("#start")
    page.until(f"{STATE} === 'listening'")
    stop(page)
    page.reload()
    page.until("document.readyState === 'complete' && document.body?.dataset.mode === 'audio' && document.getElementById('recorded')?.hidden === false", 10)
    page.screenshot(SHOTS / "recorded.png")
    page = open_page(server, "audio")
    assert page.evaluate("document.getElementById('recorded').hidden")


def test_what_answers_and_what_to_ask(start_server, open_page):
    page = open_page(start_server("--model", str(ROOT / "models/nano")), "audio")
    page.until("document.getElementById('knows').textContent === 'nano is a toy, made to try this page. It knows English only: names, sums, days, capitals, shapes.'", 10)
    assert page.evaluate("document.querySelectorAll('#examples button').length") == 3
    page.screenshot(SHOTS / "nano.png")
    page.click("#examples button")
    page.until(f"document.querySelector('#entries .model') && {STATE} === 'idle'")
    assert page.text("#entries .user p") == "What is the capital of France?" and "Paris" in page.text("#entries .model p")
    assert page.text("#model") == "with nano" and not page.evaluate("document.getElementById('hello').checkVisibility()")


def test_other_models_are_named(start_server, open_page, tmp_path):
    model = tmp_path / "MiniCPM-o-4_5"
    model.symlink_to(ROOT / "models/nano")
    page = open_page(start_server("--model", str(model)), "audio")
    page.until("document.getElementById('knows').textContent === 'MiniCPM-o-4_5 answers here.'", 10)
    assert page.text("#model") == "with MiniCPM-o-4_5" and page.evaluate("document.querySelectorAll('#examples button').length") == 0


def test_figures_wait_behind_details(server, open_page):
    page = open_page(server, "audio")
    assert not page.evaluate("document.getElementById('latency').checkVisibility()")
    page.click("#details summary")
    page.until("document.getElementById('latency').checkVisibility() && document.getElementById('latency').width > 50", 10)
    assert page.evaluate("document.querySelector('.figures dd').innerText").split() == ["0", "sec"]
    choose(page, "chat")
    assert page.evaluate("document.querySelector('.figures dd').innerText").split() == ["0", "messages"]
    page.click("#prompt")
    page.type("Hello")
    page.press("Enter", 13)
    page.until("document.querySelector('.figures dd').innerText.split(/\\s+/).join(' ') === '1 message'", 10)
    page.until(f"document.querySelector('#entries .model') && {STATE} === 'idle'")


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
    stop(page)


def test_muted_is_said_and_shown(server, open_page):
    page = open_page(server, "audio")
    page.click("#start")
    page.until(f"{STATE} === 'listening'")
    page.press("m", 77)
    page.until("document.getElementById('state').textContent === 'Muted' && document.getElementById('orb').dataset.look === 'deaf'", 20)
    page.screenshot(SHOTS / "muted.png")
    page.press("m", 77)
    page.until("document.getElementById('state').textContent !== 'Muted' && document.getElementById('orb').dataset.look !== 'deaf'", 20)
    stop(page)


def test_the_page_speaks_chinese(server, open_page):
    """Asked for by the browser, or by the switch; then nothing of the page is left in English."""
    page = open_page(server, "audio")
    assert page.evaluate("document.documentElement.lang") == "en"
    page.call("Emulation.setUserAgentOverride", userAgent=page.evaluate("navigator.userAgent"), acceptLanguage="zh-CN,zh;q=0.9")
    page.reload()
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


def test_dates_are_the_browsers(server, open_page):
    page = open_page(server, "audio")
    for accepted, date in (("en-GB,en;q=0.9", "23 Nov 2026, 07:05"), ("en-US,en;q=0.9", "Nov 23, 2026, 7:05 AM"), ("zh-CN,zh;q=0.9", "2026年11月23日 07:05")):
        page.call("Emulation.setUserAgentOverride", userAgent=page.evaluate("navigator.userAgent"), acceptLanguage=accepted)
        found = page.evaluate(f"import('./words.js?{accepted[:5]}').then(({{ onDate }}) => onDate(new Date(2026, 10, 23, 7, 5)))")
        assert found.replace("\u202f", " ") == date


def test_a_server_that_is_not_ready_says_why(server, open_page):
    page = open_page(server, "audio")
    said = page.evaluate(
        """import('./server.js').then(async ({ askServer, whyRefused }) => {
            const real = window.fetch;
            window.fetch = async () => new Response(JSON.stringify({ error: { message: 'no worker is up' } }), { status: 503 });
            const said = [(await askServer()).words, await whyRefused()];
            window.fetch = real;
            return said;
        })"""
    )
    assert said == ["not ready: no worker is up", "The server cannot take a conversation now: no worker is up."]


def test_times_stand_beside_messages(start_server, open_page, tmp_path):
    """Seen when a message is pointed at, and whole, on the narrow side of a phone, too."""
    page = open_page(start_server("--set", f"record.dir={tmp_path}"), "chat", width=390, height=844, mobile=True)
    page.click("#prompt")
    page.type("Hello there, this is a message that is longer than a line of a phone")
    page.press("Enter", 13)
    page.until(f"document.querySelector('#entries .model') && document.querySelector('#entries .event') && {STATE} === 'idle'")
    over = page.evaluate(
        """[...document.querySelectorAll('#entries time')].map((time) => [time.getBoundingClientRect(), document.getElementById('entries').getBoundingClientRect()])
        .filter(([time, list]) => time.width === 0 || time.left < list.left || time.right > list.right).length"""
    )
    assert over == 0 and page.evaluate("document.querySelectorAll('#entries time').length") == 3


def test_a_phone_in_daylight(server, open_page):
    page = open_page(server, "audio", width=390, height=844, mobile=True, dark=False)
    page.click("#start")
    page.until("+document.getElementById('answered').textContent >= 4")
    page.evaluate("window.scrollTo(0, 0)")
    page.screenshot(SHOTS / "phone.png")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    stop(page)
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
    stop(page)


def test_a_replay_on_a_phone_is_above_the_list(start_server, open_page, tmp_path):
    server = start_server("--set", f"record.dir={tmp_path}")
    for _ in range(12):
        with Client(server) as client:
            client.init()
            client.say_goodbye()
    wait_for(lambda: len(sessions(server, "closed")) == 12)
    page = open_page(server, "chat", width=390, height=844, mobile=True)
    page.go(page.evaluate("document.querySelector('footer a[href=\"replay.html\"]').href"))
    page.until("document.querySelectorAll('#recordings button').length === 12")
    page.evaluate("document.querySelector('#recordings li:last-child button').click()")
    page.until("!document.getElementById('player').hidden")
    page.until("(() => { const box = document.getElementById('play').getBoundingClientRect(); return box.top > 0 && box.bottom < innerHeight })()", 5)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.screenshot(SHOTS / "phone-replay.png")


def test_the_page_can_be_installed(server, open_page):
    """Whatever Chromium finds wrong with it as an app; in the colour of the ground."""
    page = open_page(server, "audio")
    manifest = page.call("Page.getAppManifest")
    assert manifest["errors"] == [] and manifest["url"].endswith("/parley.webmanifest")
    assert page.call("Page.getInstallabilityErrors")["installabilityErrors"] == []
    sizes = page.evaluate(
        "fetch('parley.webmanifest').then((answer) => answer.json()).then(({ icons }) => Promise.all(icons.map(async ({ src, sizes }) => { const image = await createImageBitmap(await (await fetch(src)).blob()); return [sizes, `${image.width}x${image.height}`]; })))"
    )
    assert len(sizes) == 3 and all(told == is_ for told, is_ in sizes)
    colour = "document.querySelector('meta[name=theme-color]').content"
    assert page.evaluate(colour) == "#0b0e15"
    page.click("#theme")
    assert page.evaluate(colour) == "#f4f1ea"
    page.evaluate("localStorage.clear()")


def test_no_button_speaks_the_browsers_language(server, open_page):
    """A field for a file writes its own words, so none is seen; the voice can be given back."""
    page = open_page(server, "audio")
    page.click("#open-settings")
    assert page.evaluate("[...document.querySelectorAll('input[type=file]')].every((field) => field.getBoundingClientRect().width <= 1)")
    assert page.text("#settings .file") == "Choose a recording" and page.evaluate("document.getElementById('forget-voice').hidden")
    page.give_file("#voice", ROOT / "tests/data/question.wav")
    page.until("!document.getElementById('forget-voice').hidden", 10)
    page.evaluate("document.getElementById('forget-voice').click()")
    page.until("document.getElementById('forget-voice').hidden && !document.getElementById('voice-state').textContent", 5)
    assert page.evaluate("document.activeElement.id") == "voice"
