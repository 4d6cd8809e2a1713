"""Context size and time limits, with settings small enough for a test."""
import signal

import numpy as np
import pytest

from realtime import UNIT, Client, Closed, http, speech

SILENCE = np.zeros(UNIT, np.float32)


def test_context_full(start_server):
    """A session that fills its context is warned and closed. 1200 tokens stand for 8192, which the engine's test
    uses."""
    server = start_server("--set", "engine.context_tokens=1200")
    with Client(server) as client:
        client.init(config={"force_listen_count": 100})
        with pytest.raises(Closed) as end:
            while True:
                client.append(SILENCE)
                client.until("response.output.delta")
        assert end.value.code == 1000
        kinds = [e["type"] for e in client.heard]
        assert client.heard[-1]["type"] == "session.closed" and client.heard[-1]["reason"] == "context_full"
        warnings = [e for e in client.heard if e["type"] == "session.go_away"]
        assert [w["reason"] for w in warnings] == ["context_full"] and kinds.index("session.go_away") < len(kinds) - 1
        lengths = [e["metrics"]["kv_cache_length"] for e in client.heard if e["type"] == "response.output.delta"]
        assert 1100 < lengths[-1] <= 1200


def test_a_sliding_window_goes_on(start_server):
    server = start_server("--set", "engine.context_tokens=1200")
    with Client(server) as client:
        client.init(config={"force_listen_count": 100, "sliding_window_mode": "basic", "basic_window_high_tokens": 600, "basic_window_low_tokens": 400})
        last = {}
        for _ in range(100):
            last = client.step(SILENCE)[-1]["metrics"]
        assert last["kv_cache_length"] < 700 and last["window_events"] > 0


def test_time_limit_counts_from_the_connection(start_server):
    server = start_server("--set", "limits.audio_seconds=3")
    with Client(server) as client:
        client.init()
        assert client.until("session.go_away")["reason"] == "timeout"
        assert client.until("session.closed")["reason"] == "timeout"
        assert client.closed() == 1000


def test_init_wait_and_chat_idle(start_server):
    server = start_server("--set", "limits.init_seconds=1", "--set", "limits.chat_idle_seconds=1")
    with Client(server) as client:
        client.until("session.queue_done")
        assert client.until("session.closed")["reason"] == "timeout"
    with Client(server, mode="chat") as client:
        client.init()
        assert client.until("session.closed")["reason"] == "timeout"


def test_sigterm_drains(start_server):
    """Running sessions get a warning and a close; the process exits with 0; new ones get service_unavailable or no
    connection."""
    server = start_server("--set", "limits.drain_seconds=1", "--set", "worker.max_sessions=2")
    with Client(server) as client, Client(server) as idle:
        client.init()
        idle.until("session.queue_done")
        server.process.send_signal(signal.SIGTERM)
        assert client.until("session.go_away")["reason"] == "server_shutdown"
        assert client.until("session.closed")["reason"] == "server_shutdown"
        assert client.closed() == 1001
        assert idle.closed() in (1001, 1013)
    assert server.stop() == 0


def test_sigint_ends_an_idle_server(start_server):
    assert start_server().stop(signal.SIGINT) == 0


def test_the_clock_of_chat_is_not_the_one_of_video(start_server):
    """Without a mode in the URL, the init decides which limit applies."""
    server = start_server("--set", "limits.video_seconds=2", "--set", "limits.chat_seconds=60")
    with Client(server, mode=None) as client:
        client.init(mode="turn_based")
        assert client.ask("Hi", generation={"max_new_tokens": 2})
        with pytest.raises(TimeoutError):
            client.receive(seconds=3)


def test_backlog_drops_the_oldest(start_server):
    """If a client sends faster than the model works, its oldest waiting units are dropped and counted."""
    server = start_server()
    with Client(server) as client:
        client.init(config={"force_listen_count": 100})
        sound = speech(1)
        for _ in range(400):
            client.append(sound)
        answered, dropped = 0, 0
        while answered + dropped < 400:
            delta = client.until("response.output.delta")
            answered += 1
            dropped = delta["metrics"]["dropped_chunks"]
        assert delta["input_id"] == "input_400", "the newest is never dropped"
    assert http(server, "/ready")[0] == 200
