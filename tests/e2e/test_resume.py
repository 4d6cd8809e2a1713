"""A client's connection breaks; it comes back, and its conversation continues with nothing repeated or skipped."""
import random
import time

import numpy as np
import pytest
from websockets.exceptions import InvalidStatus

from nodes import wait_until
from paced import material
from realtime import Client, b64, floats, http
from resuming import Resuming

UNITS = 16


def answered(client: Client) -> int:
    return sum("wall_clock_ms" in e.get("metrics", {}) for e in client.heard if e["type"] == "response.output.delta")


def heard(client: Client) -> tuple[list, np.ndarray]:
    """What was decided and said, and its sound."""
    deltas = [e for e in client.heard if e["type"] == "response.output.delta"]
    words = [(e["kind"], e.get("chunk_index"), e["input_id"], e.get("text")) for e in deltas]
    sound = [floats(e["audio"]) for e in deltas if e["kind"] == "audio"]
    return words, np.concatenate(sound) if sound else np.zeros(0, np.float32)


def assert_same(one: Client, other: Client):
    (words, sound), (calm_words, calm_sound) = heard(one), heard(other)
    assert words == calm_words
    assert len(sound) == len(calm_sound)
    assert not len(sound) or np.max(np.abs(sound - calm_sound)) <= 1e-3


def answers_of(server) -> float:
    """How many seconds the server has answered so far."""
    return sum(float(line.split()[-1]) for line in http(server, "/metrics")[1].splitlines() if line.startswith("parley_unit_latency_seconds_count"))


def test_audio_that_is_cut_again_and_again_is_the_same_conversation(server):
    calm = Client(server)
    calm.init(config={"seed": 21, "force_listen_count": 0})
    for unit in material(21, UNITS):
        calm.step(unit)
    calm.say_goodbye()

    chance = random.Random(3)
    client = Resuming(server, "audio")
    created = client.init(config={"seed": 21, "force_listen_count": 0})
    assert created["event_id"] == 1 and created["resume_seconds"] == 30
    for number, unit in enumerate(material(21, UNITS)):
        before = answers_of(server)
        client.append(unit)
        if number == 0:  # break off when the answer has left the server but nobody has read it
            wait_until(lambda: answers_of(server) > before, "the first second is answered")
            client.break_off()
            assert client.come_back()["resent"] > 0
        while True:
            if chance.random() < 0.4:  # break off before, during or after the answer
                client.break_off()
                if chance.random() < 0.3:
                    time.sleep(0.3)
                client.come_back()
            if answered(client) > number:
                break
            client.until("response.output.delta")
    assert len(client.resumed) > 5
    assert len(client.tokens) == len(set(client.tokens))
    assert_same(client, calm)
    client.say_goodbye()
    assert client.heard[-1]["event_id"] == client.last_event_id


def story_begun(server, **asked) -> tuple[Resuming, str]:
    """A client that has just asked for a story, and the whole story, as another client was told it."""
    calm = Client(server, "chat")
    calm.init()
    _, whole = calm.ask("Tell me a story.", **asked)
    calm.say_goodbye()
    client = Resuming(server, "chat")
    client.init()
    client.send({"type": "input.append", "input": {"messages": [{"role": "user", "content": "Tell me a story."}], **asked}})
    return client, whole["text"]


def told(client: Client) -> str:
    return "".join(e["text"] for e in client.heard if e["type"] == "response.output.delta")


def test_a_chat_goes_on_in_the_middle_of_an_answer(server):
    asked = dict(generation={"max_new_tokens": 40, "seed": 5})
    client, whole = story_begun(server, **asked)
    client.until("response.output.delta")
    client.break_off()
    time.sleep(0.5)  # the answer continues meanwhile
    client.come_back()
    done = client.until_done()
    assert done["text"] == whole == told(client)
    client.break_off()
    assert client.come_back()["resent"] == 0
    assert client.ask("And then?", **asked)[1]["reason"] in ("turn_end", "length")
    client.say_goodbye()


def test_a_connection_that_nobody_knows_to_be_dead_is_replaced(server):
    client = Resuming(server, "audio")
    client.init(config={"force_listen_count": 0})
    client.step(material(4, 1)[0])
    before = client.socket
    client.come_back()  # as after a change of networks: the server still holds the old connection
    old = Client.__new__(Client)
    old.socket, old.heard = before, []
    assert old.closed() == 1008
    assert client.step(material(5, 1)[0])
    client.say_goodbye()


def test_what_was_not_sent_meanwhile_is_taken_as_spoken(server):
    client = Resuming(server, "audio")
    client.init(config={"force_listen_count": 0})
    units = material(6, 12)
    client.step(units[0])
    client.break_off()
    time.sleep(1)
    for unit in units[1:]:
        client.sent.append('{"type":"input.append","input":{"audio":"%s"}}' % b64(unit))
    client.come_back()
    while answered(client) < len(units):
        client.until("response.output.delta")
    assert client.heard[-1]["metrics"]["dropped_chunks"] == 0
    client.say_goodbye()


def refusal(connection: Client) -> dict:
    error = connection.until_error()
    assert connection.closed() == 1008
    return error


def test_claims_that_are_refused(server):
    client = Resuming(server, "audio")
    client.init()
    client.step(material(7, 1)[0])
    wrong = client.tokens[0][:-1] + ("a" if client.tokens[0][-1] != "a" else "b")
    told = {refusal(client.claim(token))["message"] for token in (wrong, "x", wrong * 100)}
    told.add(refusal(Client(server, None, f"session_id=sess_never&resume_token={client.tokens[0]}"))["message"])
    assert len(told) == 1, "nobody learns which it was"
    assert refusal(client.claim(last_event_id=99))["code"] == "resume_refused"
    assert refusal(Client(server, "audio", f"&session_id={client.id}"))["code"] == "invalid_payload"  # without a token, the id is merely in use
    client.break_off()
    client.come_back()
    client.step(material(8, 1)[0])
    assert refusal(client.claim(client.tokens[0]))["code"] == "resume_refused"  # the token is already used
    client.say_goodbye()
    assert refusal(client.claim())["code"] == "resume_refused"  # the session has ended


def test_who_asks_for_nothing_gets_nothing(server):
    with Client(server) as client:
        assert not {"resume_token", "resume_seconds", "event_id"} & set(client.init())
        assert not any("event_id" in delta for delta in client.step(material(9, 1)[0]))
        client.say_goodbye()


def test_the_slot_is_kept_for_a_while_and_then_free(start_server):
    server = start_server("--set", "worker.max_sessions=1", "--set", "limits.resume_seconds=1.5", "--set", "limits.sessions_per_address=1")
    client = Resuming(server, "audio")
    client.init()
    client.break_off()
    with pytest.raises(InvalidStatus, match="429"):  # the waiting session still counts
        Client(server)
    client.come_back()
    client.step(material(10, 1)[0])
    client.break_off()
    gone = time.monotonic()
    wait_until(lambda: not any(http(server, "/status")[1]["sessions"]["audio"].values()), "it is given up")
    assert time.monotonic() - gone > 1
    assert refusal(client.claim())["code"] == "resume_refused"
    with Client(server) as next_one:
        next_one.init()
        next_one.say_goodbye()


def test_a_recording_holds_no_token(start_server, tmp_path):
    server = start_server("--set", f"record.dir={tmp_path / 'records'}")
    client = Resuming(server, "audio")
    client.init()
    client.break_off()
    client.come_back()
    client.step(material(11, 1)[0])
    client.say_goodbye()
    assert server.stop() == 0
    (events,) = (tmp_path / "records").rglob("events.jsonl")
    text = events.read_text()
    assert "session.resumed" in text and "resume_token" not in text
