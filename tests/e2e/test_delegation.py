"""Functions that a full-duplex conversation calls while it goes on (docs/protocol.md 17), with the trained model: it hears "What time is it?" and can call a function for that."""
import base64
import json
import signal
import threading
import time

import numpy as np
import pytest

from nodes import wait_until
from realtime import UNIT, Client, floats, say
from resuming import Resuming
from test_durable import come_back
from test_nodes import cluster  # noqa: F401 (a fixture)
from test_openai_clients import NANO, nano
from test_survival import QUICK, busy_workers

CLOCK = {"type": "function", "function": {"name": "get_time", "description": "Get the current time.", "parameters": {"type": "object", "properties": {}}}}
QUESTION = np.concatenate([np.zeros(3 * UNIT, np.float32), say("What time is it?")])
PIECE = UNIT // 10


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = nano(tmp_path_factory.mktemp("delegation"))
    yield server
    assert server.stop() == 0, server.log.read_text()[-4000:]


class Talk:
    """A conversation in the clock of its sound: a second goes in when the one before it is answered, however long that takes."""

    def __init__(self, client: Client, sound: np.ndarray):
        self.client, self.units = client, []  # the answers, one for each second
        self.hear(sound)

    def hear(self, sound: np.ndarray = np.zeros(UNIT, np.float32)):
        whole = np.pad(sound, (0, -len(sound) % UNIT))
        self.units += [self.client.step(second) for second in np.split(whole, len(whole) // UNIT)]

    def until_said(self, words: str) -> int:
        """Goes on in silence until the model has said these words in one turn; how many more seconds it needed."""
        for more in range(20):
            said = {}
            for delta in (delta for unit in self.units for delta in unit if delta["kind"] == "text"):
                said[delta["response_id"]] = said.get(delta["response_id"], "") + delta["text"]
            if any(words in each for each in said.values()):
                return more
            self.hear()
        raise AssertionError(said)

    def until_quiet(self):
        while self.units[-1][0]["kind"] != "listen":
            self.hear()

    def until(self, kind: str) -> dict:
        """The first event of this type, which may have come already. The conversation stands still meanwhile."""
        return next((event for event in self.client.heard if event["type"] == kind), None) or self.client.until(kind)

    def longest_gap(self) -> float:
        """Seconds of the conversation for which a player, in the middle of a turn, had nothing to play."""
        gap, ends = 0.0, {}
        for at, delta in ((at, delta) for at, unit in enumerate(self.units) for delta in unit if delta["kind"] == "audio"):
            turn = delta["response_id"]
            gap = max(gap, at - ends.get(turn, at))
            ends[turn] = max(at, ends.get(turn, at)) + len(floats(delta["audio"])) / 24000
        return gap


def test_the_time_is_asked_and_told_aloud(server):
    """The call goes out while the conversation goes on; no second of it is lost meanwhile, and the result is told within two."""
    with Client(server) as client:
        created = client.init(tools=[CLOCK])
        assert created["granted"] == ["tools"] and "refused" not in created
        talk = Talk(client, QUESTION)
        talk.until_said("I have no clock.")  # it goes on by itself
        begin, done = talk.until("response.tool_call.begin"), talk.until("response.tool_call.done")
        assert 2500 < begin["start_ms"] < begin["end_ms"] < 6000
        assert done["call"] == {"name": "get_time", "arguments": {}} and done["tool_call_id"] == begin["tool_call_id"]
        talk.until_quiet()
        client.send({"type": "input.tool_result", "tool_call_id": done["tool_call_id"], "content": {"time": "14:30"}})
        assert talk.until_said("It is fourteen thirty.") <= 2
        talk.until_quiet()
        assert [unit[0]["chunk_index"] for unit in talk.units] == list(range(len(talk.units)))
        assert talk.longest_gap() < 0.3
        client.say_goodbye()


def test_what_wants_nothing_calls_nothing(server):
    with Client(server) as client:
        client.init(tools=[CLOCK])
        talk = Talk(client, np.concatenate([np.zeros(3 * UNIT, np.float32), say("What is your name?")]))
        talk.until_said("My name is Parley.")
        talk.until_quiet()
        before = len(talk.units)
        talk.hear(QUESTION)  # is judged after the first one
        talk.until_said("I have no clock.")
        assert talk.until("response.tool_call.begin")["start_ms"] > before * 1000
        client.say_goodbye()


def test_a_client_that_never_answers_loses_the_call(tmp_path):
    server = nano(tmp_path, "--set", "limits.delegation_seconds=1")
    with Client(server) as client:
        client.init(tools=[CLOCK])
        talk, _ = called(client)
        call, aborted = talk.until("response.tool_call.done"), talk.until("response.tool_call.abort")
        assert (aborted["tool_call_id"], aborted["reason"]) == (call["tool_call_id"], "timeout")
        client.send({"type": "input.tool_result", "tool_call_id": call["tool_call_id"], "content": "14:30"})
        assert client.until_error()["code"] == "invalid_payload"
    assert server.stop() == 0


def called(client: Client) -> tuple[Talk, dict]:
    """A conversation that has asked its client for the time, and is quiet again."""
    talk = Talk(client, QUESTION)
    talk.until_said("I have no clock.")
    talk.until_quiet()
    return talk, {"type": "input.tool_result", "tool_call_id": talk.until("response.tool_call.done")["tool_call_id"], "content": "14:30"}


def test_a_worker_dies_while_a_call_is_under_way(cluster):  # noqa: F811
    gateway = cluster.gateway(*QUICK)
    workers = {name: cluster.worker(gateway, "--model", str(NANO), "--set", f"nodes.name={name}") for name in "ab"}
    gateway.wait_for_workers(2)
    with Client(gateway) as client:
        client.init(tools=[CLOCK])
        talk, result = called(client)
        (holder,) = wait_until(lambda: len(busy := busy_workers(gateway)) == 1 and busy, "its worker alone is busy")
        workers[holder].end(signal.SIGKILL)
        client.send(result)
        assert talk.until_said("It is fourteen thirty.") <= 2
        client.say_goodbye()
    gateway.wait_until_free()


def test_the_process_dies_while_a_call_is_under_way(tmp_path):
    flags = ("--set", f"journal.dir={tmp_path / 'journal'}")
    server = nano(tmp_path, *flags)
    client = Resuming(server, "audio")
    client.init(tools=[CLOCK])
    talk, result = called(client)
    assert server.stop(signal.SIGKILL) == -signal.SIGKILL
    server = nano(tmp_path, *flags)
    come_back(client, server)
    client.send(result)
    assert talk.until_said("It is fourteen thirty.") <= 2
    client.send(result)
    assert client.until_error()["code"] == "invalid_payload"  # it has had that one
    client.say_goodbye()
    assert server.stop() == 0


def test_what_is_not_granted_is_said(server):
    with Client(server) as client:
        created = client.init(resume=True, checkpoint_profile_id="x", config={"transcribe_input": True, "generation": {"temperature": 0.6}})
        assert created["granted"] == ["resume"]
        assert {each["field"]: each["why"] for each in created["refused"]} == {
            "checkpoint_profile_id": "is not known to this server", "config.transcribe_input": "this server writes down nothing that users say"}


def openai_talk(client: Client, append: str, sound: np.ndarray, until, seconds: float = 120):
    """Speaks 16-bit sound at 16 kHz in real time, and passes each event to `until` until that returns something."""
    over = threading.Event()

    def speak():
        began = time.monotonic()
        for number in range(10**6):
            piece = sound[number * PIECE : (number + 1) * PIECE]
            pcm = (np.pad(piece, (0, PIECE - len(piece))) * 32767).astype("<i2").tobytes()
            client.send({"type": append, "audio": base64.b64encode(pcm).decode()})
            if over.wait(max(0.0, began + (number + 1) * PIECE / UNIT - time.monotonic())):
                return

    microphone = threading.Thread(target=speak)
    microphone.start()
    try:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            event = client.receive()
            assert event["type"] != "error", event
            if (found := until(event)) is not None:
                return found
        raise AssertionError([event["type"] for event in client.heard])
    finally:
        over.set()
        microphone.join()


def test_realtime_calls_in_full_duplex(tmp_path):
    """With openai.duplex_tools the call is an item, and its output is told without response.create."""
    server = nano(tmp_path, "--set", "openai.duplex_tools=true")
    with Client(server, None, "model=any") as client:
        client.until("session.created")
        audio = {"input": {"format": {"type": "audio/pcm", "rate": 16000}, "turn_detection": {"type": "semantic_vad"}}}
        client.send({"type": "session.update", "session": {"type": "realtime", "audio": audio, "tools": [{"type": "function", **CLOCK["function"]}]}})
        said = []

        def heard(event):
            if event["type"] == "response.function_call_arguments.done":
                assert event["name"] == "get_time" and json.loads(event["arguments"]) == {}
                client.send({"type": "conversation.item.create", "item": {"type": "function_call_output", "call_id": event["call_id"], "output": '{"time": "14:30"}'}})
            if event["type"] == "response.output_audio_transcript.delta":
                said.append(event["delta"])
            return True if "fourteen thirty" in "".join(said) else None

        assert openai_talk(client, "input_audio_buffer.append", QUESTION, heard)
    assert server.stop() == 0
