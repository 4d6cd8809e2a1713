"""The wheel on another system, in the folder PARLEY_SYSTEM, where it was installed into /opt/venv. scripts/wheel_systems.sh makes the system and starts this; ctest does not."""
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from chromium import Browser, write_camera
from realtime import speech, write_wav

SYSTEM = Path(os.environ.get("PARLEY_SYSTEM", "/nowhere"))
INSIDE = ["chroot", str(SYSTEM), "env", "-i", "HOME=/root", "PATH=/opt/venv/bin:/usr/bin:/bin", "LANG=C.UTF-8"]


@pytest.fixture(scope="module")
def url():
    begin = time.monotonic()
    process = subprocess.Popen([*INSIDE, "parley", "serve", "--port", "0"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    line = process.stdout.readline().strip()
    assert line.startswith("ready http://"), line
    print(f"\nready after {time.monotonic() - begin:.1f} s")
    yield line.removeprefix("ready ")
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0


def run(*command) -> str:
    done = subprocess.run([*INSIDE, *command], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def test_the_probes_are_answered(url):
    assert "My name is Parley." in run("parley", "probe", "chat", "What is your name?", "--seed", "1", "--url", url)
    sample = next(SYSTEM.glob("opt/venv/lib/python3*/site-packages/parley/share/parley/question.wav"))
    assert "first sound" in run("parley", "probe", "audio", "--wav", "/" + str(sample.relative_to(SYSTEM)), "--listen", "4", "--fast", "--url", url)


def test_python_starts_a_server_of_its_own():
    script = ("import asyncio, parley\nasync def main():\n with parley.serve() as server:\n  async with parley.Client(server.url, 'chat') as client:\n"
              "   print((await client.ask('What is your name?', generation={'seed': 1})).text)\nasyncio.run(main())")
    assert run("/opt/venv/bin/python", "-c", script) == "My name is Parley.\n"


def test_the_page_opens_in_chromium(url, tmp_path):
    write_camera(tmp_path / "camera.y4m")
    write_wav(tmp_path / "question.wav", speech(9))
    browser = Browser(tmp_path / "profile", tmp_path / "question.wav", tmp_path / "camera.y4m", tmp_path / "log")
    try:
        page = browser.open(url)
        page.click("#start")
        page.until("document.getElementById('caption').textContent.includes('My name is Parley.')")
        assert not page.faults
    finally:
        browser.close()
