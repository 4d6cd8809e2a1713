#!/usr/bin/env python3
"""What keeping sessions in journal.dir costs a gateway: paced sessions of audio on `stub_server`, in turns without and with it.
  bench/durable.py [--sessions 100] [--seconds 20] [--turns 3] [--folder /tmp]
Prints for each turn the CPU time and the bytes written for a second of a session, and the latency of the answers.
On a virtual machine, memory that nothing has used since it started costs its first user many times as much: --warm N uses N GB first."""
import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

from websockets.asyncio.client import connect

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from realtime import UNIT, b64, speech  # noqa: E402


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def metric(address: str, name: str) -> float:
    with urllib.request.urlopen(f"http://{address}/metrics") as answer:
        return sum(float(line.split()[-1]) for line in answer.read().decode().splitlines() if line.startswith(name + " "))


async def session(address: str, start: float, seconds: int, frames: list[str], waits: list[float]):
    async with connect(f"ws://{address}/v1/realtime?mode=audio", max_size=None, compression=None) as socket:

        async def until(word: str):
            while word not in (event := await socket.recv())[:400]:
                pass
            return event

        await until("session.queue_done")
        await socket.send('{"type":"session.init","payload":{"resume":true}}')
        await until("session.created")
        for second in range(seconds):
            await asyncio.sleep(max(0, start + second - time.monotonic()))
            began = time.monotonic()
            await socket.send(frames[second % len(frames)])
            while "wall_clock_ms" not in await socket.recv():
                pass
            waits.append((time.monotonic() - began) * 1000)
        await socket.send(json.dumps({"type": "session.close"}))
        await until("session.closed")


async def load(address: str, pid: int, sessions: int, seconds: int) -> tuple[float, list[float]]:
    sound = speech(8)
    frames = [json.dumps({"type": "input.append", "input": {"audio": b64(sound[i * UNIT : (i + 1) * UNIT])}}) for i in range(8)]
    waits: list[float] = []
    start = time.monotonic() + 3
    running = [asyncio.ensure_future(session(address, start + i / sessions, seconds, frames, waits)) for i in range(sessions)]
    await asyncio.sleep(start - time.monotonic())
    before = cpu_seconds(pid)
    await asyncio.gather(*running)
    return cpu_seconds(pid) - before, waits


def turn(args, folder: Path | None) -> tuple[float, float, float, float]:
    extra = [f"journal.dir={folder}"] if folder else []
    server = subprocess.Popen([args.binary, *args.flags.split(), "server.port=0", *extra], stdout=subprocess.PIPE, text=True)
    try:
        while not (line := server.stdout.readline()).startswith("ready "):
            pass
        address = line.strip().split("://")[-1]
        threading.Thread(target=server.stdout.read, daemon=True).start()  # its log
        cpu, waits = asyncio.run(load(address, server.pid, args.sessions, args.seconds))
        written = metric(address, "parley_journal_bytes_total")
        lost = metric(address, "parley_journal_lost_sessions_total")
        assert not lost, f"{lost} sessions were not kept"
    finally:
        server.terminate()
        server.wait()
    waits.sort()
    spoken = args.sessions * args.seconds
    return cpu / spoken * 1000, written / spoken / 1000, waits[len(waits) // 2], waits[len(waits) * 99 // 100]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--folder", default="/tmp", help="the logs are written to a new folder in it")
    parser.add_argument("--binary", default=str(ROOT / "build/release/stub_server"))
    parser.add_argument("--warm", type=int, default=0, metavar="GB", help="of memory to use and free first")
    parser.add_argument("--flags", default="speak", help="of stub_server")
    args = parser.parse_args()
    if args.warm:
        subprocess.run([sys.executable, "-c", f"bytearray(b'x') * ({args.warm} << 30)"], check=True)
    print(f"{args.sessions} sessions of {args.seconds} s")
    for number in range(2 * args.turns):
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            kept = number % 2 == 1
            cpu, written, middle, worst = turn(args, Path(folder) / "journal" if kept else None)
            print(f"{'journal.dir' if kept else 'without    '}  {cpu:.3f} ms of CPU and {written:.1f} kB a second, p50 {middle:.1f} ms, p99 {worst:.1f} ms", flush=True)


if __name__ == "__main__":
    main()
