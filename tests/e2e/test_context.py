"""Text for a running full-duplex conversation: it reaches the model, which keeps what it has heard, also where a worker dies."""
import base64
import json
import signal

import numpy as np
import pytest
from websockets.sync.client import connect

from conftest import Server
from draws import TRACE, draws
from nodes import wait_until
from paced import Paced
from realtime import UNIT, Client, http, speech
from test_nodes import SMALL, cluster  # noqa: F401 (a fixture)
from test_recording import wait_for
from test_survival import QUICK, ROOMY, assert_undisturbed, busy_workers

SILENCE = np.zeros(UNIT, np.float32)
NOTES = [{"role": "system", "content": "Answer in French."}, {"role": "user", "content": "My name is Ada."}, {"role": "tool", "content": '{"celsius": 21}'}]


class Told(Paced):
    """A conversation that is told something in writing twice: once with sound, once without."""

    def say(self, number, unit):
        if number == 2:
            self.client.send({"type": "input.append", "input": {"context": NOTES[:1]}})
        self.client.append(unit, **({"context": NOTES} if number == 9 else {}))


def rows(deltas):
    return deltas[-1]["metrics"]["kv_cache_length"], deltas[0]["chunk_usage"]["input_token_details"]["text_tokens"]


def test_the_model_reads_it_before_the_next_second(server):
    with Client(server) as plain, Client(server) as told:
        for client in (plain, told):
            client.init(config={"seed": 3, "force_listen_count": 100})
            client.step(SILENCE)
        told.send({"type": "input.append", "input": {"context": NOTES, "input_id": "note"}})
        before, after = rows(plain.step(SILENCE)), rows(told.step(SILENCE, input_id="sound"))
        text = after[0] - before[0]
        assert text > 30 and after[1] - before[1] == text  # each token is a row, and counted
        assert told.heard[-1]["input_id"] == "sound"
        later = rows(plain.step(SILENCE)), rows(told.step(SILENCE))
        assert later[1][0] - later[0][0] == text and later[1][1] == later[0][1]  # once
        for client in (plain, told):
            client.say_goodbye()


def test_what_is_wrong_with_it_is_said(server):
    with Client(server) as client:
        client.init()
        client.step(SILENCE)
        for context in ([], [{"role": "user"}], [{"role": "user", "content": "x" * 8193}], [{"role": "user", "content": "x"}] * 33, "x"):
            client.send({"type": "input.append", "input": {"context": context}})
            assert client.until_error()["code"] in ("invalid_payload", "missing_field")
        for _ in range(2):
            client.send({"type": "input.append", "input": {"context": [{"role": "user", "content": "x" * 8000}]}})
        client.send({"type": "input.append", "input": {"context": [{"role": "user", "content": "x" * 8000}]}})
        assert "too much" in client.until_error()["message"]
        client.say_goodbye()


def test_text_for_which_there_is_no_room_costs_its_second(start_server):
    server = start_server("--set", "engine.context_tokens=512")
    with Client(server) as client:
        client.init(config={"force_listen_count": 100})
        client.step(SILENCE)
        client.append(SILENCE, context=[{"role": "user", "content": "7 " * 2000}])
        assert "no room" in client.until_error()["message"]
        client.step(SILENCE, context=NOTES)
        client.say_goodbye()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The same conversations in one process, by seed, and what was sampled in them."""
    log = tmp_path_factory.mktemp("undisturbed") / "server.log"
    server = Server(*SMALL, *TRACE, log=log)
    runs = {seed: Told(server, seed, 20, 0).finish() for seed in (21, 22)}
    assert server.stop() == 0
    return runs, draws([log])


def test_it_changes_what_is_said(server, undisturbed):
    plain, told = Paced(server, 21, 20, 0).finish(), undisturbed[0][21]
    assert plain.words[0] == told.words[0] and plain.words != told.words


def test_a_worker_dies_after_it(cluster, undisturbed):  # noqa: F811
    gateway = cluster.gateway(*QUICK)
    workers = {name: cluster.worker(gateway, *ROOMY, "--set", f"nodes.name={name}") for name in "ab"}
    gateway.wait_for_workers(2)
    sessions = [Told(gateway, seed, 20, 0.5) for seed in (21, 22)]
    for answered in (4, 11):
        wait_until(lambda: all(len(s.answered) >= answered or s.problem for s in sessions), "they were told")
        killed = sorted(busy_workers(gateway))[0]
        workers[killed].end(signal.SIGKILL)
        gateway.wait_for_workers(1)
        workers[killed] = cluster.worker(gateway, *ROOMY, "--set", f"nodes.name={killed}")
        gateway.wait_for_workers(2)
    for session in sessions:
        session.finish()
    assert_undisturbed(sessions, undisturbed, cluster)
    gateway.wait_until_free()


class Agent:
    """A client of OpenAI's Realtime API, in full duplex, and what the session behind it was sent."""

    def __init__(self, server, recordings):
        self.socket = connect(server.realtime + "?model=any", max_size=None, compression=None, close_timeout=1)
        self.recordings = recordings

    def send(self, kind, **fields):
        self.socket.send(json.dumps({"type": kind, **fields}))

    def hear(self, samples):
        doubled = np.repeat(samples, 3)[::2]  # 24 kHz
        for piece in np.array_split(doubled, max(1, len(doubled) // 2400)):
            self.send("input_audio_buffer.append", audio=base64.b64encode((piece * 32767).astype("<i2").tobytes()).decode())

    def until(self, kind):
        while (event := json.loads(self.socket.recv(timeout=60)))["type"] != kind:
            assert event["type"] != "error", event
        return event

    def inner(self):
        """The events of the only session there was so far, as far as its recording has them."""
        files = list(self.recordings.glob("*/*/events.jsonl"))
        assert len(files) <= 1
        whole = [line for file in files for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return [(e["from"], e["event"]) for e in map(json.loads, whole)]

    def told(self):
        return [m for who, e in self.inner() if who == "client" and e["type"] == "input.append" for m in e["input"].get("context", [])]


def test_an_agent_tells_the_running_session_what_is_typed(start_server, tmp_path):
    server = start_server("--set", f"record.dir={tmp_path / 'kept'}", "--set", "engine.seed=7")
    wait_for(lambda: http(server, "/ready")[0] == 200)
    agent = Agent(server, tmp_path / "kept")
    agent.until("session.created")
    agent.hear(speech())
    agent.until("input_audio_buffer.speech_started")
    wait_for(lambda: [e for _, e in agent.inner() if e.get("chunk_index") == 0])
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "My order number is 4711."}]}
    agent.send("conversation.item.create", item=item)
    agent.until("conversation.item.done")
    agent.send("session.update", session={"type": "realtime", "instructions": "Answer in French."})
    agent.until("session.updated")
    agent.send("conversation.item.create", item={"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": '{"city":"Paris"}'})
    agent.send("conversation.item.create", item={"type": "function_call_output", "call_id": "call_1", "output": "sunny"})
    wait_for(lambda: len(agent.told()) == 4)
    assert agent.told() == [
        {"role": "user", "content": "My order number is 4711."},
        {"role": "system", "content": "Answer in French."},
        {"role": "assistant", "content": 'get_weather({"city":"Paris"})'},
        {"role": "tool", "content": "sunny"},
    ]

    def text_tokens():
        return [e["chunk_usage"]["input_token_details"]["text_tokens"] for _, e in agent.inner() if "chunk_usage" in e]

    for _ in range(3):
        agent.hear(speech(1))
    wait_for(lambda: max(text_tokens(), default=0) > 30)  # the second that read it; others have some marks alone
    assert sum(e["type"] == "session.init" for who, e in agent.inner() if who == "client") == 1
    agent.socket.close()
