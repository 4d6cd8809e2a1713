"""A gateway and its workers as separate processes, and ways to stop, kill and restart them."""
import os
import re
import signal
import subprocess
import time
from pathlib import Path

from conftest import BINARY, TINY
from realtime import http

WAIT_SECONDS = 120  # long enough for a sanitized binary on a busy machine


def wait_until(holds, what: str, seconds: float = WAIT_SECONDS):
    """Calls `holds()` a few times a second until it returns something true, and returns that."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := holds():
            return found
        time.sleep(0.05)
    raise AssertionError(f"in vain: {what}")


class Process:
    def __init__(self, log: Path, *command: str, **environment: str):
        self.log = log
        self._file = open(log, "w")
        self.process = subprocess.Popen([BINARY, *command], stdout=subprocess.PIPE, stderr=self._file, stdin=subprocess.DEVNULL, text=True, env=os.environ | environment)

    def logged(self, pattern: str) -> re.Match:
        return wait_until(lambda: re.search(pattern, self.log.read_text()), f"{pattern!r} in {self.log}:\n{self.log.read_text()[-3000:]}")

    def send(self, how: int):
        self.process.send_signal(how)

    def end(self, how: int | None = signal.SIGTERM, seconds: float = 60) -> int:
        """Signals the process (resuming a stopped one first), waits for its end and returns its exit status."""
        if self.process.poll() is None and how is not None:
            if how != signal.SIGKILL:
                self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(how)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self._file.close()


class Gateway(Process):
    """`parley gateway`; ready once constructed."""

    def __init__(self, log: Path, *flags: str, nodes_port: int = 0):
        super().__init__(log, "gateway", "--port", "0", "--nodes-port", str(nodes_port), *flags)
        line = self.process.stdout.readline().strip()
        assert line.startswith("ready http://"), (line, log.read_text())
        self.http = line.removeprefix("ready ")
        self.realtime = self.http.replace("http", "ws", 1) + "/v1/realtime"
        self.nodes = self.logged(r"workers join at (\S+)")[1]

    def workers(self, state: str = "up") -> list[dict]:
        return [w for w in http(self, "/status")[1]["workers"] if w["state"] == state]

    def wait_for_workers(self, count: int) -> list[dict]:
        return wait_until(lambda: len(found := self.workers()) == count and found, f"{count} workers; {self.log.read_text()[-3000:]}")

    def wait_until_free(self):
        """Waits until no session lives and no slot is held."""

        def free():
            status = http(self, "/status")[1]
            return not any(w.get("busy") for w in status["workers"]) and not any(status["sessions"].values()) and status["queue"]["length"] == 0

        wait_until(free, f"all slots free: {http(self, '/status')[1]}")


def worker(log: Path, nodes: str, *flags: str) -> Process:
    model = [] if "--model" in flags else ["--model", str(TINY)]
    return Process(log, "worker", "--join", nodes, *model, *flags, OMP_NUM_THREADS="1")
