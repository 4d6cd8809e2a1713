#!/usr/bin/env python3
"""A gateway, its workers and paced conversations, and what happens to them when workers are killed, stopped, restarted and clients go away.
  bench/chaos.py full   [--sessions 24] [--workers 3] [--units 20] [--pace 1.0]     kill -9 one worker, SIGSTOP another, bring both back
  bench/chaos.py rounds [--rounds 200] [--sessions 8] [--workers 3] [--seed 1]      random faults, one a round
  bench/chaos.py bytes  [--units 20]                                                bytes between two nodes, by a relay that counts them
Every conversation is compared with the same one in an undisturbed `parley serve`: words alike, samples within 1e-3. Exit status 1 if one was lost or differs."""
import argparse
import collections
import random
import signal
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from conftest import Server  # noqa: E402
from nodes import Gateway, wait_until, worker  # noqa: E402
from paced import Paced, differences  # noqa: E402
from realtime import http  # noqa: E402

SLOTS = ("--set", "worker.max_sessions=32", "--set", "engine.seed=7")


class House:
    """A gateway and named workers, which can be hurt and mended."""

    def __init__(self, folder: Path, names: list[str], silence: float):
        self.folder, self.flags = folder, ("--set", f"nodes.silence_seconds={silence}", "--set", "nodes.rejoin_seconds=0.5", "--set", "limits.backlog_units=60")
        self.gateway = Gateway(folder / "gateway.log", *self.flags)
        self.started = 0
        self.workers = {name: None for name in names}
        for name in names:
            self.start(name)
        self.gateway.wait_for_workers(len(names))

    def start(self, name: str):
        self.started += 1
        log = self.folder / f"worker_{name}_{self.started}.log"
        self.workers[name] = worker(log, self.gateway.nodes, *SLOTS, *self.flags, "--set", f"nodes.name={name}")

    def busy(self) -> list[str]:
        return sorted(w["node"] for w in self.gateway.workers() if w.get("busy"))

    def end(self) -> int:
        for one in self.workers.values():
            one.end()
        return self.gateway.end()


def calm_runs(folder: Path, seeds, units: int) -> dict[int, Paced]:
    server = Server(*SLOTS, log=folder / "serve.log")
    try:
        runs = {}
        seeds = list(seeds)
        for begin in range(0, len(seeds), 4):
            part = {seed: Paced(server, seed, units, 0) for seed in seeds[begin : begin + 4]}
            runs |= {seed: session.finish() for seed, session in part.items()}
        for seed, session in runs.items():
            assert session.problem is None, (seed, session.problem)
        return runs
    finally:
        server.stop()


class Judge:
    """Compares finished sessions with the calm ones and keeps count."""

    def __init__(self, calm: dict[int, Paced]):
        self.calm, self.lost, self.differing, self.waits = calm, [], [], []
        self.other_words = 0

    def take(self, seed: int, session: Paced):
        session.finish()
        if session.problem is not None:
            self.lost.append((seed, repr(session.problem)))
            return
        self.waits.append(session.longest_wait())
        self.other_words += session.transcript()[0] != self.calm[seed].transcript()[0]
        if found := differences(session, self.calm[seed]):
            self.differing.append((seed, found[:3]))

    def summary(self) -> int:
        waits = sorted(self.waits)
        print(f"sessions      {len(waits)} finished, {len(self.lost)} lost, {len(self.differing)} differ from the undisturbed run, {self.other_words} of them in words")
        if waits:
            print(f"longest wait  median {waits[len(waits) // 2]:.2f} s, p95 {waits[int(len(waits) * 0.95)]:.2f} s, max {waits[-1]:.2f} s (from a second sent to its answer)")
        for what in (*self.lost, *self.differing):
            print("             ", *what)
        return 1 if self.lost or self.differing else 0


def full(args, folder: Path) -> int:
    seeds = range(1, args.sessions + 1)
    judge = Judge(calm_runs(folder, seeds, args.units))
    house = House(folder, [f"w{i}" for i in range(args.workers)], args.silence)
    sessions = {seed: Paced(house.gateway, seed, args.units, args.pace) for seed in seeds}

    def all_reach(count: int):
        wait_until(lambda: all(len(s.answered) >= count or s.problem for s in sessions.values()), f"{count} answers each", 600)

    def gone_after(name: str, how: int) -> float:
        begin = time.monotonic()
        house.workers[name].send(how)
        wait_until(lambda: name not in [w["node"] for w in house.gateway.workers()], "it is noticed")
        return time.monotonic() - begin

    all_reach(args.units // 5)
    killed = house.busy()[0]
    print(f"kill -9 {killed}    noticed after {gone_after(killed, signal.SIGKILL):.2f} s")
    all_reach(args.units * 2 // 5)
    stopped = house.busy()[0]
    print(f"SIGSTOP {stopped}    noticed after {gone_after(stopped, signal.SIGSTOP):.2f} s (nodes.silence_seconds = {args.silence})")
    all_reach(args.units * 3 // 5)
    house.workers[killed].end(None)
    house.start(killed)
    house.workers[stopped].send(signal.SIGCONT)
    house.gateway.wait_for_workers(args.workers)
    for seed, session in sessions.items():
        judge.take(seed, session)
    house.gateway.wait_until_free()
    status = judge.summary()
    return max(status, house.end())


def rounds(args, folder: Path) -> int:
    dice = random.Random(args.seed)
    seeds = list(range(1, 9))
    judge = Judge(calm_runs(folder, seeds, args.units))
    house = House(folder, [f"w{i}" for i in range(args.workers)], args.silence)
    live: list[tuple[int, Paced]] = []
    dropped = 0
    faults = collections.Counter()

    def fill():
        for seed, session in [one for one in live if len(one[1].answered) >= args.units or one[1].problem]:
            live.remove((seed, session))
            judge.take(seed, session)
        while len(live) < args.sessions:
            seed = dice.choice(seeds)
            live.append((seed, Paced(house.gateway, seed, args.units, args.pace)))

    for number in range(args.rounds):
        fill()
        what = dice.choice(["kill", "stop", "restart", "drop", "move"])
        name = dice.choice(sorted(house.workers))
        faults[what] += 1
        if what == "kill":
            house.workers[name].end(signal.SIGKILL)
            house.start(name)
        elif what == "stop":
            house.workers[name].send(signal.SIGSTOP)
            time.sleep(dice.uniform(0.1, 2 * args.silence))
            house.workers[name].send(signal.SIGCONT)
        elif what == "restart":
            house.workers[name].end()
            house.start(name)
        elif what == "drop":
            seed, session = live.pop(dice.randrange(len(live)))
            session.client.socket.socket.shutdown(socket.SHUT_RDWR)
            dropped += 1
        else:
            listed = http(house.gateway, "/sessions")[1]["sessions"]
            if listed:
                http(house.gateway, f"/sessions/{dice.choice(listed)['session_id']}/move", "POST")
        assert house.gateway.process.poll() is None, "the gateway is gone"
        time.sleep(dice.uniform(0, 1.0))
        if (number + 1) % 20 == 0:
            print(f"  round {number + 1}: {len(judge.waits)} finished, {len(judge.lost)} lost", flush=True)
    for seed, session in live:
        judge.take(seed, session)
    house.gateway.wait_until_free()
    house.gateway.wait_for_workers(args.workers)
    print(f"faults        {args.rounds} rounds, seed {args.seed}: " + ", ".join(f"{faults[kind]} {kind}" for kind in sorted(faults)))
    print(f"dropped       {dropped} clients went away without a word; every slot is free again")
    status = judge.summary()
    return max(status, house.end())


class Relay:
    """Carries bytes between a worker and its gateway and counts them."""

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


def bytes_between(args, folder: Path) -> int:
    gateway = Gateway(folder / "gateway.log")
    relay = Relay(gateway.nodes)
    one = worker(folder / "worker.log", relay.address, *SLOTS)
    gateway.wait_for_workers(1)
    before = relay.up, relay.down
    session = Paced(gateway, 1, args.units, args.pace).finish()
    assert session.problem is None, session.problem
    samples = len(session.transcript()[1])
    up, down = relay.up - before[0], relay.down - before[1]
    print(f"to the worker    {up / args.units / 1000:.1f} kB a second of conversation ({args.units} s of sound: {64.0:.1f} kB each)")
    print(f"to the gateway   {down / args.units / 1000:.1f} kB, of which {samples * 4 / args.units / 1000:.1f} kB are sound; {1000 * (down - samples * 4) / args.units / 1000:.0f} B besides")
    one.end()
    return gateway.end()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["full", "rounds", "bytes"])
    parser.add_argument("--sessions", type=int)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--units", type=int, default=20)
    parser.add_argument("--pace", type=float, default=1.0, help="seconds of the clock for one second of sound")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--silence", type=float, default=5.0, help="nodes.silence_seconds")
    args = parser.parse_args()
    args.sessions = args.sessions or (24 if args.what == "full" else 8)
    with tempfile.TemporaryDirectory() as folder:
        return {"full": full, "rounds": rounds, "bytes": bytes_between}[args.what](args, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
