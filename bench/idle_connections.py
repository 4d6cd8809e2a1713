#!/usr/bin/env python3
"""What an idle WebSocket costs in memory: what `stub_server` allocates for many of them, before their init and after it.
  bench/idle_connections.py [--connections 2000] [--build build/release]
Prints the anonymous memory of the process, less what it was with 50 connections, divided by the number of connections added since."""
import argparse
import asyncio
import json
import resource
import socket
import subprocess
from pathlib import Path

import websockets

ROOT = Path(__file__).resolve().parents[1]
FIRST = 50  # what the server allocates once, it has allocated by then
FILES = 20_000
SETTLED = 2  # seconds without an event; the memory of what has been done is free by then


def anonymous_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Anonymous:")) * 1024


async def measure(address: str, pid: int, connections: int):
    def connect(n: int):
        return asyncio.gather(*(websockets.connect(address, compression=None, ping_interval=None, open_timeout=60) for _ in range(n)))

    sockets = await connect(FIRST)
    await asyncio.sleep(SETTLED)
    before = anonymous_bytes(pid)

    async def tell(when: str):
        await asyncio.sleep(SETTLED)
        print(f"{when:12} {(anonymous_bytes(pid) - before) / len(others) / 1000:.1f} kB a connection")

    others = [s for _ in range(connections // FIRST) for s in await connect(FIRST)]
    await tell("connected")
    for s in others:
        await s.send(json.dumps({"type": "session.init", "payload": {}}))
    for s in others:
        while json.loads(await s.recv())["type"] != "session.created":
            pass
    await tell("after init")
    for s in sockets + others:
        s.transport.abort()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=2000)
    parser.add_argument("--build", default=str(ROOT / "build/release"))
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    flags = [f"server.port={port}", "limits.connections=12000", "queue.capacity=20000"]
    with subprocess.Popen([f"{args.build}/stub_server", *flags], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            while "ready " not in server.stdout.readline():
                assert server.poll() is None
            asyncio.run(measure(f"ws://127.0.0.1:{port}/v1/realtime?mode=audio", server.pid, args.connections))
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
