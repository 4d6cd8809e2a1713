#!/usr/bin/env python3
"""A soak test: mixed load with random faults on one server. Its resource use is sampled and must stay flat, and it must exit cleanly.

usage: soak.py BINARY [--seconds S] [--seed N] [--sessions N] [--json F]
Faults: clients that vanish, rubbish on the socket, microphones that go on while the session closes, slow readers, half requests, a worker drained and resumed, sessions closed by hand, sampling options at the
edges of their ranges, and the heaviest messages, with clients that wait for the answer or leave. After each round everybody leaves; the server may then hold no
session or slot, and only as many threads and descriptors as after the first round.
"""
import argparse
import atexit
import base64
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench"))
from heavy_messages import attack  # noqa: E402


def http(url: str, method: str = "GET") -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()


class Server:
    def __init__(self, binary: str, log: Path):
        self.log = log
        flags = ["--port", "0", "--model", "models/tiny-omni", "--set", "worker.max_sessions=6", "--set", "engine.seed=1", "--set", "log.level=warn"]
        self.process = subprocess.Popen([binary, "serve", *flags], cwd=ROOT, stdout=subprocess.PIPE, stderr=open(log, "w"), stdin=subprocess.DEVNULL, text=True)
        line = self.process.stdout.readline().strip()
        if not line.startswith("ready "):
            raise SystemExit(f"soak: the server said {line!r}:\n{log.read_text()}")
        self.url = line.removeprefix("ready ")
        self.address = ("127.0.0.1", int(self.url.rsplit(":", 1)[1]))

    def status(self) -> dict:
        return json.loads(http(self.url + "/status")[1])

    def holds(self) -> dict:
        """Resident memory in MiB, threads and open descriptors of the process."""
        folder = Path("/proc") / str(self.process.pid)
        fields = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
        return {"rss_mib": int(fields["VmRSS"].split()[0]) / 1024, "threads": int(fields["Threads"]), "fds": len(os.listdir(folder / "fd"))}


def connect(server: Server, query: str) -> socket.socket:
    """A raw WebSocket for a client that misbehaves."""
    s = socket.create_connection(server.address, timeout=30)
    key = base64.b64encode(os.urandom(16)).decode()
    s.sendall(f"GET /v1/realtime?{query} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
              f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode())
    s.recv(4096)
    return s


def frame(data: bytes, opcode: int = 1) -> bytes:
    head = bytes([0x80 | opcode])
    size = len(data)
    head += bytes([0x80 | size]) if size < 126 else bytes([0xFE]) + size.to_bytes(2, "big") if size < 65536 else bytes([0xFF]) + size.to_bytes(8, "big")
    return head + b"\0\0\0\0" + data  # a mask of zeros


def vanish(server: Server, chance: random.Random) -> None:
    s = connect(server, "mode=audio")
    if chance.random() < 0.7:
        s.sendall(frame(b'{"type":"session.init","payload":{}}'))
    if chance.random() < 0.5:
        s.sendall(frame(json.dumps({"type": "input.append", "input": {"audio": base64.b64encode(bytes(64000)).decode()}}).encode())[: chance.randrange(1, 80000)])
    s.close()


def rubbish(server: Server, chance: random.Random) -> None:
    s = connect(server, "mode=chat")
    for _ in range(chance.randrange(1, 20)):
        kind = chance.randrange(3)
        data = chance.randbytes(chance.randrange(0, 300)) if kind else json.dumps({"type": chance.choice(["session.init", "input.append", "x", ""]), "payload": 1}).encode()
        try:
            s.sendall(frame(data, chance.choice([1, 1, 1, 2, 9, 10])) if kind < 2 else data)
        except OSError:
            break
    s.close()


def talk_on(server: Server, chance: random.Random) -> None:
    """Says goodbye, in one of the dialects or by a close frame, while the microphone goes on until the server has closed."""
    query, pieces, goodbye = chance.choice([
        ("mode=audio", b'{"type":"input.append","input":{"audio":"%s"}}', b'{"type":"session.close"}'),
        ("mode=chat", b'{"type":"input.append","input":{"audio":"%s"}}', b"not JSON"),
        ("dialect=openai", b'{"type":"input_audio_buffer.append","audio":"%s"}', b"{" * 1000),
        ("mode=audio", b'{"type":"input.append","input":{"audio":"%s"}}', None),
    ])
    s = connect(server, query)
    if query == "mode=audio":
        s.sendall(frame(b'{"type":"session.init","payload":{}}'))
    piece = frame(pieces % base64.b64encode(bytes(chance.choice([640, 3200, 64000]))))
    s.sendall(piece)
    s.sendall(frame(goodbye) if goodbye else frame(b"\x03\xe8", 8))
    s.settimeout(0.01)
    end = time.monotonic() + 5
    while time.monotonic() < end:
        try:
            s.sendall(piece[: chance.randrange(1, len(piece) + 1)] if chance.random() < 0.05 else piece)
            if s.recv(65536) == b"":
                break
        except TimeoutError:
            continue
        except OSError:
            break
    s.close()


def half_request(server: Server, chance: random.Random) -> None:
    with socket.create_connection(server.address, timeout=30) as s:
        s.sendall(b"POST /sessions/x/close HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{}"[: chance.randrange(1, 80)])


def drain_and_resume(server: Server, chance: random.Random) -> None:
    worker = server.status()["workers"][0]["id"]
    http(f"{server.url}/workers/{worker}/drain", "POST")
    time.sleep(chance.uniform(0, 1))
    http(f"{server.url}/workers/{worker}/resume", "POST")


def close_by_hand(server: Server, chance: random.Random) -> None:
    sessions = json.loads(http(server.url + "/sessions")[1])["sessions"]
    if sessions:
        http(f"{server.url}/sessions/{chance.choice(sessions)['session_id']}/close", "POST")


def hostile_client(server: Server, chance: random.Random) -> None:
    attack(server.url, chance)


FAULTS = [vanish, rubbish, talk_on, half_request, drain_and_resume, close_by_hand, hostile_client]


def load(binary: str, server: Server, sessions: int, seconds: int, report: Path) -> subprocess.Popen:
    return subprocess.Popen([binary, "load", "--url", server.url, "--mode", "audio,chat,video", "--mixed-dialects", "--sessions", str(sessions), "--seconds", str(seconds),
                             "--barge-in", "0.1", "--jitter", "0.2", "--think", "1", "--json", str(report)], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def settled(server: Server) -> dict:
    """Waits until no session is left. A slot that does not come back is a leak."""
    for _ in range(300):
        status = server.status()
        if all(w["busy"] == 0 for w in status["workers"]) and not status["queue"]["length"]:
            return status
        time.sleep(0.1)
    raise SystemExit(f"soak: sessions or slots were left behind: {status}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--seconds", type=int, default=1800)
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("/tmp"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    server = Server(options.binary, options.folder / "soak-server.log")
    atexit.register(server.process.kill)
    counts, samples, errors = {f.__name__: 0 for f in FAULTS}, [], {}
    units = turns = 0
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        report = options.folder / "soak-load.json"
        report.unlink(missing_ok=True)
        crowd = load(options.binary, server, options.sessions, 20, report)
        while crowd.poll() is None:
            fault = chance.choice(FAULTS)
            fault(server, chance)
            counts[fault.__name__] += 1
            time.sleep(chance.uniform(0, 1))
            if server.process.poll() is not None:
                raise SystemExit(f"soak: the server has gone:\n{server.log.read_text()[-6000:]}")
        if crowd.returncode != 0:
            raise SystemExit(f"soak: the load generator ended with {crowd.returncode}")
        figures = json.loads(report.read_text())
        units += figures["units"]["answered"]
        turns += figures["turns"]
        for code, count in figures["errors"].items():
            errors[code] = errors.get(code, 0) + count
        settled(server)
        samples.append(server.holds())
        print(f"soak: {len(samples)} rounds, {units} units, {turns} turns, {sum(counts.values())} faults, {samples[-1]}", flush=True)
    server.process.send_signal(signal.SIGTERM)
    status = server.process.wait(120)
    log = server.log.read_text()
    if status != 0 or "Sanitizer" in log or "invariant violated" in log:
        raise SystemExit(f"soak: the server ended with {status}:\n{log[-6000:]}")
    first, last = samples[min(2, len(samples) - 1)], samples[-1]
    summary = {"rounds": len(samples), "units": units, "turns": turns, "faults": counts, "errors_told_to_clients": errors, "after_round_3": first, "at_the_end": last}
    print(json.dumps(summary, indent=1))
    if options.json:
        options.json.write_text(json.dumps(summary, indent=1) + "\n")
    if last["threads"] > first["threads"] or last["fds"] > first["fds"] + 4:
        raise SystemExit("soak: threads or descriptors have grown")
    return 0


if __name__ == "__main__":
    sys.exit(main())
