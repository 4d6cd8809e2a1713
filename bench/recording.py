#!/usr/bin/env python3
"""What recording costs a session: the unit latency of two servers, one that records and one that does not, in alternation.
  bench/recording.py [--binary build/release/parley] [--sessions 4] [--units 100] [--blocks 3] [--dir FOLDER]
In each block both servers get `sessions` sessions at a time; each unit goes to one server, then to the other, and which is first alternates.
Prints p50, p95, p99 and max of both, their ratios, and how much was recorded and dropped."""
import argparse
import subprocess
import tempfile
import threading
import urllib.request
from pathlib import Path

import numpy as np

from timed_session import UNIT, TimedSession, b64

ROOT = Path(__file__).resolve().parents[1]


class Server:
    def __init__(self, binary: str, *flags: str):
        command = [binary, "serve", "--port", "0", "--model", str(ROOT / "models/tiny-omni"), "--set", "worker.max_sessions=32", "--set", "engine.seed=7", *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.http = self.process.stdout.readline().strip().removeprefix("ready ")

    def stop(self):
        self.process.terminate()
        self.process.wait()


def talk(servers: list[Server], units: int, audio: str, first: int, times: list[list[float]]):
    sessions = [TimedSession(server.http, {"config": {"force_listen_count": 0}}) for server in servers]
    for unit in range(units):
        for turn in range(2):
            which = (unit + first + turn) % 2
            times[which].append(sessions[which].unit_ms(audio))
    for session in sessions:
        session.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=str(ROOT / "build/release/parley"))
    parser.add_argument("--sessions", type=int, default=4)
    parser.add_argument("--units", type=int, default=100)
    parser.add_argument("--blocks", type=int, default=3)
    parser.add_argument("--dir", type=Path, help="where to record; none = a temporary folder")
    given = parser.parse_args()
    noise = b64(np.random.default_rng(0).normal(0, 0.1, UNIT))
    with tempfile.TemporaryDirectory(dir=given.dir) as folder:
        servers = [Server(given.binary), Server(given.binary, "--set", f"record.dir={folder}")]
        times: list[list[float]] = [[], []]
        for block in range(given.blocks):
            threads = [threading.Thread(target=talk, args=(servers, given.units, noise, block + n, times)) for n in range(given.sessions)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        shares = np.percentile(times, [50, 95, 99, 100], axis=1)
        print("             p50     p95     p99     max  units")
        for name, n in (("off", 0), ("on", 1)):
            print(f"{name:8}" + "".join(f"{value:8.1f}" for value in shares[:, n]) + f"{len(times[n]):7}")
        print("on/off  " + "".join(f"{value:8.3f}" for value in shares[:, 1] / shares[:, 0]))
        with urllib.request.urlopen(servers[1].http + "/metrics") as answer:
            for line in answer.read().decode().splitlines():
                if line.startswith("parley_record"):
                    print(line)
        for server in servers:
            server.stop()


if __name__ == "__main__":
    main()
