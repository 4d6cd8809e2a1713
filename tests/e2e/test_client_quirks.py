"""Existing clients and what each relies on: one test for each habit. None of them may break."""
import base64
import json
import struct
import time

import numpy as np

from realtime import UNIT, Client, b64, floats, http, speech

SILENCE = np.zeros(UNIT, np.float32)


def test_robot_fetches_the_default_voice_then_talks(server):
    """A robot: fetches the default voice over HTTP, sends unknown payload fields, its own close reasons and pings."""
    status, voice = http(server, "/api/default_ref_audio")
    assert status == 200 and voice["sample_rate"] == 16000 and len(floats(voice["base64"])) > 4000
    assert voice["samples"] == len(floats(voice["base64"])) and abs(voice["duration"] - voice["samples"] / 16000) < 0.001 and voice["name"].endswith(".wav")
    with Client(server, mode="video", ping_interval=1) as client:
        reference = {"ref_audio_base64": voice["base64"], "tts_ref_audio_base64": voice["base64"]}
        client.init(system_prompt="You are a robot.", use_tts=True, voice=reference, config={"generate_audio": True, "length_penalty": 1.1, "force_listen_count": 1})
        for _ in range(2):
            last = client.step(SILENCE, force_listen=False, max_slice_nums=1)[-1]
            assert last["metrics"]["kv_cache_length"] > 0
        closed, code = client.say_goodbye("client_rollover")
        assert (closed["reason"], code) == ("client_rollover", 1000), "the transport closes after session.closed"


def test_queue_done_comes_before_created_and_first(server):
    """One client rejects a session.created before queue_done; another reads exactly one message before it sends."""
    with Client(server) as client:
        assert client.receive()["type"] in ("session.queue_done", "session.queued")
        client.send({"type": "session.init", "payload": {}})
        client.until("session.created")


def test_init_on_open_without_waiting(server):
    """A session.update or session.init sent right after opening is held, not refused."""
    for event in ({"type": "session.init", "payload": {}}, {"type": "session.update", "session": {"instructions": "Hi."}}):
        with Client(server) as client:
            client.send(event)
            client.until("session.created")
            assert [e["type"] for e in client.heard] == ["session.queue_done", "session.created"]


def test_key_as_subprotocol(server):
    """A desktop companion: offers the key as a subprotocol beside another one, which is echoed."""
    with Client(server, subprotocols=["map.realtime", "map-api-key.secret"]) as client:
        assert client.socket.subprotocol == "map.realtime"
        client.init()


def test_twenty_millisecond_frames(server):
    """The interview provider: appends of 320 samples, unknown query keys, a Bearer header; knows only some events."""
    with Client(server, query="&model=MiniCPM-o-4.5-Realtime", additional_headers={"Authorization": "Bearer key"}) as client:
        client.init(system_prompt="Hi.", config={"tts_enabled": True})
        for i in range(51):
            client.append(speech(2)[i * 320 : (i + 1) * 320])
        assert [client.until("response.output.delta")["input_id"] for _ in range(2)] == ["input_1", "input_51"]


def test_phone_bot_greeting_events_are_ignorable(server):
    """Phone bots: an empty Bearer header, OpenAI events (answered by unknown_event), a second of zeros to interrupt."""
    with Client(server, additional_headers={"Authorization": "Bearer "}, ping_interval=1) as client:
        client.update()
        for foreign in ("conversation.item.create", "response.create", "response.cancel", "ping"):
            client.send({"type": foreign, "item": {"role": "user"}})
            assert client.until_error()["code"] == "unknown_event"
        client.append_legacy(speech(0.7))  # a second buffer, of its own length
        assert client.step_legacy(SILENCE, force_listen=True)["type"] == "response.listen"


def test_foreign_query_keys_and_later_updates(server):
    """A search client: many query keys; a second session.update in mid-session is an error that changes nothing."""
    with Client(server, mode="video", query="&duplex=1&model=x&minicpmo45_native_duplex=1&autostart=0") as client:
        client.send({"type": "session.update", "session": {"instructions": "Hi.", "modalities": ["text"], "input_audio_format": "pcm16", "extra_body": {}}})
        client.until("session.created")
        client.send({"type": "session.update", "session": {"instructions": "Now rhyme."}})
        assert client.until_error()["code"] == "invalid_event"
        assert client.step_legacy(SILENCE, force_speak=True, text="hello")["type"] == "response.listen"


def test_probe_fields_of_a_native_client(server):
    """A native probe: ignored config keys and append fields, a sliding window, refused binary frames."""
    config = {"force_listen_count": 0, "top_k": 20, "greedy_listen_speak_decision": True, "listen_prob_scale": 1.0, "temperature": 0.7, "sliding_window_mode": "basic", "basic_window_high_tokens": 4000, "basic_window_low_tokens": 3500}
    with Client(server) as client:
        client.init(mode="full_duplex", config=config)
        client.step(SILENCE, format="pcm_f32le", sample_rate=16000, input_id="mine", speech_active=False, continuation_tick=True)
        client.send(b"\x00\x01")
        assert client.closed() == 1003


def test_micro_turns_and_string_ids(server):
    """An adapter that sends pieces of 200 ms: session_id is a string, and nothing harmless causes an error."""
    with Client(server) as client:
        assert isinstance(client.init()["session_id"], str)
        for i in range(5):
            client.append(speech(1)[i * 3200 : (i + 1) * 3200])
        client.until("response.output.delta")


def test_relay_pops_the_mode(server):
    """A relay that drops the mode from the URL; `full_duplex` in the payload means video."""
    with Client(server, mode=None) as client:
        assert client.init(mode="full_duplex")["mode"] == "full_duplex"
        client.step(SILENCE)


def test_half_duplex_page_fields(server):
    with Client(server) as client:
        client.init(config={"max_new_speak_tokens": 10, "force_speak": True})
        client.step(SILENCE)


def test_unknown_modes_are_refused(server):
    """A game with mode=text or mode=voice gets an error, then close code 1008."""
    for mode in ("text", "voice", "duplex", ""):
        with Client(server, mode=mode) as client:
            assert client.until_error()["code"] == "invalid_payload"
            assert client.closed() == 1008


def test_one_append_of_any_length(server):
    """A synchronous adapter sends one long append and waits."""
    with Client(server) as client:
        client.init()
        client.append(speech(3))
        assert [client.until("response.output.delta")["chunk_index"] for _ in range(3)] == [0, 1, 2]


def test_listen_has_a_response_id(server):
    with Client(server) as client:
        client.init()
        ids = [client.step(SILENCE)[0]["response_id"] for _ in range(3)]
        assert len(set(ids)) == 3


def test_chat_without_url_mode(server):
    """A load script reads one message, then sends an init with mode turn_based, without a mode in the URL."""
    with Client(server, mode=None) as client:
        client.receive()
        client.send({"type": "session.init", "payload": {"mode": "turn_based", "use_tts": False}})
        assert client.until("session.created")["mode"] == "turn_based"
        assert client.ask("Hello", generation={"max_new_tokens": 4})[1]["text"] is not None


def test_alias_spellings(server):
    """Other names for the same fields, in every place where clients put them."""
    half = b64(speech(0.5))
    with Client(server) as client:
        client.until("session.queue_done")
        client.send({"type": "session.init", "payload": {"instructions": "Hi.", "duplex": {"force_listen_count": 1}, "ref_audio": half, "voice": {"tts_ref_audio": half}}})
        client.until("session.created")
        for fields in (
            {"input": {"audio_base64": b64(SILENCE)}},
            {"payload": {"audio_data": b64(SILENCE)}},
            {"data": {"audio": {"data": b64(SILENCE)}}},
            {"input": {"audio": {"base64": b64(SILENCE)}, "hints": {"force_listen": True, "max_slice_nums": 1}}},
            {"input": {"audio": b64(SILENCE), "frames": []}},
            {"input": {"audio": b64(SILENCE), "frame_base64_list": []}},
        ):
            client.send({"type": "input.append", **fields})
            client.until("response.output.delta")


def test_wav_voice_in_both_dialects(server):
    from realtime import SPOKEN

    wav = base64.b64encode(SPOKEN.read_bytes()).decode()
    with Client(server) as client:
        assert client.init(voice={"ref_audio_base64": f"data:audio/wav;base64,{wav}"})["usage"]["input_token_details"]["audio_tokens"] == 37
    with Client(server) as client:
        client.update(ref_audio=wav)


def test_official_probe_measures_pings_first(server):
    with Client(server) as client:
        started = time.monotonic()
        assert client.socket.ping().wait(10) is not None
        assert time.monotonic() - started < 10
        client.init()
        first = client.step(SILENCE)[0]
        assert {"usage", "chunk_usage", "chunk_index", "server_send_ts"} <= first.keys()


def test_large_chat_message(server):
    """Chat frames may be far larger than duplex ones: 40 MiB of ignored padding pass in chat and close a duplex session
    with 1009."""
    padding = "x" * (40 << 20)
    with Client(server, mode="chat") as client:
        client.init()
        client.send(json.dumps({"type": "input.append", "note": padding, "input": {"messages": [{"role": "user", "content": "Hi"}], "generation": {"max_new_tokens": 2}}}))
        client.until("response.done")
    with Client(server, mode="audio") as client:
        client.init()
        # Only the header of a 40 MiB frame: a client that is still sending could lose the close frame to a TCP reset.
        client.socket.socket.sendall(b"\x81\xff" + struct.pack(">Q", 40 << 20) + bytes(4))
        assert client.closed() == 1009


def test_close_over_http(server):
    with Client(server) as client:
        created = client.init()
        status, answer = http(server, f"/sessions/{created['session_id']}/close", "POST", {"reason": "operator"})
        assert status == 200 and answer["ok"] is True and answer["closed"] is True and answer["session_id"] == created["session_id"]
        client.until("session.closed")
        assert client.closed() == 1000
    assert http(server, f"/sessions/{created['session_id']}/close", "POST", {})[0] == 200, "closing a closed one is fine"
    assert http(server, "/sessions/sess_unknown/close", "POST", {})[0] == 404


def test_rig_counts_terminal_events(server):
    """A test rig keeps at most three seconds under way; an answer with an unknown response_id counts for the oldest."""
    units, sent, processed, turns = 12, 0, set(), []
    with Client(server) as client:
        client.init(config={"unit_responses": True, "force_listen_count": 0, "listen_prob_scale": 0.2, "seed": 3})
        while len(processed) < units:
            while sent < units and sent - len(processed) < 3:
                client.append(speech(units)[sent * UNIT : (sent + 1) * UNIT])
                sent += 1
            event = client.until("response.output.delta", "response.done")
            turns.append(event["turn_id"])
            if event["type"] == "response.done" or event["kind"] == "listen":
                assert event["response_id"] not in processed
                processed.add(event["response_id"])
        client.say_goodbye()
    assert any(event["type"] == "response.done" for event in client.heard), "the model spoke"
    assert turns == sorted(turns, key=lambda turn: int(turn.removeprefix("turn_")))


def test_listen_in_the_second_that_ends_a_turn(server):
    """A client of the reference ends an utterance at listen, so it must come in that second, with the turn's
    response_id."""
    with Client(server) as client:
        client.init(config={"listen_at_turn_end": True, "force_listen_count": 0, "listen_prob_scale": 0.2, "seed": 3})
        ended = 0
        for i in range(12):
            last = client.step(speech(12)[i * UNIT : (i + 1) * UNIT])[-1]
            if "end_of_turn" in last:
                ended += 1
                listen = client.until("response.output.delta")
                assert listen["kind"] == "listen" and "chunk_index" not in listen and "usage" not in listen
                assert [listen[key] for key in ("response_id", "input_id", "metrics")] == [last[key] for key in ("response_id", "input_id", "metrics")]
        assert ended


def test_health_and_status(server):
    status, health = http(server, "/health")
    assert status == 200 and health["status"] == "healthy" and health["version"]
    assert http(server, "/ready")[0] == 200
    status, report = http(server, "/status")
    assert status == 200 and report["workers"] and report["queue"]["length"] == 0 and report["version"] == health["version"]


def begun(server, session: dict) -> Client:
    """A client that connects without saying what it speaks, and begins with this `session.update`."""
    client = Client(server, mode=None)
    client.send({"type": "session.update", "session": session})
    return client


def test_the_first_event_decides_what_a_bare_url_speaks(server):
    """OpenAI's agents SDK for Python connects to the URL as it is given, and speaks first."""
    with begun(server, {"type": "realtime", "instructions": "Be kind."}) as client:
        assert client.receive()["type"] == "session.created"
        assert client.receive()["session"]["instructions"] == "Be kind."
    with begun(server, {"modalities": ["text"]}) as client:
        assert client.receive()["type"] == "session.created"
        assert client.receive()["session"]["modalities"] == ["text"], "the beta's form"
    with begun(server, {"instructions": "Be kind."}) as client:
        assert [client.receive()["type"] for _ in range(2)] == ["session.queue_done", "session.created"]
    with Client(server, mode=None) as client:
        assert client.receive()["type"] == "session.queue_done", "who says nothing speaks Parley's own dialect"
