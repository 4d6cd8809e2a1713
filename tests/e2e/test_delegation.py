"""Functions that a full-duplex conversation calls while it goes on (docs/protocol.md 17), with the trained model: it hears "What time is it?" and can call a function for that."""
import base64
import json
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from realtime import UNIT, Client, floats, say
from test_openai_clients import nano

CLOCK = {"type": "function", "function": {"name": "get_time", "description": "Get the current time.", "parameters": {"type": "object", "properties": {}}}}
PIECE = UNIT // 10


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = nano(tmp_path_factory.mktemp("delegation"))
    yield server
    assert server.stop() == 0, server.log.read_text()[-4000:]


class Talk:
    """A conversation in real time: a microphone that is never off, and what was heard, with the time at which it came."""

    def __init__(self, client: Client, *said: np.ndarray):
        self.client, self.heard = client, []
        self._sound = np.concatenate([np.zeros(0, np.float32), *said])
        self._over = threading.Event()
        self._microphone = threading.Thread(target=self._speak)

    def __enter__(self):
        self._microphone.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._microphone.join()

    def _speak(self):
        began = time.monotonic()
        for number in range(10**6):
            piece = self._sound[number * PIECE : (number + 1) * PIECE]
            self.client.append(np.pad(piece, (0, PIECE - len(piece))))
            if self._over.wait(max(0.0, began + (number + 1) * PIECE / UNIT - time.monotonic())):
                return

    def until(self, *types: str) -> dict:
        while True:
            event = self.client.receive()
            assert event["type"] != "error", event
            self.heard.append((time.monotonic(), event))
            if event["type"] in types:
                return event

    def until_said(self, words: str) -> float:
        """When the sound of a turn with these words began to come."""
        said, turn = "", None
        while True:
            event = self.until("response.output.delta")
            if event["kind"] == "listen":
                said = ""
            if event["kind"] == "text":
                said, turn = said + event["text"], event["response_id"]
            if words in said:
                return next(at for at, each in self.heard if each.get("kind") == "audio" and each["response_id"] == turn) if self._sounds(turn) else self._first_sound(turn)

    def _sounds(self, turn: str) -> bool:
        return any(each.get("kind") == "audio" and each["response_id"] == turn for _, each in self.heard)

    def _first_sound(self, turn: str) -> float:
        while not self._sounds(turn):
            self.until("response.output.delta")
        return self.heard[-1][0]

    def longest_gap(self) -> float:
        """Seconds for which a player, in the middle of a turn, had nothing to play."""
        gap, ends = 0.0, {}
        for at, event in self.heard:
            if event.get("kind") != "audio":
                continue
            turn = event["response_id"]
            gap = max(gap, at - ends.get(turn, at))
            ends[turn] = max(at, ends.get(turn, at)) + len(floats(event["audio"])) / 24000
        return gap


def test_the_time_is_asked_and_told_aloud(server):
    """The call goes out while the conversation goes on; the result is told within two seconds, and the sound has no gap meanwhile."""
    question = [np.zeros(3 * UNIT, np.float32), say("What time is it?")]
    with Client(server) as client:
        created = client.init(tools=[CLOCK])
        assert created["granted"] == ["tools"] and "refused" not in created
        with Talk(client, *question) as talk:
            begin = talk.until("response.tool_call.begin")
            assert 2500 < begin["start_ms"] < begin["end_ms"] < 6000
            done = talk.until("response.tool_call.done")
            assert done["call"] == {"name": "get_time", "arguments": {}} and done["tool_call_id"] == begin["tool_call_id"]
            asked = time.monotonic()
            talk.until_said("I have no clock.")  # it goes on by itself
            client.send({"type": "input.tool_result", "tool_call_id": done["tool_call_id"], "content": {"time": "14:30"}})
            answered = time.monotonic()
            told = talk.until_said("It is fourteen thirty.")
            assert talk.longest_gap() < 0.3, talk.heard
            print(f"call after {asked - talk.heard[0][0]:.1f} s, told {told - answered:.2f} s after the result, longest gap {talk.longest_gap():.3f} s")
            playing = 2.0  # the end of what it says, in which it is not interrupted
            assert told - answered < 2 + playing


def test_what_wants_nothing_calls_nothing(server):
    with Client(server) as client:
        client.init(tools=[CLOCK])
        with Talk(client, np.zeros(3 * UNIT, np.float32), say("What is your name?")) as talk:
            talk.until_said("My name is Parley.")
            for _ in range(3):
                talk.until("response.output.delta")
            assert not [event for _, event in talk.heard if event["type"].startswith("response.tool_call")]


def test_a_client_that_never_answers_loses_the_call(tmp_path):
    server = nano(tmp_path, "--set", "limits.delegation_seconds=1")
    with Client(server) as client:
        client.init(tools=[CLOCK])
        with Talk(client, np.zeros(3 * UNIT, np.float32), say("What time is it?")) as talk:
            call = talk.until("response.tool_call.done")["tool_call_id"]
            aborted = talk.until("response.tool_call.abort")
            assert (aborted["tool_call_id"], aborted["reason"]) == (call, "timeout")
        client.send({"type": "input.tool_result", "tool_call_id": call, "content": "14:30"})
        assert client.until_error()["code"] == "invalid_payload"
    assert server.stop() == 0


def test_what_is_not_granted_is_said(server):
    with Client(server) as client:
        created = client.init(resume=True, checkpoint_profile_id="x", config={"transcribe_input": True, "generation": {"temperature": 0.6}})
        assert created["granted"] == ["resume"]
        assert {each["field"]: each["why"] for each in created["refused"]} == {
            "checkpoint_profile_id": "is not known to this server", "config.transcribe_input": "this server writes down nothing that users say"}


def openai_talk(client: Client, append: str, sound: np.ndarray, until, seconds: float = 25):
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


QUESTION = np.concatenate([np.zeros(3 * UNIT, np.float32), say("What time is it?")])


def test_live_delegates_to_its_client(server):
    """`session.delegation.created` goes out; the answer that comes as commentary is told by the conversation that goes on."""
    address = server.realtime.replace("/v1/realtime", "/v1/live/sessions")
    with Client(SimpleNamespace(realtime=address), None) as client:
        client.send({"type": "session.start", "session": {"model": "any", "audio": {"format": {"type": "audio/pcm", "rate": 16000}}, "delegation": {"type": "client"}}})
        client.until("session.started")
        said = []

        def heard(event):
            if event["type"] == "session.delegation.created":
                assert event["delegation"]["target"] == "client" and event["offset_ms"] > 3000
                client.send({"type": "session.commentary.append", "delegation_id": event["delegation"]["id"], "content": "14:30"})
            if event["type"] == "session.output_transcript.delta":
                said.append(event["delta"])
            return True if "fourteen thirty" in "".join(said) else None

        assert openai_talk(client, "session.input_audio.append", QUESTION, heard)


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
