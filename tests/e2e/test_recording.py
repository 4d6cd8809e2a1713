"""Recordings: what a session leaves on disk, what the server serves of it, what remains after a kill."""
import hashlib
import io
import json
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
import wave

import numpy as np
import pytest

from conftest import BINARY, ROOT
from realtime import SPOKEN, UNIT, Client, http, sessions, speech
from test_operations import metrics

PICTURE = (ROOT / "tests/data/pictures/frame.jpg").read_bytes()
SECRET = "k-4f1d0c5e9a7b"


def wait_for(found, seconds: float = 60):
    """Waits until `found` returns something true, and returns it."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if got := found():
            return got
    raise AssertionError("it did not come")


def read_wav(file) -> tuple[int, np.ndarray]:
    with wave.open(file) as f:
        assert (f.getnchannels(), f.getsampwidth()) == (1, 2)
        return f.getframerate(), np.frombuffer(f.readframes(f.getnframes()), "<i2").astype(np.float32) / 32767


def events_of(folder) -> list[dict]:
    return [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]


def the_folder(directory):
    return wait_for(lambda: [path.parent for path in directory.glob("*/*/meta.json")])[0]


def closed(folder) -> bool:
    return json.loads((folder / "meta.json").read_text())["state"] == "closed"


def test_a_probe_session_is_recorded(start_server, tmp_path):
    server = start_server("--set", f"record.dir={tmp_path / 'kept'}", "--set", "engine.seed=7")
    assert http(server, "/ready") == (200, {"status": "ready", "recording": True, "key_required": False, "name_allowed": True, "model": "tiny-omni"}), "a page says so before it opens the microphone"
    heard = tmp_path / "heard.wav"
    probe = subprocess.run(
        [BINARY, "probe", "audio", "--wav", SPOKEN, "--save", heard, "--force-listen-count", "0", "--url", server.http],
        capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert probe.returncode == 0, probe.stderr
    folder = the_folder(tmp_path / "kept")
    wait_for(lambda: closed(folder), 1)
    rate, sent = read_wav(str(folder / "input.wav"))
    events = events_of(folder)
    units = [e["event"]["input"]["audio"] for e in events if e["from"] == "client" and e["event"]["type"] == "input.append"]
    assert rate == 16000 and len(sent) == sum(unit["samples"] for unit in units) == 4 * UNIT
    assert np.abs(sent - speech(4)).max() < 1e-3
    rate, said = read_wav(str(folder / "output.wav"))
    sounds = [e["event"]["audio"] for e in events if e["event"].get("kind") == "audio"]
    assert rate == 24000 and len(said) == sum(sound["samples"] for sound in sounds)
    assert [sound["at"] for sound in sounds] == [int(n) for n in np.cumsum([0] + [s["samples"] for s in sounds[:-1]])][: len(sounds)]
    if sounds:
        _, saved = read_wav(str(heard))
        assert np.abs(saved).sum() == pytest.approx(np.abs(said).sum(), rel=1e-2), "what was heard is what is kept"
    assert events[-1]["event"]["type"] == "session.closed" and [e["t"] for e in events] == sorted(e["t"] for e in events)
    assert (folder.stat().st_mode & 0o777, (folder / "events.jsonl").stat().st_mode & 0o777) == (0o700, 0o600)


def test_pictures_and_the_list(start_server, tmp_path):
    import base64

    server = start_server("--set", f"record.dir={tmp_path}")
    with Client(server, "video") as client:
        created = client.init()
        client.step(speech(1), video_frames=[base64.b64encode(PICTURE).decode()])
        assert [s["state"] for s in http(server, "/sessions")[1]["sessions"]] == ["active"]
        client.say_goodbye()
    session = created["session_id"]
    assert created["recording_id"] == session
    listed = wait_for(lambda: sessions(server, "closed"))
    assert [s["session_id"] for s in listed] == [session] and listed[0]["pictures"] == 1 and listed[0]["mode"] == "video"
    append = next(e for e in events_of(tmp_path / listed[0]["folder"]) if e["event"]["type"] == "input.append")
    frame = append["event"]["input"]["video_frames"][0]["file"]
    with urllib.request.urlopen(f"{server.http}/sessions/{session}/{frame}", timeout=60) as answer:
        assert answer.headers["Content-Type"] == "image/jpeg" and answer.read() == PICTURE
    with urllib.request.urlopen(f"{server.http}/sessions/{session}/input.wav", timeout=60) as answer:
        assert answer.headers["Content-Type"] == "audio/wav" and len(read_wav(io.BytesIO(answer.read()))[1]) == UNIT
    assert metrics(server)["parley_recordings"][()] == 1 and metrics(server)["parley_recording_dropped_events_total"][()] == 0
    assert http(server, f"/sessions/{session}", "DELETE")[0] == 200
    assert http(server, f"/sessions/{session}/input.wav")[0] == 404 and not list(tmp_path.glob("*/*"))


def test_a_killed_server_leaves_recordings_that_open(start_server, tmp_path):
    server = start_server("--set", f"record.dir={tmp_path}", "--set", "engine.seed=7")
    client = Client(server)
    session = client.init(config={"force_listen_count": 0})["session_id"]
    for _ in range(3):
        client.step(speech(1))
    folder = tmp_path / the_folder(tmp_path)
    wait_for(lambda: (folder / "events.jsonl").read_text().count("wall_clock_ms") >= 3)
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    assert len(read_wav(str(folder / "input.wav"))[1]) == 3 * UNIT
    said = len(read_wav(str(folder / "output.wav"))[1])
    events = events_of(folder)
    assert said == sum(e["event"]["audio"]["samples"] for e in events if e["event"].get("kind") == "audio")
    again = start_server("--set", f"record.dir={tmp_path}")
    (listed,) = http(again, "/sessions")[1]["sessions"]
    assert (listed["session_id"], listed["state"], listed["input_samples"], listed["output_samples"], listed["events"]) == (session, "cut", 3 * UNIT, said, len(events))
    assert http(again, f"/sessions/{session}/events.jsonl")[0] == 200


def test_nobody_gets_out_of_the_folder_or_into_anothers(start_server, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("".join(f"{name} {hashlib.sha256(key.encode()).hexdigest()}\n" for name, key in (("ann", SECRET), ("bob", "k-other"))))
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/secret.txt").write_text("not for you")
    server = start_server("--set", f"record.dir={tmp_path / 'kept'}", "--set", f"auth.keys_file={keys}")
    with Client(server, query=f"&api_key={SECRET}") as client:
        session = client.init(api_key=SECRET)["session_id"]
        client.say_goodbye()
    wait_for(lambda: closed(the_folder(tmp_path / "kept")))

    def ask(target: str, key: str | None = SECRET, method: str = "GET") -> int:
        # By hand, because HTTP clients normalize paths before they send them.
        with socket.create_connection((server.host, server.port), timeout=60) as wire:
            authorization = f"Authorization: Bearer {key}\r\n" if key else ""
            wire.sendall(f"{method} {target} HTTP/1.1\r\nHost: localhost\r\n{authorization}Connection: close\r\n\r\n".encode())
            answer = b"".join(iter(lambda: wire.recv(65536), b""))
        assert b"not for you" not in answer and b"ann " not in answer
        return int(answer.split()[1])

    wait_for(lambda: ask(f"/sessions/{session}/meta.json") == 200)
    assert ask(f"/sessions/{session}/meta.json", None) == 401 and ask(f"/sessions/{session}/meta.json", "k-other") == 403
    assert ask(f"/sessions/{session}", "k-other", "DELETE") == 403
    up = ("..", "%2e%2e", "..%2f..", "%2e%2e%2f%2e%2e", "..%5c..", ".", "%00")
    for target in (
        *(f"/sessions/{each}/meta.json" for each in up),
        *(f"/sessions/{session}/frames/{each}" for each in up),
        *(f"/sessions/{session}/frames/{each}%2fsecret.txt" for each in up),
        *(f"/sessions/{session}/frames/..%2f..%2f..%2fsecret.txt" for each in up),
        *(f"/sessions/{session}/{each}/secret.txt" for each in up),
        f"/sessions/{session}/frames/../../../secret.txt",
        f"/sessions/{session}/../../secret.txt",
        f"/sessions/../secret.txt",
        f"/../{tmp_path}/kept/secret.txt",
        f"/{tmp_path}/keys",
    ):
        assert ask(target) == 404, target
    for file in (tmp_path / "kept").rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes(), f"{file} holds the key"


def test_old_recordings_go(start_server, tmp_path):
    server = start_server("--set", f"record.dir={tmp_path}", "--set", "record.keep_bytes=100000")
    for _ in range(3):  # 64 KB each
        with Client(server) as client:
            session = client.init()["session_id"]
            client.step(speech(1))
            client.step(speech(1))
            client.say_goodbye()
        wait_for(lambda: [s for s in http(server, "/sessions")[1]["sessions"] if s["session_id"] == session and s["state"] == "closed"])
    wait_for(lambda: [s["session_id"] for s in http(server, "/sessions")[1]["sessions"]] == [session])
    assert [path.name for path in tmp_path.glob("*/*")] == [session]


def test_a_folder_that_cannot_be_used_is_told(tmp_path):
    (tmp_path / "file").touch()
    result = subprocess.run([BINARY, "serve", "--port", "0", "--set", f"record.dir={tmp_path / 'file'}"], capture_output=True, text=True, timeout=60)
    assert result.returncode == 2 and "record.dir" in result.stderr and len(result.stderr.strip().splitlines()) == 1


def test_nothing_is_recorded_unless_it_is_asked_for(server):
    with Client(server) as client:
        assert "recording_id" not in client.init()
        client.say_goodbye()
    assert http(server, "/sessions")[1] == {"sessions": []} or all(s["state"] != "closed" for s in http(server, "/sessions")[1]["sessions"])
    assert http(server, "/sessions/x/input.wav")[0] == 404
