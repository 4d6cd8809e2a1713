#!/usr/bin/env python3
"""What a call over WebRTC costs the server beside a WebSocket of OpenAI's Realtime API, and what a bad network does to it: the default model on the real
server, on loopback. Clients of calls are aiortc's, those of WebSockets send 40 ms of PCM16 at a time; for the costs, all of them are silent. Prints two tables.
  bench/calls.py [--binary build/release/parley] [--calls 1,10,20] [--seconds 20] [--trials 3]"""
import argparse
import asyncio
import base64
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import aioice.ice
import websockets

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from realtime import say  # noqa: E402
from test_calls import Call  # noqa: E402

aioice.ice.get_host_addresses = lambda use_ipv4, use_ipv6: ["127.0.0.1"]
QUESTIONS = {"Hello, what is your name?": "My name is Parley.", "What is the capital of France?": "The capital of France is Paris.",
             "What is two plus three?": "Two plus three is five."}
NETWORKS = {"as it is": (0, 0), "1 % lost": (0.01, 0), "5 % lost": (0.05, 0), "10 % lost": (0.1, 0), "up to 60 ms late": (0, 0.06),
            "5 % lost, up to 60 ms late": (0.05, 0.06)}


class OverWebSocket:
    async def open(self, server):
        self._socket = await websockets.connect(server.http.replace("http", "ws") + "/v1/realtime?model=parley", max_size=None)
        await self._socket.recv()
        self._tasks = [asyncio.create_task(self._talk()), asyncio.create_task(self._read())]

    async def _talk(self):
        piece, began, sent = json.dumps({"type": "input_audio_buffer.append", "audio": base64.b64encode(bytes(1920)).decode()}), time.monotonic(), 0
        while True:
            await self._socket.send(piece)
            sent += 1
            await asyncio.sleep(max(0, began + sent * 0.04 - time.monotonic()))

    async def _read(self):
        async for _ in self._socket:
            pass

    async def close(self):
        for task in self._tasks:
            task.cancel()
        await self._socket.close()


class OverWebRTC:
    async def open(self, server):
        self._call = Call()
        await self._call.dial(server, "none")
        await self._call.until("session.created")

    async def close(self):
        await self._call.peer.close()


class Server:
    def __init__(self, a):
        flags = ["--set", "server.port=0", "--set", "engine.seed=7", "--set", "limits.starts_per_address=100000", "--model", a.model]
        self.process = subprocess.Popen([a.binary, "serve", *flags], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.http = next(line.split()[-1] for line in self.process.stdout if line.startswith("ready "))

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_kb(self) -> int:
        return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text())[1])


async def cost(server, kind, count: int, seconds: float) -> tuple[float, float]:
    """Of one connection: milliseconds of CPU a second, and KB of memory."""
    before, everybody = server.memory_kb(), [kind() for _ in range(count)]
    for each in everybody:
        await each.open(server)
    await asyncio.sleep(3)
    used, began = server.cpu_s(), time.monotonic()
    await asyncio.sleep(seconds)
    used, took = server.cpu_s() - used, time.monotonic() - began
    memory = server.memory_kb() - before
    for each in everybody:
        await each.close()
    await asyncio.sleep(3)
    return 1000 * used / took / count, memory / count


async def ask(server, question: str, network) -> tuple[str, float]:
    call = Call()
    try:
        await call.dial(server, "none", network)
        await call.until("session.created")
        call.microphone.say(say(question))
        answer = await call.until("response.output_audio_transcript.done")
        await call.until("output_audio_buffer.stopped")
        return answer["transcript"], call.loud_seconds()
    except TimeoutError:
        return "", 0
    finally:
        await call.peer.close()


async def measure(server, a):
    for kind in (OverWebSocket, OverWebRTC):
        await cost(server, kind, 1, 1)  # what the first of a kind takes for all
    print("| connections | WebSocket: CPU ms a second, KB | WebRTC: CPU ms a second, KB |\n|---|---|---|")
    for count in map(int, a.calls.split(",")):
        found = [await cost(server, kind, count, a.seconds) for kind in (OverWebSocket, OverWebRTC)]
        print(f"| {count} | " + " | ".join(f"{cpu:.2f}, {memory:.0f}" for cpu, memory in found) + " |", flush=True)
    print("\n| packets, each way | questions answered right | sound heard, of what is heard without loss |\n|---|---|---|")
    whole = 0.0
    for name, network in NETWORKS.items():
        found = []
        for _ in range(a.trials):
            found += await asyncio.gather(*(ask(server, question, network) for question in QUESTIONS))
        right = sum(said == want for (said, _), want in zip(found, list(QUESTIONS.values()) * a.trials))
        heard = sum(seconds for _, seconds in found)
        whole = whole or heard
        print(f"| {name} | {right} of {len(found)} | {100 * heard / whole:.0f} % |", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--binary", default="build/release/parley")
    p.add_argument("--model", default="models/nano")
    p.add_argument("--calls", default="1,10,20")
    p.add_argument("--seconds", type=float, default=20)
    p.add_argument("--trials", type=int, default=3)
    a = p.parse_args()
    server = Server(a)
    try:
        asyncio.run(measure(server, a))
    finally:
        server.process.terminate()
        server.process.wait(20)


if __name__ == "__main__":
    main()
