"""The legacy dialect: exactly its own fields, text and sound in one event."""
from realtime import UNIT, Client, speech

FIELDS = {
    "session.queue_done": {"type"},
    "session.created": {"type", "session_id", "prompt_length"},
    "response.listen": {"type", "kv_cache_length"},
    "response.output_audio.delta": {"type", "text", "audio", "end_of_turn", "kv_cache_length"},
    "session.closed": {"type", "reason"},
}


def test_a_conversation(server):
    sound = speech(10)
    with Client(server) as client:
        created = client.update()
        assert created["session_id"].startswith("rt_") and created["session_id"][3:].isdigit()
        answers = [client.step_legacy(sound[i * UNIT : (i + 1) * UNIT]) for i in range(10)]
        assert [a["type"] for a in answers[:3]] == ["response.listen"] * 3
        lengths = [a["kv_cache_length"] for a in answers]
        assert lengths == sorted(lengths) and lengths[0] > created["prompt_length"]
        closed, code = client.say_goodbye()
    assert closed["reason"] == "stopped" and code == 1000
    for event in client.heard:
        assert set(event) == FIELDS[event["type"]], event


def test_both_dialects_decide_alike(server):
    """With the server's seed, the same sound gives the same decisions in both dialects, which differ in spelling
    only."""
    sound = speech(8)
    with Client(server) as client:
        client.update()
        legacy = [client.step_legacy(sound[i * UNIT : (i + 1) * UNIT]) for i in range(8)]
    with Client(server) as client:
        client.init(system_prompt="You are a helpful assistant.")
        current = [client.step(sound[i * UNIT : (i + 1) * UNIT]) for i in range(8)]
    for old, new in zip(legacy, current):
        if new[0]["kind"] == "listen":
            assert old["type"] == "response.listen"
        else:
            assert old["text"] == "".join(d.get("text", "") for d in new)
        assert old["kv_cache_length"] == new[-1]["metrics"]["kv_cache_length"]


def test_short_appends_are_refused(server):
    with Client(server) as client:
        client.update()
        client.append_legacy(speech(0.2))
        error = client.until_error()
        assert error["code"] == "invalid_payload" and "4000" in error["message"]
        assert client.step_legacy(speech(1))["type"] == "response.listen"


def test_video_mode_speaks_legacy_too(server):
    with Client(server, mode="video") as client:
        client.update(max_slice_nums=2)
        assert client.step_legacy(speech(1))["type"] == "response.listen"
        closed, code = client.say_goodbye()
        assert (closed["reason"], code) == ("stopped", 1000)
