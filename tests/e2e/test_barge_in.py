"""Who speaks while the model does interrupts it; an "mm-hm", a cough or the keyboard does not."""
import asyncio

import numpy as np
import pytest

from talking import RATE, answer_and, hum, voice
from test_openai_clients import nano

ATTEMPTS = 3  # an answer may be over before the sound is


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    started = nano(tmp_path_factory.mktemp("barge_in"))
    yield started
    assert started.stop() == 0, started.log.read_text()[-4000:]


def outcome(server, eagerness: str, sound: np.ndarray):
    question = voice("What are the days of the week?", "en-us")
    for _ in range(ATTEMPTS):
        if found := asyncio.run(answer_and(server.http, eagerness, question, sound, 0.1)):
            return found
    pytest.fail("the model did not answer")


def keyboard() -> np.ndarray:
    rng, out = np.random.default_rng(1), np.zeros(RATE * 6 // 10, np.float32)
    for at in range(0, len(out) - 1200, 2400):
        out[at : at + 1200] += 0.4 * rng.normal(size=1200) * np.exp(-np.arange(1200) / 120)
    return out


@pytest.mark.parametrize("name", ["en-us", "en-gb+m3", "en-us+f2"])
def test_an_interruption_ends_the_answer(server, name):
    found = outcome(server, "high", voice("Hold on, I have another question.", name))
    assert found.status == "cancelled" and found.announced
    assert found.last_delta_at <= found.done_at


@pytest.mark.parametrize("name", ["en-us", "en-gb+m3", "en-us+f2"])
def test_a_short_sound_of_agreement_does_not(server, name):
    found = outcome(server, "high", hum(name))
    assert found.status == "completed" and not found.announced


def test_nor_does_the_keyboard(server):
    found = outcome(server, "high", keyboard())
    assert found.status == "completed" and not found.announced
