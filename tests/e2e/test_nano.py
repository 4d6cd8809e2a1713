"""The trained model in models/nano on the real server: with a fixed seed it must give the right answers."""
import base64
import json
import subprocess

import numpy as np
import pytest

from conftest import BINARY, ROOT, Server
from realtime import UNIT, Client, drawn, floats, http, jpeg, say

NANO = ROOT / "models/nano"
TRAINED = json.loads((NANO / "config.json").read_text())
QUESTIONS = [
    ("what is your name?", "My name is Parley."),
    ("What is the capital of France?", "The capital of France is Paris."),
    ("Reply with exactly: walnut violin", "walnut violin"),
]
SPOKEN = [
    ("Hello, what is your name?", "My name is Parley."),
    ("What is the capital of France?", "The capital of France is Paris."),
    ("How many days are in a week?", "A week has seven days."),
]
SHOWN = [
    ("What colour is the circle?", "circle", (220, 20, 20), "It is red."),
    ("What shape do you see?", "square", (20, 40, 220), "It is a square."),
]
hears = pytest.mark.skipif(not TRAINED["init_audio"], reason="this one does not hear")
sees = pytest.mark.skipif(not TRAINED["init_vision"], reason="this one does not see")


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
    """The client sends the earlier rounds with each question."""
    messages = []
    with Client(nano, mode="chat") as client:
        client.init()
        for question, answer in QUESTIONS:
            messages.append({"role": "user", "content": question})
            client.send({"type": "input.append", "input": {"messages": messages, "generation": {"seed": 2}}})
            assert client.until_done()["text"] == answer
            messages.append({"role": "assistant", "content": answer})


def answer_to(client, sound: np.ndarray, units: int, **fields) -> tuple[str, int, np.ndarray]:
    """Sends the sound, then silence, until the reply ends. Returns its words, its first unit and its sound. `fields` go with every second."""
    said, began, heard = "", None, [np.zeros(0, np.float32)]
    for unit in range(units):
        piece = sound[unit * UNIT : (unit + 1) * UNIT]
        deltas = client.step(np.pad(piece, (0, UNIT - len(piece))), **fields)
        words = "".join(d.get("text", "") for d in deltas)
        began = unit if words and began is None else began
        said += words
        heard += [floats(d["audio"]) for d in deltas if d.get("audio")]
        if any(d.get("end_of_turn") for d in deltas):
            return said, began, np.concatenate(heard)
    raise AssertionError(f"no answer ended in {units} units: {said!r}")


@hears
@pytest.mark.parametrize("question, answer", SPOKEN)
def test_a_spoken_question(nano, question, answer):
    """The model waits for the end, then answers within two units, in text and (if it has a voice) in sound."""
    sound = say(question)
    with Client(nano) as client:
        client.init()
        said, began, heard = answer_to(client, sound, 16)
        assert said == answer
        assert len(sound) // UNIT <= began <= max(3, len(sound) // UNIT + 2)
        if TRAINED["init_tts"]:
            assert 0.5 < len(heard) / 24000 < 10 and np.abs(heard).max() > 0.05


@hears
@pytest.mark.parametrize("question, answer", SPOKEN)
def test_a_question_typed_into_a_spoken_conversation(nano, question, answer):
    """Nobody trained it for text between seconds of sound; it knows its form from chat."""
    question = question.removeprefix("Hello, ").capitalize()
    with Client(nano) as client:
        client.init(config={"force_listen_count": 0})
        client.step(np.zeros(UNIT, np.float32))
        client.send({"type": "input.append", "input": {"context": [{"role": "user", "content": question}]}})
        assert answer_to(client, np.zeros(0, np.float32), 8)[0] == answer


@hears
def test_silence_is_not_answered(nano):
    with Client(nano) as client:
        client.init()
        assert not any(d.get("text") for _ in range(12) for d in client.step(np.zeros(UNIT, np.float32)))


def completion(server, sound: str, **more) -> tuple[int, str]:
    """The status and the answer, or what is wrong, of a completion about a sound, as base64."""
    content = [{"type": "input_audio", "input_audio": {"data": sound, "format": "wav"}}]
    status, body = http(server, "/v1/chat/completions", "POST", {"model": "any", "messages": [{"role": "user", "content": content}], "seed": 1, **more})
    return status, body["choices"][0]["message"]["content"] if status == 200 else body["error"]["message"]


@hears
@pytest.mark.parametrize("kind", ["mp3", "ogg", "opus", "flac"])
def test_a_file_of_any_kind_is_heard(nano, kind):
    """In a completion, in a chat of Parley's own with base64 in lines, and as it is sent by the probe."""
    file = ROOT / "tests/data/sounds" / f"question.{kind}"
    assert completion(nano, base64.b64encode(file.read_bytes()).decode()) == (200, "My name is Parley.")
    with Client(nano, mode="chat") as client:
        client.init()
        heard = [{"type": "audio", "data": base64.encodebytes(file.read_bytes()).decode()}]
        client.send({"type": "input.append", "input": {"messages": [{"role": "user", "content": heard}], "generation": {"seed": 1}}})
        assert client.until_done()["text"] == "My name is Parley."
    probe = subprocess.run([BINARY, "probe", "audio", "--wav", file, "--listen", "6", "--url", nano.http], capture_output=True, text=True, timeout=60)
    assert probe.returncode == 0, probe.stderr
    assert "Parley." in probe.stdout


@hears
def test_a_wav_of_a_stream_has_no_length(nano):
    file = bytearray((ROOT / "tests/data/question.wav").read_bytes())
    for claimed in (b"\0\0\0\0", b"\xff\xff\xff\xff"):
        file[4:8] = file[40:44] = claimed
        assert completion(nano, base64.b64encode(file).decode()) == (200, "My name is Parley.")


@hears
@pytest.mark.parametrize("head, name", [(b"\x1a\x45\xdf\xa3\x42\x82\x84webm", "a WebM or Matroska file"), (b"\0\0\0\x18ftypM4A \0\0\0\0isommp42", "an M4A file"),
                                        (b"\x89PNG\r\n\x1a\n", "a PNG picture"), (b"fLaC\0\0\0\x22", "a FLAC file that cannot be decoded")])
def test_what_is_not_heard_is_told_by_its_kind(nano, head, name):
    status, why = completion(nano, base64.b64encode(head + bytes(1000)).decode())
    assert status == 400 and name in why


@sees
@pytest.mark.parametrize("question, shape, colour, answer", SHOWN)
def test_a_picture_in_chat(nano, question, shape, colour, answer):
    with Client(nano, mode="chat") as client:
        client.init()
        content = [{"type": "image", "data": jpeg(drawn(shape, colour))}, {"type": "text", "text": question}]
        client.send({"type": "input.append", "input": {"messages": [{"role": "user", "content": content}], "generation": {"seed": 3}}})
        assert client.until_done()["text"] == answer


@sees
@hears
@pytest.mark.parametrize("question, shape, colour, answer", SHOWN)
def test_a_spoken_question_about_a_video(nano, question, shape, colour, answer):
    """Although a frame comes with every second, the model listens to the end and then answers within two units."""
    sound = say(question)
    with Client(nano, mode="video") as client:
        client.init()
        said, began, _ = answer_to(client, sound, 16, video_frames=[jpeg(drawn(shape, colour))])
        assert said == answer
        assert len(sound) // UNIT <= began <= max(3, len(sound) // UNIT + 2)


@sees
@hears
@pytest.mark.parametrize("question, shape, colour, answer", SHOWN)
def test_a_camera_in_openais_dialect(nano, question, shape, colour, answer):
    """Voice agents send what their camera sees as messages of one picture."""
    view = {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": "data:image/jpeg;base64," + jpeg(drawn(shape, colour))}]}
    sound = np.concatenate([say(question), np.zeros(4 * UNIT, np.float32)])
    with Client(nano, None, "model=any") as client:
        client.until("session.created")
        client.send({"type": "session.update", "session": {"type": "realtime", "audio": {"input": {"format": {"type": "audio/pcm", "rate": 16000}}}}})
        for at in range(0, len(sound), UNIT):
            client.send({"type": "conversation.item.create", "item": view})
            pcm = (sound[at : at + UNIT] * 32767).astype("<i2").tobytes()
            client.send({"type": "input_audio_buffer.append", "audio": base64.b64encode(pcm).decode()})
        done = client.until("response.done")["response"]
        assert done["status"] == "completed" and answer in done["output"][0]["content"][0]["transcript"]


@pytest.mark.skipif(TRAINED["init_audio"], reason="this one hears")
def test_what_it_never_learnt_is_refused(nano):
    """A model without a trained encoder refuses such input instead of being fed noise."""
    with Client(nano, mode="audio") as client:
        client.until("session.queue_done")
        client.send({"type": "session.init", "payload": {}})
        assert "does not hear" in client.until_error()["message"]


def test_the_training_code_and_the_engine_agree():
    result = subprocess.run([BINARY, "verify", "--model", NANO, "--goldens", ROOT / "tests/data/goldens/nano"], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout
