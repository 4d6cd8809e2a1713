"""What a hostile or broken client can send: each time one clear error or close, and other sessions notice nothing."""
import base64
import json
import socket
import struct

import numpy as np
import pytest

from realtime import UNIT, Client, b64, http, speech

SILENCE = np.zeros(UNIT, np.float32)


@pytest.fixture
def bystander(server):
    """A session beside the broken one; it must still get answers afterwards."""
    with Client(server) as client:
        client.init()
        yield client
        assert client.step(SILENCE)[-1]["metrics"]["dropped_chunks"] == 0
        assert client.say_goodbye()[1] == 1000


@pytest.mark.parametrize("text", ["{", "", "nonsense", '{"type":"session.close"', '{"type":"session.close"}x', '{"a":01,"type":"x"}', '{"type":"\\q"}', "[1,2"])
def test_malformed_json_closes_1003(server, bystander, text):
    with Client(server) as client:
        client.until("session.queue_done")
        client.send(text)
        assert client.closed() == 1003
        assert [e["type"] for e in client.heard] == ["session.queue_done"], "no error event, no session.closed"


@pytest.mark.parametrize("goodbye, code", [('{"type":"session.close"}', 1000), ("nonsense", 1003)])
def test_a_microphone_that_goes_on_while_its_session_closes(server, bystander, goodbye, code):
    for samples in (160, 1600, UNIT) * 15:
        with Client(server) as client:
            client.init()
            with client.talking({"type": "input.append", "input": {"audio": b64(SILENCE[:samples])}}):
                client.send(goodbye)
                assert client.closed() == code
    assert "invariant violated" not in server.log.read_text()


@pytest.mark.parametrize(
    "event, code",
    [
        ([1, 2], "invalid_payload"),
        ("text", "invalid_payload"),
        (None, "invalid_payload"),
        ({}, "missing_field"),
        ({"type": None}, "invalid_payload"),
        ({"type": 7}, "invalid_payload"),
        ({"type": "session.start"}, "unknown_event"),
        ({"type": "session.init"}, "missing_field"),
        ({"type": "session.init", "payload": "x"}, "invalid_payload"),
        ({"type": "session.init", "payload": {"config": {"length_penalty": 9}}}, "invalid_payload"),
        ({"type": "session.init", "payload": {"config": {"chunk_ms": 200}}}, "invalid_payload"),
        ({"type": "session.init", "payload": {"system_prompt": "x" * 32769}}, "invalid_payload"),
        ({"type": "session.init", "payload": {"voice": {"ref_audio_base64": "AAAA!"}}}, "invalid_payload"),
        ({"type": "session.init", "payload": {"voice": {"ref_audio_base64": base64.b64encode(b"\0" * 400).decode()}}}, "invalid_payload"),
        ({"type": "session.update", "session": {}}, "missing_field"),
        ({"type": "session.update", "session": {"instructions": ""}}, "invalid_payload"),
        ({"type": "input.append", "input": {"audio": "AAAA"}}, "not_ready"),
        ({"type": "input_audio_buffer.append", "audio": "AAAA"}, "not_ready"),
    ],
)
def test_errors_before_the_session_starts(server, event, code):
    with Client(server) as client:
        client.until("session.queue_done")
        client.send(json.dumps(event))
        error = client.until_error()
        assert error["code"] == code and error["message"] and error["type"] == "client_error"
        client.send({"type": "session.init", "payload": {}})
        client.until("session.created")


NAN = base64.b64encode(struct.pack("<4f", 0, float("nan"), 0, 0)).decode()
INFINITE = base64.b64encode(struct.pack("<4f", 0, float("inf"), 0, 0)).decode()


@pytest.mark.parametrize(
    "event, code",
    [
        ({"type": "input.append"}, "missing_field"),
        ({"type": "input.append", "input": {}}, "missing_field"),
        ({"type": "input.append", "input": {"audio": 5}}, "invalid_payload"),
        ({"type": "input.append", "input": {"audio": "AAAA"}}, "invalid_payload"),  # 3 bytes are not a float
        ({"type": "input.append", "input": {"audio": ""}}, "invalid_payload"),
        ({"type": "input.append", "input": {"audio": "AA AA"}}, "invalid_payload"),
        ({"type": "input.append", "input": {"audio": "_-8="}}, "invalid_payload"),
        ({"type": "input.append", "input": {"audio": NAN}}, "invalid_payload"),
        ({"type": "input.append", "input": {"audio": INFINITE}}, "invalid_payload"),
        ({"type": "input.append", "input": {"audio": b64(np.zeros(160001))}}, "invalid_payload"),
        ({"type": "input.append", "input": {"audio": b64(SILENCE), "force_listen": "yes"}}, "invalid_payload"),
        ({"type": "input.append", "input": {"audio": b64(SILENCE), "max_slice_nums": 10}}, "invalid_payload"),
        ({"type": "input_audio_buffer.append", "audio": b64(SILENCE)}, "invalid_event"),
        ({"type": "session.init", "payload": {}}, "invalid_event"),
        ({"type": "session.update", "session": {"instructions": "x"}}, "invalid_event"),
    ],
)
def test_errors_in_a_running_session(server, event, code):
    with Client(server) as client:
        client.init()
        client.send(event)
        error = client.until_error()
        assert error["code"] == code and error["message"]
        answer = client.step(SILENCE)
        assert answer[0]["chunk_index"] == 0, "nothing of the refused event was kept"
        assert answer[0]["input_id"] == ("input_2" if "append" in event["type"] else "input_1"), "refused appends count too"


def test_chat_errors(server):
    cases = [
        ({"messages": []}, "invalid_payload"),
        ({}, "missing_field"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "invalid_payload"),
        ({"messages": [{"role": "user"}]}, "missing_field"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "missing_field"),
        ({"messages": [{"role": "user", "content": "x"}], "generation": {"max_new_tokens": 0}}, "invalid_payload"),
        ({"messages": [{"role": "user", "content": "x"}], "streaming": "no"}, "invalid_payload"),
    ]
    with Client(server, mode="chat") as client:
        client.init()
        for body, code in cases:
            client.send({"type": "input.append", "input": body})
            assert client.until_error()["code"] == code, body
        assert client.ask("Hi", generation={"max_new_tokens": 2})[1]["input_id"] == f"input_{len(cases) + 1}"
    with Client(server, mode="chat") as client:
        client.until("session.queue_done")
        client.send({"type": "session.update", "session": {"instructions": "x"}})
        assert client.until_error()["code"] == "invalid_event"


def test_what_is_no_picture_is_refused(server):
    """A frame that is not a picture gives a clear invalid_payload, and the whole append is discarded."""
    jpeg = base64.b64encode(b"\xff\xd8\xff\xe0 not really a picture").decode()
    with Client(server, mode="video") as client:
        client.init()
        client.append(SILENCE, video_frames=[jpeg])
        assert client.until_error()["code"] == "invalid_payload"
        assert client.step(SILENCE)[0]["chunk_index"] == 0
    with Client(server, mode="audio") as client:
        client.init()
        assert client.step(SILENCE, video_frames=[jpeg])[0]["chunk_index"] == 0, "audio mode ignores frames without a look"


def test_eight_megabytes_of_garbage(server, bystander):
    with Client(server) as client:
        client.init()
        client.send({"type": "input.append", "input": {"audio": "!" * (8 << 20)}})
        assert client.until_error()["code"] == "invalid_payload"
        client.step(SILENCE)


def test_ten_thousand_deep_json(server, bystander):
    deep = '{"type":"input.append","input":' + '{"a":' * 10000 + "1" + "}" * 10001
    with Client(server) as client:
        client.init()
        client.send(deep)
        assert client.until_error()["code"] == "invalid_payload"
        client.step(SILENCE)


def test_bad_utf8_closes_1007(server, bystander):
    with Client(server) as client:
        client.init()
        client.socket.send(b'{"type":"\xff\xfe"}', text=True)
        assert client.closed() == 1007


def test_flood_of_errors_closes_1008(server, bystander):
    with Client(server) as client:
        client.init()
        for _ in range(60):
            client.send({"type": "nonsense"})
        assert client.closed() == 1008
        assert all(e["type"] != "session.closed" for e in client.heard)


def test_half_a_frame_then_silence(server, bystander):
    """A raw socket sends half a WebSocket frame and nothing more. It must not block others."""
    raw = socket.create_connection((server.host, server.port))
    raw.sendall(
        b"GET /v1/realtime?mode=audio HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    assert b"101" in raw.recv(4096)
    raw.sendall(b"\x81\xfe\x7f\xff\x00\x00\x00\x00" + b"{" * 1000)
    for _ in range(3):
        assert bystander.step(SILENCE)
    raw.close()


def test_slots_come_back_after_all_that(server):
    status, report = http(server, "/status")
    assert status == 200
    worker = report["workers"][0]
    with_me = worker["busy"]
    clients = [Client(server) for _ in range(worker["slots"] - with_me)]
    for client in clients:
        client.init()
        client.say_goodbye()


def test_good_sound_after_bad(server):
    with Client(server) as client:
        client.init()
        client.append(speech(1))
        assert client.until("response.output.delta")["input_id"] == "input_1"
        client.append(speech(0.5))
        client.send({"type": "input.append", "input": {"audio": NAN}})
        assert client.until_error()["code"] == "invalid_payload"
        client.append(speech(0.5))
        assert client.until("response.output.delta")["input_id"] == "input_4"
