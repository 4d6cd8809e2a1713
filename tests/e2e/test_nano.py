"""The trained model in models/nano through the real server: it is asked with a fixed seed and has to give the right answers."""
import json
import subprocess

import pytest

from conftest import BINARY, ROOT, Server
from realtime import Client

NANO = ROOT / "models/nano"
TRAINED = json.loads((NANO / "config.json").read_text())
QUESTIONS = [
    ("what is your name?", "My name is Parley."),
    ("What is the capital of France?", "The capital of France is Paris."),
    ("Reply with exactly: walnut violin", "walnut violin"),
]


@pytest.fixture(scope="module")
def nano(tmp_path_factory):
    server = Server("--model", str(NANO), "--set", "engine.seed=7", "--set", "worker.max_sessions=1", log=tmp_path_factory.mktemp("nano") / "server.log")
    yield server
    assert server.stop() == 0, server.log.read_text()[-4000:]


@pytest.mark.parametrize("question, answer", QUESTIONS)
def test_chat(nano, question, answer):
    with Client(nano, mode="chat") as client:
        client.init()
        deltas, done = client.ask(question, generation={"seed": 1})
        assert done["text"] == "".join(d["text"] for d in deltas) == answer
        assert done["reason"] == "turn_end"


def test_a_conversation_of_several_rounds(nano):
    """The client brings the rounds before with each question."""
    messages = []
    with Client(nano, mode="chat") as client:
        client.init()
        for question, answer in QUESTIONS:
            messages.append({"role": "user", "content": question})
            client.send({"type": "input.append", "input": {"messages": messages, "generation": {"seed": 2}}})
            assert client.until_done()["text"] == answer
            messages.append({"role": "assistant", "content": answer})


@pytest.mark.skipif(TRAINED["init_audio"], reason="this one hears")
def test_what_it_never_learnt_is_refused(nano):
    """Without a trained encoder it says so instead of being fed noise."""
    with Client(nano, mode="audio") as client:
        client.until("session.queue_done")
        client.send({"type": "session.init", "payload": {}})
        assert "does not hear" in client.until_error()["message"]


def test_the_training_code_and_the_engine_agree():
    result = subprocess.run([BINARY, "verify", "--model", NANO, "--goldens", ROOT / "tests/data/goldens/nano"], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout
