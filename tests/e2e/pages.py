"""Tabs of a real Chromium on the page at `/`, with a microphone and a camera fed from files."""
import re

import pytest

from chromium import Browser, write_camera
from conftest import BINARY, ROOT
from realtime import SPOKEN

SHOTS = BINARY.parent / "screenshots"
STATE = "document.body.dataset.state"
SPEAKS = (ROOT / "models/tiny-omni/assets").is_dir()


def number(page, name: str) -> float:
    return float(page.text(f"#{name}").split()[0])


def more_answers(page, count: int):
    """Waits until so many more seconds have been answered."""
    answered = number(page, "answered")
    page.until(f"+document.getElementById('answered').textContent >= {answered + count}")


def stop(page):
    """Ends the conversation with the button, and waits for the end."""
    page.click("#start")
    page.until(f"{STATE} === 'idle'")


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
    """A factory of tabs. No tab may meet an error or request anything from another host."""
    pages = []

    def start(server, mode: str, **screen):
        page = browser.open(server.http, **screen)
        pages.append((page, server))
        choose(page, mode)
        return page

    yield start
    for page, server in pages:
        page.evaluate("1")  # receives the browser's remaining events
        strangers = [url for url in page.asked if not re.match(rf"(https?|wss?)://{re.escape(server.host)}:{server.port}/|about:|blob:", url)]
        faults = page.faults
        page.close()
        assert not strangers and not faults, (strangers, faults)
