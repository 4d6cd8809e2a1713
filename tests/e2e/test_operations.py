"""What an operator uses: metrics, logs, the environment, drain and resume."""
import hashlib
import json
import os
import re
import shutil
import subprocess
import urllib.request
from types import SimpleNamespace

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from conftest import BINARY, ROOT, TINY
from nodes import wait_until
from ports import free_port
from realtime import UNIT, Client, http

SILENCE = np.zeros(UNIT, np.float32)


def metrics(server) -> dict[str, dict[tuple, float]]:
    """Returns name -> values by labels, as read by Prometheus' own parser."""
    with urllib.request.urlopen(server.http + "/metrics", timeout=60) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        families = list(text_string_to_metric_families(answer.read().decode()))
    assert len({f.name for f in families}) == len(families), "each family once"
    assert all(f.name.startswith("parley_") and f.documentation for f in families)
    found: dict[str, dict[tuple, float]] = {}
    for family in families:
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def test_metrics_follow_a_session(start_server):
    server = start_server("--set", "worker.max_sessions=2", "--set", "engine.seed=7")
    idle = metrics(server)
    with Client(server) as client:
        client.init()
        for _ in range(3):
            client.step(SILENCE)
        client.send({"type": "nonsense"})
        client.until_error()
        now = metrics(server)
        assert now["parley_sessions"][(("mode", "audio"), ("state", "active"))] == 1
        assert now["parley_unit_latency_seconds_count"][(("mode", "audio"), ("worker", "1"))] == 3
        assert now["parley_errors_total"][(("code", "unknown_event"),)] == 1
        assert now["parley_tokens_total"][(("direction", "input"), ("kind", "audio"), ("worker", "1"))] >= 30
        assert now["parley_stage_seconds_count"][(("stage", "prefill"), ("worker", "1"))] == 3
        assert now["parley_worker_slots"][(("state", "busy"), ("worker", "1"))] == 1
        pages = (("state", "used"), ("worker", "1"))
        wait_until(lambda: metrics(server)["parley_kv_pages"][pages] > idle["parley_kv_pages"].get(pages, 0), "pages are held")  # the worker reports a moment later
        assert now["parley_outbox_bytes"][()] == 0 and now["parley_connections"][()] >= 1
        client.say_goodbye()


def test_drain_and_resume(start_server):
    server = start_server("--set", "worker.max_sessions=2")
    with Client(server) as running:
        running.init()
        assert http(server, "/workers/1/drain", "POST") == (200, {"ok": True, "worker": 1, "draining": True})
        assert http(server, "/ready")[0] == 503
        assert http(server, "/status")[1]["workers"][0]["state"] == "draining"
        with Client(server) as waiting:
            assert waiting.receive()["type"] == "session.queued"
            running.step(SILENCE)
            assert http(server, "/workers/1/resume", "POST")[0] == 200
            waiting.until("session.queue_done")
        listed = http(server, "/sessions")[1]["sessions"]
        assert {s["mode"] for s in listed} == {"audio"} and all(s["session_id"] and s["age_s"] >= 0 for s in listed)
    assert http(server, "/ready")[0] == 200


def test_json_logs_name_the_session(start_server):
    server = start_server("--set", "log.format=json", "--set", "log.actors_level=debug", "--set", "log.net_level=error")
    with Client(server) as client:
        session = client.init()["session_id"]
        client.say_goodbye()
    server.stop()
    lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    assert all({"time", "level", "part", "message"} <= set(line) for line in lines)
    mine = [line for line in lines if line.get("session") == session]
    assert any(line["message"].startswith("ended: user_stop") for line in mine) and all(line["part"] == "actors" for line in mine)
    assert not [line for line in lines if line["part"] == "net" and line["level"] in ("debug", "info")]


def test_each_session_tells_its_story(start_server, tmp_path):
    """Who began when, and what came of it: members in JSON, words otherwise. The key itself is nowhere."""
    keys = tmp_path / "keys"
    keys.write_text(f"ann {hashlib.sha256(b'secret-of-ann').hexdigest()}\n")
    for form in ("json", "text"):
        server = start_server("--set", f"log.format={form}", "--set", f"auth.keys_file={keys}", "--set", "engine.seed=7")
        assert http(server, "/v1/realtime")[0] != 200
        with pytest.raises(InvalidStatus):
            Client(server)
        with Client(server, query="&api_key=secret-of-ann") as client:
            session = client.init()["session_id"]
            for _ in range(3):
                client.step(SILENCE)
            client.say_goodbye()
        server.stop()
        log = server.log.read_text()
        assert "secret-of-ann" not in log and re.search(r"refused 127\.0\.0\.1: ", log)
        if form == "json":
            lines = [each for line in log.splitlines() if (each := json.loads(line)).get("session") == session]
            begin = next(each for each in lines if each["message"] == "begins")
            end = next(each for each in lines if each["message"].startswith("ended: "))
            whose = {"key": "ann", "remote": "127.0.0.1", "mode": "audio", "dialect": "current", "transport": "websocket", "worker": 1}
            assert whose.items() <= begin.items() and whose.items() <= end.items() and 0 <= begin["wait"] < 60
            assert (end["reason"], end["units"], end["moves"]) == ("user_stop", 3, 0) and 0 <= end["late_units"] <= 3 and (end["heard"], end["spoken"] >= 0) == (3, True)
        else:
            assert re.search(rf"{session} begins; key ann, remote 127\.0\.0\.1, mode audio, dialect current, transport websocket, worker 1, wait \d+\.\d\d\d$", log, re.M)
            assert re.search(rf"{session} ended: user_stop after .* out; key ann, .*, reason user_stop, units 3, late_units \d, heard 3\.000, spoken \d+\.\d\d\d, moves 0$", log, re.M)


def test_the_story_says_how_a_client_speaks(start_server):
    server = start_server("--set", "log.format=json", "--set", "engine.seed=7")
    body = {"model": "parley", "messages": [{"role": "user", "content": "Say something."}], "max_tokens": 4}
    assert http(server, "/v1/chat/completions", "POST", body)[0] == 200
    for beta in ({}, {"additional_headers": {"OpenAI-Beta": "realtime=v1"}}):
        with connect(server.realtime + "?model=parley", max_size=None, **beta) as client:
            client.send(json.dumps({"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Say something."}]}}))
            client.send(json.dumps({"type": "response.create"}))
            while json.loads(client.recv(timeout=60))["type"] != "response.done":
                pass
    server.stop()
    ends = [each for line in server.log.read_text().splitlines() if (each := json.loads(line))["message"].startswith("ended: ")]
    assert {(each["dialect"], each["transport"]) for each in ends} == {("completions", "http"), ("realtime", "websocket"), ("realtime_beta", "websocket")}


def test_the_environment_overrides_the_file_and_flags_override_both(tmp_path):
    settings = tmp_path / "a.toml"
    settings.write_text("[limits]\naudio_seconds = 1\nvideo_seconds = 2\n")
    shown = subprocess.run([BINARY, "check-config", settings], capture_output=True, text=True, timeout=60, env=os.environ | {"PARLEY_LIMITS_AUDIO_SECONDS": "7"})
    assert shown.returncode == 0 and "\naudio_seconds = 7\n" in shown.stdout and "\nvideo_seconds = 2\n" in shown.stdout
    wrong = subprocess.run([BINARY, "check-config", settings], capture_output=True, text=True, timeout=60, env=os.environ | {"PARLEY_LIMITS_AUDIO_SECOND": "7"})
    assert wrong.returncode == 2 and "PARLEY_LIMITS_AUDIO_SECOND" in wrong.stderr


def test_flags_override_the_environment(start_server, monkeypatch):
    monkeypatch.setenv("PARLEY_SERVER_HOST", "192.0.2.1")
    assert start_server("--host", "127.0.0.1").http.startswith("http://127.0.0.1:")


def test_the_dashboard_asks_only_for_what_there_is(server):
    dashboard = json.loads((ROOT / "docs/grafana.json").read_text())
    asked = {name for panel in dashboard["panels"] for target in panel["targets"] for name in re.findall(r"parley_\w+", target["expr"])}
    families = http(server, "/metrics")[1]
    for name in asked:
        family = re.sub(r"_(bucket|sum|count)$", "", name)
        assert re.search(rf"^# TYPE {family} ", families, re.M), name


def test_the_health_check_of_compose(start_server, tmp_path):
    server = start_server("--tls", "auto", "--set", f"tls.cert={tmp_path / 'tls.pem'}", "--set", f"tls.key={tmp_path / 'tls.key'}")
    kind, command = json.loads(re.search(r"^ *test: (\[.*\])$", (ROOT / "packaging/compose.yaml").read_text(), re.M)[1])
    assert kind == "CMD-SHELL" and "127.0.0.1:8006" in command
    check = ["sh", "-c", command.replace(":8006", f":{server.port}")]
    assert subprocess.run(check, timeout=60).returncode == 0
    assert server.stop() == 0
    assert subprocess.run(check, timeout=60).returncode != 0


def test_health_while_the_model_is_loaded(tmp_path):
    """/health is 503 until the model is loaded. Loading waits until this test writes config.json, a pipe."""
    model = tmp_path / "model"
    model.mkdir()
    for each in TINY.iterdir():
        if each.name != "config.json":
            (model / each.name).symlink_to(each)
    os.mkfifo(model / "config.json")
    shutil.copy(TINY / "config.json", tmp_path / "config.json")
    port = free_port()
    address = SimpleNamespace(http=f"http://127.0.0.1:{port}")
    with open(tmp_path / "server.log", "w") as log:
        process = subprocess.Popen([BINARY, "serve", "--port", str(port), "--model", str(model)], stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            with open(model / "config.json", "wb") as pipe:  # opens once the server reads it
                status, health = http(address, "/health")
                assert status == 503 and health["status"] == "loading" and health["version"]
                assert http(address, "/ready")[0] == 503
                os.replace(tmp_path / "config.json", model / "config.json")  # in case the server reads it again
                pipe.write((TINY / "config.json").read_bytes())
            assert process.stdout.readline().startswith("ready ")
            status, health = http(address, "/health")
            assert status == 200 and health["status"] == "healthy"
        finally:
            process.terminate()
            assert process.wait(60) == 0
            process.stdout.close()
