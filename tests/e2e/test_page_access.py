"""The page for who has no mouse, does not see, sees little, or uses a finger: measured, not only looked at."""
import json

import numpy as np
import pytest

from conftest import ROOT
from measured import faint, small, tree, unnamed, wide
from pages import STATE, browser, choose, open_page, stop
from realtime import UNIT, Client, sessions
from test_recording import wait_for

SCREENS = {"desktop": {"width": 1280, "height": 800}, "phone": {"width": 390, "height": 844, "mobile": True}}
TABBED = "(document.activeElement.id || document.activeElement.name || document.activeElement.tagName)"
NOTICE = "document.getElementById('notice-words').textContent"


def box(page, selector: str) -> dict:
    return page.evaluate(f"document.querySelector({json.dumps(selector)}).getBoundingClientRect().toJSON()")


def tabs(page, last: str) -> list[str]:
    """What Tab comes by, from the top to `last`; each of them shows where one is."""
    page.evaluate("document.body.tabIndex = -1, document.body.focus(), document.body.removeAttribute('tabindex')")
    met = []
    while last not in met:
        assert len(met) < 40, met
        page.press("Tab", 9)
        met.append(page.evaluate(TABBED))
        shown = "(document.activeElement.matches('.modes input') ? document.activeElement.nextElementSibling : document.activeElement.closest('label.quiet') ?? document.activeElement)"
        assert met[-1] == "BODY" or page.evaluate(f"getComputedStyle({shown}).outlineStyle") == "solid", met
    return met


def closed_sessions(server, count: int):
    wait_for(lambda: len(sessions(server, "closed")) == count)


def record(server, seconds: int):
    with Client(server) as client:
        client.init()
        for _ in range(seconds):
            client.step(np.zeros(UNIT))
        client.say_goodbye()
    closed_sessions(server, 1)


def open_replay(page):
    page.go(page.evaluate("new URL('replay.html', document.baseURI).href"))
    page.until("document.querySelector('#recordings button')")
    page.click("#recordings button")
    page.until("!document.getElementById('player').hidden && document.querySelector('#lines li')")


@pytest.mark.parametrize(("screen", "dark"), [("desktop", True), ("phone", False)], ids=["dark desktop", "light phone"])
def test_what_is_shown_can_be_read_and_hit(start_server, open_page, tmp_path, screen, dark):
    """Contrast as WCAG 2 AA asks for, nothing over the edge of the screen, and on a phone nothing too small for a finger."""

    def check(page, state: str):
        assert (state, faint(page), wide(page)) == (state, [], [])
        assert screen != "phone" or (state, small(page)) == (state, [])

    page = open_page(start_server("--model", str(ROOT / "models/nano")), "audio", **SCREENS[screen], dark=dark)
    page.until("document.querySelectorAll('#examples button').length === 3", 10)
    page.evaluate("document.querySelectorAll('details').forEach((folded) => (folded.open = true))")
    check(page, "start")
    choose(page, "chat")
    page.give_file("#picture", ROOT / "web/icon.png")
    page.until("document.querySelector('#pictures img')?.complete")
    check(page, "a message with a picture")
    page.click("#prompt")
    page.type("What is your name?")
    page.press("Enter", 13)
    page.until(f"document.querySelector('#entries .model') && {STATE} === 'idle'")
    check(page, "answered")
    page.click("#open-settings")
    check(page, "settings")

    server = start_server("--set", f"record.dir={tmp_path / 'kept'}", "--set", "engine.seed=7")
    page = open_page(server, "video", **SCREENS[screen], dark=dark)
    page.click("#start")
    page.until(f"{STATE} === 'speaking'")
    page.evaluate("document.querySelector('[name=mode][value=chat]').parentElement.click()")
    page.until(NOTICE, 5)
    check(page, "video")
    stop(page)
    choose(page, "audio")
    page.click("#start")
    page.until(f"{STATE} === 'speaking'")
    check(page, "speaking")
    page.press("m", 77)
    page.until("document.body.dataset.muted === 'true'", 5)
    check(page, "muted")
    stop(page)
    closed_sessions(server, 2)
    open_replay(page)
    check(page, "replay")


def test_start_is_in_the_middle_of_a_phone(server, open_page):
    page = open_page(server, "audio", **SCREENS["phone"])

    def off() -> float:
        stage, start = box(page, "#stage"), box(page, "#start")
        return abs(stage["x"] + stage["width"] / 2 - start["x"] - start["width"] / 2)

    assert off() <= 1
    page.click("#start")
    page.until(f"{STATE} === 'speaking'")
    assert off() <= 1 and box(page, "#interrupt")["right"] <= box(page, "#stage")["right"]
    stop(page)


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
    """Tab reaches everything that a mouse does, in the order of the page; a conversation is begun, muted, interrupted and ended without one."""
    page = open_page(server, "audio")
    assert tabs(page, "SUMMARY") == ["mode", "language", "theme", "open-settings", "start", "clear", "save", "SUMMARY"]
    page.evaluate("document.activeElement.blur()")
    page.press(" ", 32)
    page.until(f"{STATE} === 'speaking'")
    page.press("Escape", 27)
    page.until("document.querySelector('#caption.broken')", 10)
    page.press("m", 77)
    page.until("document.body.dataset.muted === 'true'", 5)
    page.press(" ", 32)
    page.until(f"{STATE} === 'idle'")


def test_writing_by_keyboard_alone(server, open_page):
    """Who sends with the button goes on in the field, which keeps its height while a line fits."""
    page = open_page(server, "chat")
    height = box(page, "#prompt")["height"]
    assert tabs(page, "send")[-4:] == ["picture", "speaker", "prompt", "send"]
    page.evaluate("document.getElementById('prompt').focus()")
    page.type("Hello")
    assert box(page, "#prompt")["height"] == pytest.approx(height, abs=0.6)
    assert page.evaluate("(({ scrollHeight, clientHeight }) => scrollHeight <= clientHeight)(document.getElementById('prompt'))")
    page.press("Tab", 9)
    assert page.evaluate(TABBED) == "send"
    page.call("Input.dispatchKeyEvent", type="keyDown", key="Enter", windowsVirtualKeyCode=13, text="\r")
    page.call("Input.dispatchKeyEvent", type="keyUp", key="Enter", windowsVirtualKeyCode=13)
    page.until(f"document.querySelector('#entries .model') && {STATE} === 'idle'")
    assert page.evaluate(TABBED) == "prompt"


def test_what_a_screen_reader_is_told(server, open_page, tmp_path):
    """Who said what, notices at once, answers when they are whole, and no figure by itself."""
    page = open_page(server, "chat")
    notes = tmp_path / "notes.txt"
    notes.write_text("no picture")
    page.give_file("#picture", notes)
    page.until(NOTICE, 10)
    alerts = [node for node in tree(page) if node["role"] == "alert"]
    assert [node["live"] for node in alerts] == ["assertive"] and "notes.txt" in " ".join(node["name"] for node in tree(page))
    page.click("#notice-close")
    page.evaluate(
        """window.busy = [];
        const list = document.getElementById('entries');
        new MutationObserver(() => busy.push(list.ariaBusy)).observe(list, { attributeFilter: ['aria-busy'] })"""
    )
    page.click("#prompt")
    page.type("Who is there?")
    page.press("Enter", 13)
    page.until(f"document.querySelector('#entries .model') && {STATE} === 'idle'")
    names = [node["name"] for node in tree(page)]
    assert names.index("You:") < names.index("Parley:") and "Who is there?" in names
    assert page.evaluate("document.getElementById('entries').ariaLive") == "polite"
    assert "true" in page.evaluate("busy") and page.evaluate("busy.at(-1)") == "false", "while it grows, an answer is not read"
    choose(page, "audio")
    assert page.evaluate("document.getElementById('entries').ariaLive") == "off", "the caption is read instead"
    page.click("#details summary")
    assert page.evaluate("[...document.querySelectorAll('aside output')].map(({ ariaLive }) => ariaLive)") == ["off"] * 3
    page.click("#start")
    page.until(f"{STATE} === 'listening'")
    locked = [node for node in tree(page) if node["role"] == "radio" and node["name"] in ("Chat", "Video")]
    assert len(locked) == 2 and all(node["description"].startswith("Stop this conversation first") for node in locked)
    stop(page)


def test_a_caption_grows_by_what_is_new(server, open_page):
    """A screen reader reads what is new of it, not all of it again with each piece."""
    page = open_page(server, "chat")
    read = page.evaluate(
        """import('./captions.js').then(({ Captions }) => {
            const list = document.createElement('ol'), line = document.createElement('p');
            const captions = new Captions(list, line);
            captions.model('a', ' One');
            const first = line.firstChild;
            captions.model('a', ' two');
            const kept = line.firstChild === first && line.textContent;
            captions.model('a', ' x'.repeat(107));
            const shortened = line.textContent;
            captions.model('b', ' Three');
            return [kept, shortened.startsWith(' two x'), line.textContent];
        })"""
    )
    assert read == [" One two", True, " Three"]


def test_the_replay_by_keyboard_and_ear(start_server, open_page, tmp_path):
    """On a phone the player is above the list for the keyboard, too; where the replay is, a screen reader says when it is asked."""
    server = start_server("--set", f"record.dir={tmp_path}")
    record(server, 2)
    page = open_page(server, "chat", **SCREENS["phone"], dark=False)
    open_replay(page)
    assert tabs(page, "remove")[:4] == ["A", "language", "theme", "play"]
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(244, 241, 234)"
    page.click("#theme")
    page.until("getComputedStyle(document.body).backgroundColor === 'rgb(11, 14, 21)'", 5)
    assert page.evaluate("document.getElementById('position').ariaValueText") == page.text("#now") == "0:00 of 0:02"
    assert page.evaluate("document.getElementById('now').ariaLive") == "off"
    page.call("Emulation.setDeviceMetricsOverride", width=1280, height=800, deviceScaleFactor=1, mobile=False)
    page.until("(({ width, clientWidth }) => width > 700 && width === clientWidth)(document.getElementById('waves'))", 10)
    page.until("((canvas) => canvas.getContext('2d').getImageData(canvas.width - 9, Math.round(canvas.height / 4), 1, 1).data[3])(document.getElementById('waves'))", 10)
    assert page.evaluate("[...document.querySelectorAll('main > *')].map(({ id }) => id)") == ["list", "player"]
    page.evaluate("localStorage.clear()")


def test_seeking_asks_for_no_further_frames(start_server, open_page, tmp_path):
    """One frame is asked for at a time, however often the position was moved."""
    server = start_server("--set", f"record.dir={tmp_path}")
    record(server, 4)
    page = open_page(server, "chat")
    open_replay(page)
    page.click("#play")
    page.until(f"{STATE} === 'playing'")
    asked = page.evaluate(
        """new Promise((done) => {
            const position = document.getElementById('position'), ask = window.requestAnimationFrame.bind(window);
            for (let i = 0; i < 5; i++) position.dispatchEvent(new Event('input'));
            let asked = 0, frames = -1;
            window.requestAnimationFrame = (run) => (asked++, ask(run));
            const count = () => {
                if (frames < 0 && asked > 0) frames = asked = 0; // it plays on
                if (frames < 0 || frames++ < 10) return ask(count);
                done(asked);
            };
            ask(count);
        })"""
    )
    assert 1 <= asked <= 12
