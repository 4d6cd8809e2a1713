#!/usr/bin/env python3
"""What a session costs the server in each dialect: `stub_server converse`, all of `parley serve` with an engine that answers at once, and
`parley load` on the same machine. Prints a row of a table for each.
  bench/dialects.py [--build build/release] [--sessions 500] [--seconds 30] [--ramp 10] [--rounds 1] [parley openai live]"""
import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(build: Path, dialect: str, a) -> dict:
    server = subprocess.Popen([build / "stub_server", "converse", "server.port=0", "limits.connections=12000", "queue.capacity=20000",
                               "log.level=warn", *a.set], stdout=subprocess.PIPE, text=True)
    try:
        url = next(line.split()[-1] for line in server.stdout if line.startswith("ready "))
        with tempfile.TemporaryDirectory() as folder:
            figures = Path(folder) / "figures.json"
            load = subprocess.Popen([build / "parley", "load", "--url", url, "--dialect", dialect, "--sessions", str(a.sessions), "--seconds",
                                     str(a.seconds), "--ramp", str(a.ramp), "--pause", str(a.pause), "--json", figures], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            time.sleep(a.ramp + 2)  # not an event: the window of the measurement
            begin, before = time.monotonic(), cpu_seconds(server.pid)
            time.sleep(a.seconds - 4)
            window, used = time.monotonic() - begin, cpu_seconds(server.pid) - before
            assert load.wait(60) == 0, load.stdout.read()
            out = json.loads(figures.read_text())
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(20)
    out["cpu_ms"] = used / window / a.sessions * 1000
    out["generator_ms"] = out["generator_cpu_seconds"] / out["seconds"] / a.sessions * 1000
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--build", type=Path, default=Path("build/release"))
    p.add_argument("--sessions", type=int, default=500)
    p.add_argument("--seconds", type=float, default=30)
    p.add_argument("--ramp", type=float, default=10)
    p.add_argument("--pause", type=float, default=5, help="mean seconds of silence between two recordings")
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--set", action="append", default=[], help="a setting of the server")
    p.add_argument("dialects", nargs="*", default=["parley", "openai", "live"])
    a = p.parse_args()
    print("| dialect | CPU a second of a session, ms | of Parley's own | p50 | p99 | worst | spoken seconds | late | gaps | sessions that broke rules | errors |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    own = []
    for _ in range(a.rounds):
        for dialect in a.dialects:
            f = measure(a.build, dialect, a)
            if dialect == "parley":
                own.append(f["cpu_ms"])
            ms = f["milliseconds"]["unit_latency"]
            ratio = f"{f['cpu_ms'] / statistics.median(own):.2f}" if own else "–"
            broken = f.get("sessions_with_violations", "–")
            print(f"| {dialect} | {f['cpu_ms']:.3f} | {ratio} | {ms['p50']:.1f} ms | {ms['p99']:.1f} ms | {ms['max']:.0f} ms | {f['units']['spoken']} "
                  f"| {f['deadline_misses']} | {f['sound']['gaps']} | {broken} | {f['errors'] or 'none'} |", flush=True)
            print(f"{dialect}: {f['sessions']['held']} held, generator {f['generator_ms']:.3f} ms", file=sys.stderr)


if __name__ == "__main__":
    main()
