"""Audio full-duplex in the current dialect: one decision a second, usage that adds up, the same output for the same seed."""
from collections import Counter

import numpy as np

from realtime import UNIT, Client, b64, speech

USAGE = ("total_tokens", "input_tokens", "output_tokens")


def check_usage(usage: dict):
    inputs, outputs = usage["input_token_details"], usage["output_token_details"]
    assert usage["input_tokens"] == inputs["text_tokens"] + inputs["audio_tokens"] + inputs["vision_tokens"]
    assert usage["output_tokens"] == outputs["text_tokens"] + outputs["audio_tokens"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]


def converse(server, seconds: int, **config) -> tuple[list[list[dict]], dict, dict]:
    sound = speech(seconds)
    with Client(server) as client:
        created = client.init(system_prompt="You are a helpful assistant.", config=config)
        steps = [client.step(sound[i * UNIT : (i + 1) * UNIT]) for i in range(seconds)]
        closed, code = client.say_goodbye()
        assert code == 1000
        return steps, created, closed


def test_one_decision_a_second(server):
    seconds = 10
    steps, created, closed = converse(server, seconds, force_listen_count=3)
    assert created["mode"] == "full_duplex" and created["session_id"].startswith("sess_")
    assert created["prompt_length"] > 0
    for i, deltas in enumerate(steps):
        first, last = deltas[0], deltas[-1]
        assert [d["session_id"] for d in deltas] == [created["session_id"]] * len(deltas)
        assert first["chunk_index"] == i and all("chunk_index" not in d for d in deltas[1:])
        assert first["input_id"] == f"input_{i + 1}"
        assert all("wall_clock_ms" not in d["metrics"] for d in deltas[:-1])
        assert {"kv_cache_length", "wall_clock_ms", "dropped_chunks"} <= last["metrics"].keys()
        kinds = [d["kind"] for d in deltas]
        assert kinds in (["listen"], ["text"], ["audio"], ["text", "audio"]), kinds
        if i < 3:
            assert kinds == ["listen"], "the first three units are forced to listen"
    assert closed["reason"] == "user_stop"


def test_usage_adds_up(server):
    steps, created, closed = converse(server, 8)
    check_usage(created["usage"])
    total = Counter({k: created["usage"][k] for k in USAGE})
    for deltas in steps:
        check_usage(deltas[0]["chunk_usage"])
        check_usage(deltas[0]["usage"])
        assert deltas[0]["chunk_usage"]["input_token_details"]["audio_tokens"] == 10, "ten audio rows a second"
        assert all("usage" not in d and "chunk_usage" not in d for d in deltas[1:])
        total.update({k: deltas[0]["chunk_usage"][k] for k in USAGE})
        assert dict(total) == {k: deltas[0]["usage"][k] for k in USAGE}
    assert dict(total) == {k: closed["usage"][k] for k in USAGE}


def heard(steps: list[list[dict]]) -> list[tuple]:
    return [[(d["kind"], d.get("text"), d.get("audio"), d.get("end_of_turn")) for d in deltas] for deltas in steps]


def test_same_seed_same_answer(server):
    assert heard(converse(server, 8, seed=11)[0]) == heard(converse(server, 8, seed=11)[0])


def test_greedy_is_deterministic_without_a_seed(server):
    """decode_mode affects the words; tts_temperature only how they are spoken."""
    greedy = {"decode_mode": "greedy", "force_listen_count": 0}
    alike = [heard(converse(server, 6, seed=seed, tts_temperature=0, **greedy)[0]) for seed in (1, 2)]
    assert alike[0] == alike[1]
    words = [[[(kind, text) for kind, text, _, _ in step if kind != "audio"] for step in heard(converse(server, 6, seed=seed, **greedy)[0])] for seed in (1, 2)]
    assert words[0] == words[1]


def test_response_ids_name_turns(server):
    steps, _, _ = converse(server, 12, force_listen_count=0, seed=5)
    seen, turn = set(), None
    for deltas in steps:
        for d in deltas:
            if d["kind"] == "listen":
                assert d["response_id"] not in seen, "a listen has an id of its own"
                turn = None
            elif turn is None:
                assert d["response_id"] not in seen, "a new turn has a fresh id"
                turn = d["response_id"]
            else:
                assert d["response_id"] == turn
            seen.add(d["response_id"])
            if d.get("end_of_turn"):
                turn = None


def test_appends_of_any_length_are_gathered(server):
    sound = speech(3)
    pieces = [320, 4096, 16000, 20000, 7584]  # 48,000 samples in clients' own habits
    assert sum(pieces) == 3 * UNIT
    with Client(server) as client:
        client.init()
        start = 0
        for n in pieces:
            client.append(sound[start : start + n])
            start += n
        answers = []
        while len(answers) < 3:
            answers.append(client.until("response.output.delta"))
        assert [a["chunk_index"] for a in answers] == [0, 1, 2]
        assert [a["input_id"] for a in answers] == ["input_1", "input_3", "input_4"]  # silence before the first append makes it a unit


def test_names_of_the_clients_own_come_back(server):
    with Client(server) as client:
        client.init()
        client.send({"type": "input.append", "input": {"audio": b64(speech(0.5)), "force_listen": True, "input_id": "mine"}})
        answer = client.until("response.output.delta")
        assert (answer["kind"], answer["input_id"]) == ("listen", "mine") and "wall_clock_ms" in answer["metrics"]
        client.send({"type": "input.append", "input": {"audio": b64(speech(0.5)), "force_listen": True, "input_id": "mine again"}})
        at_once = client.until("response.output.delta")
        assert (at_once["kind"], at_once["input_id"]) == ("listen", "mine again") and "chunk_index" not in at_once


def test_forced_listen(server):
    with Client(server) as client:
        client.init(config={"force_listen_count": 0, "seed": 3})
        for i in range(6):
            deltas = client.step(np.zeros(UNIT, np.float32), force_listen=True)
            assert [d["kind"] for d in deltas] == ["listen"]


def test_reference_voice_is_part_of_the_prompt(server):
    with Client(server) as client:
        without = client.init(system_prompt="Hello.")["usage"]["input_token_details"]
    with Client(server) as client:
        voice = b64(speech(2))
        with_voice = client.init(system_prompt="Hello.", voice={"ref_audio_base64": voice})["usage"]["input_token_details"]
    assert without["audio_tokens"] == 0 and with_voice["audio_tokens"] == 20
    assert without["text_tokens"] == with_voice["text_tokens"]
