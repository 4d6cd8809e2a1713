"""What a newcomer does first: ./run, the page, curl /metrics, an existing program."""
import json
import signal
import subprocess
from types import SimpleNamespace

import numpy as np
import openai
import pytest

from chromium import Browser, write_camera
from conftest import BINARY, ROOT
from pages import SHOTS, SPEAKS, STATE
from realtime import UNIT, drawn, jpeg, say, write_wav
from test_operations import metrics

SEES = json.loads((ROOT / "models/nano/config.json").read_text())["init_vision"]
pytestmark = pytest.mark.skipif(BINARY != ROOT / "build/release/parley", reason="./run builds and starts the release preset")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    log = tmp_path_factory.mktemp("run") / "log"
    with open(log, "w") as to:
        process = subprocess.Popen([ROOT / "run", "--port", "0"], stdout=subprocess.PIPE, stderr=to, stdin=subprocess.DEVNULL, text=True)
        line = process.stdout.readline().strip()
        assert line.startswith("ready http://127.0.0.1:"), log.read_text()[-4000:]
        yield SimpleNamespace(http=line.removeprefix("ready "))
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0 and process.stdout.read() == "", log.read_text()[-4000:]


def test_the_page_talks_and_is_heard(server, tmp_path):
    """A user asks for its name repeatedly and waits. With default sampling one answer may be missing, but not all."""
    write_camera(tmp_path / "camera.y4m")
    question = say("Hello, what is your name?")
    write_wav(tmp_path / "question.wav", np.pad(question, (0, 9 * UNIT - len(question))))
    SHOTS.mkdir(exist_ok=True)
    browser = Browser(tmp_path / "profile", tmp_path / "question.wav", tmp_path / "camera.y4m", tmp_path / "log")
    try:
        page = browser.open(server.http)
        page.click("#start")
        page.until("document.getElementById('caption').textContent.includes('My name is Parley.')")
        if SPEAKS:
            page.until("parseFloat(document.getElementById('played').textContent) >= 0.5")
        page.screenshot(SHOTS / "newcomer.png")
        page.click("#start")
        page.until(f"{STATE} === 'idle'")
        assert not page.faults and all(url.startswith((server.http, "ws" + server.http[4:], "about:", "blob:")) for url in page.asked)
    finally:
        browser.close()


def test_prometheus_reads_the_metrics(server):
    found = metrics(server)
    assert found["parley_worker_up"][(("worker", "1"),)] == 1 and sum(found["parley_sessions_ended_total"].values()) >= 1


def test_an_existing_program_gets_an_answer(server):
    ai = openai.OpenAI(base_url=server.http + "/v1", api_key="none", max_retries=0, timeout=120)
    said = ai.chat.completions.create(model="minicpm-o", messages=[{"role": "user", "content": "What is your name?"}], seed=1)
    assert said.choices[0].message.content == "My name is Parley."


def test_a_picture_is_described_or_refused_in_words(server):
    """The default model says what it sees, or that it has not learnt to see, but does not guess."""
    url = "data:image/jpeg;base64," + jpeg(drawn("circle", (220, 20, 20)))
    ai = openai.OpenAI(base_url=server.http + "/v1", api_key="none", max_retries=0, timeout=120)
    content = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": "What colour is the circle?"}]
    ask = lambda: ai.chat.completions.create(model="minicpm-o", messages=[{"role": "user", "content": content}], max_tokens=16, seed=1)
    if not SEES:
        with pytest.raises(openai.BadRequestError, match="does not see"):
            ask()
    else:
        assert ask().choices[0].message.content == "It is red."
