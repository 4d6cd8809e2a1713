"""What bench/chaos.py uses: a gateway and workers as processes, conversations with them, and the comparison of what was heard."""
import collections
import os
import re
import socket
import statistics
import sys
import threading
import time
from datetime import datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from conftest import Server  # noqa: E402
from draws import SURE, TRACE, draws, judge  # noqa: E402
from nodes import Gateway, Process, wait_until, worker  # noqa: E402
from paced import Paced  # noqa: E402

SEED = ("--set", "engine.seed=7")
# Late input is answered late but never dropped, even on a slow machine or while there is no worker.
PATIENT = [flag for key, value in {"limits.backlog_units": 240, "limits.failover_units": 240, "limits.failover_seconds": 120, "queue.no_worker_seconds": 120}.items() for flag in ("--set", f"{key}={value}")]
LATE = 1.0  # seconds; an answer later than this missed its deadline


class Cluster:
    """A gateway and named workers with `slots` each, which can be killed, stopped and restarted. `gateway_flags`: for the gateway alone."""

    def __init__(self, folder: Path, names: list[str], slots: int, silence: float, *more: str, through=lambda address: address, gateway_flags: tuple[str, ...] = ()):
        self.folder = folder
        self.flags = ("--set", f"nodes.silence_seconds={silence}", "--set", "nodes.rejoin_seconds=0.5", *PATIENT)
        self.roomy = (*SEED, *more, "--set", f"worker.max_sessions={slots}")
        self.slots = slots
        self.gateway_flags = (*self.flags, *gateway_flags)
        self.gateway = Gateway(folder / "gateway.log", *self.gateway_flags)
        self.gateway_logs = [self.gateway.log]
        self.nodes = through(self.gateway.nodes)
        self.workers: dict[str, Process] = {}
        self.logs: list[Path] = []
        for name in names:
            self.start(name)
        self.gateway.wait_for_workers(len(names))

    def start(self, name: str):
        self.logs.append(self.folder / f"worker_{name}_{len(self.logs)}.log")
        self.workers[name] = worker(self.logs[-1], self.nodes, *self.roomy, *self.flags, "--set", f"nodes.name={name}")

    def replace_gateway(self, how: int):
        """The next process listens for workers at the same port."""
        self.gateway.end(how)
        self.gateway_logs.append(self.folder / f"gateway_{len(self.gateway_logs)}.log")
        self.gateway = Gateway(self.gateway_logs[-1], *self.gateway_flags, nodes_port=int(self.nodes.rsplit(":", 1)[1]))

    def busy(self) -> list[str]:
        return sorted(w["node"] for w in self.gateway.workers() if w.get("busy"))

    def assert_whole(self):
        """Every worker is present and every slot is free, at the gateway and at the workers."""
        self.gateway.wait_until_free()
        for one in self.gateway.wait_for_workers(len(self.workers)):
            assert one["slots"] == self.slots and one["busy"] == 0, one

    def end(self) -> int:
        for one in self.workers.values():
            one.end()
        ended = self.gateway.end()
        for log in (*self.gateway_logs, *self.logs):
            text = log.read_text()
            assert "invariant violated" not in text, text[-6000:]
        return ended


def calm_runs(folder: Path, seeds, units: int, at_once: int = 4, kind=Paced) -> tuple[dict[int, Paced], dict]:
    """The same conversations in an undisturbed `parley serve`, and the draws made in them."""
    log = folder / f"calm_{kind.__name__}.log"
    server = Server(*SEED, *TRACE, "--set", f"worker.max_sessions={at_once}", log=log)
    runs, seeds = {}, sorted(set(seeds))
    for begin in range(0, len(seeds), at_once):
        part = [kind(server, seed, units, 0) for seed in seeds[begin : begin + at_once]]
        runs |= {session.seed: session.finish() for session in part}
    assert server.stop() == 0
    for seed, session in runs.items():
        assert session.problem is None, (seed, session.problem)
    return runs, draws([log])


def spread(values: list[float], unit: str = "s", digits: int = 2) -> str:
    """Median, 95th percentile and the worst."""
    values = sorted(values)
    chosen = statistics.median(values), values[min(len(values) - 1, int(len(values) * 0.95))], values[-1]
    return "median {}, p95 {}, max {}".format(*(f"{v:.{digits}f} {unit}" for v in chosen))


def report(sessions: list[Paced], calm: tuple[dict[int, Paced], dict], logs: list[Path]) -> int:
    """Compares these conversations with the undisturbed ones. Returns 1 if one was lost or differs by more than
    rounding."""
    runs, calm_draws = calm
    made = draws(logs)
    lost = [(s.seed, repr(s.problem)) for s in sessions if s.problem is not None]
    finished = [s for s in sessions if s.problem is None]
    verdicts = {s.seed: judge(s, runs[s.seed], made.get(s.seed, {}), calm_draws[s.seed]) for s in finished}
    wrong = {seed: v for seed, v in verdicts.items() if v.errors}
    close = {seed: v for seed, v in verdicts.items() if v.close_call is not None and not v.errors}
    print(f"sessions      {len(finished)} finished, {len(lost)} lost; {sum(v.alike for v in verdicts.values())} alike in words and sound, "
          f"{len(close)} with a draw too close to call, {len(wrong)} wrong")
    compared = sum(v.compared for v in verdicts.values())
    margins = [m for s in finished for units in calm_draws[s.seed].values() for unit in units for _, m in unit.speech if m is not None]
    print(f"draws         {compared} of speech compared with the undisturbed run: margins moved by at most {max((v.moved for v in verdicts.values()), default=0):.2g}; "
          f"{sum(m < SURE for m in margins)} of {len(margins)} are closer than {SURE:g}")
    for seed, verdict in sorted((close | wrong).items()):
        print(f"              seed {seed}: {verdict}")
    for seed, problem in lost:
        print(f"              seed {seed} lost: {problem}")
    if finished:
        waits = [w for s in finished for w in s.waits()]
        print(f"longest wait  of each session: {spread([s.longest_wait() for s in finished])} (from a second due to its answer)")
        print(f"late          {sum(w > LATE for w in waits)} of {len(waits)} seconds were answered after more than {LATE:g} s, none was dropped")
    return 1 if lost or wrong else 0


def log_time(log: Path, pattern: str) -> list[float]:
    """The times of the log lines that match `pattern`, in seconds of the clock."""
    lines = re.findall(rf"^(\S+ \S+) .*(?:{pattern}).*$", log.read_text(), re.M)
    return [datetime.strptime(at, "%Y-%m-%d %H:%M:%S.%f").timestamp() for at in lines]


def cpu_seconds(process) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Relay:
    """Forwards bytes between a worker and its gateway, and counts them."""

    def __init__(self, to: str):
        self.to = to.rsplit(":", 1)
        self.up = self.down = 0
        self.door = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.door.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            worker_side, _ = self.door.accept()
            gateway_side = socket.create_connection((self.to[0], int(self.to[1])))
            threading.Thread(target=self._carry, args=(gateway_side, worker_side, "up"), daemon=True).start()
            threading.Thread(target=self._carry, args=(worker_side, gateway_side, "down"), daemon=True).start()

    def _carry(self, source, target, count: str):
        try:
            while data := source.recv(1 << 16):
                setattr(self, count, getattr(self, count) + len(data))
                target.sendall(data)
        except OSError:
            pass  # the other direction has ended
        target.close()


class FaultLog:
    """What was done when, and which pauses followed. A pause is a run of late answers; it is attributed to the last
    fault before its first late second."""

    def __init__(self, path: Path | None):
        self.file = open(path, "w") if path else None
        self.began = time.monotonic()
        self.faults: list[tuple[float, str]] = []

    def add(self, kind: str, line: str):
        now = time.monotonic()
        self.faults.append((now, kind))
        self.write(f"{now - self.began:8.2f} s  {line}")

    def write(self, line: str):
        if self.file:
            print(line, file=self.file, flush=True)

    def stretches(self, sessions: list[Paced]) -> dict[str, list[float]]:
        """How long each second waited for its answer, grouped by the last fault before it was due."""
        waits = collections.defaultdict(list)
        for session in sessions:
            for number, wait in enumerate(session.waits()):
                before = [kind for at, kind in self.faults if at <= session.began + number * session.pace]
                waits[before[-1] if before else "the beginning"].append(wait)
        return waits

    def pauses(self, sessions: list[Paced], least: float = 0.5) -> dict[str, list[float]]:
        by_kind = collections.defaultdict(list)
        for session in sessions:
            late = 0.0
            begin = 0.0
            for number, wait in [*enumerate(session.waits()), (0, 0.0)]:
                if wait > least:
                    begin = begin if late else session.began + number * session.pace
                    late = max(late, wait)
                elif late:
                    before = [kind for at, kind in self.faults if at <= begin + least]
                    by_kind[before[-1] if before else "none"].append(late)
                    self.write(f"{begin - self.began:8.2f} s  session {session.seed} waited {late:.2f} s, behind {before[-1] if before else 'none'}")
                    late = 0.0
        return by_kind


__all__ = ["FaultLog", "Gateway", "Cluster", "LATE", "PATIENT", "Paced", "Process", "Relay", "SEED", "Server", "TRACE", "calm_runs", "cpu_seconds", "log_time", "report", "spread", "wait_until", "worker"]
