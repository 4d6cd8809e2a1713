#!/usr/bin/env python3
"""Takes pictures of the page in its main states, on a desktop and on phones, dark and light, for people to look at.

    PARLEY_BINARY=build/release/parley ~/.cache/parley/venv/bin/python tests/e2e/pictures.py FOLDER [--language zh] [--screen phone] [--theme light]

The default model answers: it is asked for its name by voice, and in writing for the colour of a shape."""
import argparse
import base64
import tempfile
from pathlib import Path

import numpy as np

from chromium import Browser, Page, write_camera
from conftest import ROOT, Server
from pages import STATE, choose
from realtime import UNIT, drawn, http, jpeg, say, write_wav
from test_recording import wait_for

SCREENS = {
    "desktop": {"width": 1280, "height": 800},
    "phone": {"width": 390, "height": 844, "mobile": True},
    "short": {"width": 390, "height": 664, "mobile": True},
}
THEMES = ("dark", "light")
SPEAKS = f"{STATE} === 'speaking' && document.getElementById('caption').textContent.trim().length > 8"


def start(page: Page):
    choose(page, "audio")
    page.until("document.getElementById('server').dataset.ready === 'true' && (document.getElementById('knows')?.textContent ?? true)")


def details(page: Page):
    page.evaluate("(document.querySelector('#details') ?? document.querySelector('aside')).open = true")
    page.evaluate("document.querySelector('aside').scrollIntoView()")


def settings(page: Page):
    page.click("#open-settings")


def chat(page: Page, picture: Path):
    choose(page, "chat")
    page.give_file("#picture", picture)
    page.until("document.querySelector('#pictures img')?.complete")
    page.click("#prompt")
    page.type("What colour is the circle?")
    page.press("Enter", 13)
    page.until(f"document.querySelector('#entries .model') && {STATE} === 'idle'")


def talk(page: Page, mode: str):
    choose(page, mode)
    page.click("#start")
    page.until(SPEAKS)
    page.evaluate("window.scrollTo(0, 0)")


def stop(page: Page, server: Server):
    page.click("#start")
    page.until(f"{STATE} === 'idle'")
    wait_for(lambda: all(session["state"] == "closed" for session in http(server, "/sessions")[1]["sessions"]))


def replay(page: Page, server: Server):
    page.go(f"{server.http}/replay.html")
    page.until("document.querySelector('#recordings button')")
    page.click("#recordings button")
    page.until("!document.getElementById('player').hidden")
    page.click("#play")
    page.until("+document.getElementById('position').value >= 4 && document.getElementById('picture').naturalWidth > 0")
    page.click("#play")
    page.until(f"{STATE} === 'idle'")
    page.evaluate("window.scrollTo(0, 0)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--language", choices=["en", "zh"], default="en")
    parser.add_argument("--screen", choices=SCREENS, action="append")
    parser.add_argument("--theme", choices=THEMES, action="append")
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        take(chosen, Path(scratch))


def take(chosen: argparse.Namespace, scratch: Path):
    picture = scratch / "circle.jpg"
    picture.write_bytes(base64.b64decode(jpeg(drawn("circle", (220, 20, 20)))))
    question = say("Hello, what is your name?")
    write_wav(scratch / "question.wav", np.pad(question, (0, 9 * UNIT - len(question))))
    write_camera(scratch / "camera.y4m", 640, 480)
    model = ("--model", str(ROOT / "models/nano"), "--set", "engine.seed=7")
    server = Server(*model, log=scratch / "server.log")
    recording = Server(*model, "--set", f"record.dir={scratch / 'kept'}", log=scratch / "recording.log")
    browser = Browser(scratch / "profile", scratch / "question.wav", scratch / "camera.y4m", scratch / "browser.log")
    try:
        for screen in chosen.screen or SCREENS:
            for theme in chosen.theme or THEMES:

                def opened(on: Server) -> Page:
                    page = browser.open(on.http, **SCREENS[screen], dark=theme == "dark")
                    if not page.evaluate("document.documentElement.lang").startswith(chosen.language):
                        page.click("#language")
                    return page

                def shot(page: Page, name: str):
                    page.screenshot(chosen.folder / f"{chosen.language}-{screen}-{theme}-{name}.png")

                page = opened(server)
                start(page)
                shot(page, "1-start")
                chat(page, picture)
                shot(page, "2-chat")
                talk(page, "audio")
                shot(page, "3-voice")
                details(page)
                shot(page, "6-details")
                stop(page, server)
                settings(page)
                shot(page, "7-settings")
                page.close()
                page = opened(recording)
                talk(page, "video")
                shot(page, "4-video")
                stop(page, recording)
                replay(page, recording)
                shot(page, "5-replay")
                page.close()
    finally:
        browser.close()
        for started in (server, recording):
            started.stop()
    print(*sorted(chosen.folder.glob("*.png")), sep="\n")


if __name__ == "__main__":
    main()
