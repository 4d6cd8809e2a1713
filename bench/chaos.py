#!/usr/bin/env python3
"""Runs paced conversations on a gateway and its workers while workers are killed, stopped and restarted and clients leave.
  bench/chaos.py full     [--sessions 24] [--workers 3] [--units 60]      kill -9 one worker, SIGSTOP another, bring both back
  bench/chaos.py rounds   [--rounds 200] [--sessions 8] [--log F]         random faults, one a round
  bench/chaos.py rolling  [--sessions 24] [--units 40]                    all workers restarted, one after the other
  bench/chaos.py gateways [--sessions 24] [--units 60] [--workers 2]      the same conversations, a third as many with video and as many chats, while the
                                                                          process that holds them is killed, updated, or paused
  bench/chaos.py detect   [--times 10]                                    how soon a lost worker is noticed (needs permission to create a network namespace)
  bench/chaos.py bytes    [--sessions 1]                                  bytes between two nodes, counted by a relay
  bench/chaos.py beside   [--sessions 8] [--blocks 3]                     CPU of `serve` beside gateway and worker
Every conversation has its own seed and is compared with the same one in an undisturbed `parley serve`: the words must be equal and samples within
1e-3, except after a speech token drawn with a margin below 1e-5, which is reported. Exit status 1 if a conversation was lost or differs."""
import argparse
import collections
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from heavy_messages import attack
from chaos_cluster import LATE, PATIENT, SEED, TRACE, FaultLog, Gateway, Cluster, Paced, Relay, Server, calm_runs, cpu_seconds, log_time, report, spread, wait_until, worker
from chaos_gateways import ReturningPaced, descriptors, gateways, nothing_is_left

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/e2e"))
from realtime import Client, http  # noqa: E402


def names(count: int) -> list[str]:
    return [f"w{i + 1}" for i in range(count)]


def full(args, folder: Path) -> int:
    seeds = range(1, args.sessions + 1)
    calm = calm_runs(folder, seeds, args.units)
    cluster = Cluster(folder, names(args.workers), args.slots, args.silence, *TRACE)
    print(f"              {args.sessions} sessions of {args.units} s, one second each {args.pace:g} s, {args.workers} workers with {args.slots} slots each")
    sessions = [Paced(cluster.gateway, seed, args.units, args.pace) for seed in seeds]
    faults = FaultLog(None)

    def all_reach(count: int):
        wait_until(lambda: all(len(s.answered) >= count or s.problem for s in sessions), f"{count} answers each", 600)

    def lose(name: str, how: int) -> str:
        held = next(w["busy"] for w in cluster.gateway.workers() if w["node"] == name)
        key = next(w["id"] for w in cluster.gateway.workers() if w["node"] == name)
        faults.add(signal.Signals(how).name, name)
        begin = time.time()
        cluster.workers[name].send(how)
        [at] = wait_until(lambda: log_time(cluster.gateway.log, f"worker {key} is lost"), "it is noticed")
        return f"{name}, {held} sessions, noticed after {at - begin:.3f} s"

    all_reach(args.units // 5)
    killed = cluster.busy()[0]
    print(f"kill -9       {lose(killed, signal.SIGKILL)}")
    all_reach(args.units * 2 // 5)
    stopped = cluster.busy()[0]
    print(f"SIGSTOP       {lose(stopped, signal.SIGSTOP)} (nodes.silence_seconds = {args.silence:g})")
    all_reach(args.units * 3 // 5)
    cluster.workers[killed].end(None)
    cluster.start(killed)
    cluster.workers[stopped].send(signal.SIGCONT)
    cluster.gateway.wait_for_workers(args.workers)
    faults.add("both back", "")
    for session in sessions:
        session.finish()
    status = report(sessions, calm, cluster.logs)
    for kind, waits in faults.stretches([s for s in sessions if s.problem is None]).items():
        print(f"answers       behind {kind}: {len(waits)}, {sum(w > LATE for w in waits)} late; {spread(waits, digits=3)}")
    cluster.assert_whole()
    return max(status, cluster.end())


class Chaos:
    """Rounds of random faults. New conversations begin as others end; their clients come back when a connection breaks."""

    def __init__(self, args, cluster: Cluster, faults: FaultLog):
        self.args, self.cluster, self.faults = args, cluster, faults
        self.dice = random.Random(args.seed)
        self.live: list[Paced] = []
        self.over: list[Paced] = []
        self.counts = collections.Counter()
        self.seed = 0
        self.addresses = [cluster.gateway]  # where clients come back to

    def fill(self):
        for session in [s for s in self.live if len(s.answered) >= self.args.units or s.problem]:
            self.live.remove(session)
            self.over.append(session.finish())
        while len(self.live) < self.args.sessions:
            self.seed += 1
            self.live.append(ReturningPaced(self.addresses, self.seed, self.args.units, self.args.pace))

    def round(self, number: int):
        self.fill()
        what = self.dice.choice(["kill", "stop", "restart", "drop", "cut", "move", "attack", "kill gateway", "update gateway"])
        name = self.dice.choice(sorted(self.cluster.workers))
        self.counts[what] += 1
        self.faults.add(what, f"round {number}: {what} {name if what in ('kill', 'stop', 'restart') else ''}")
        getattr(self, what.replace(" ", "_"))(name)
        assert self.cluster.gateway.process.poll() is None, "the gateway is gone"
        time.sleep(self.dice.uniform(0, 1.0))

    def kill(self, name: str):
        self.cluster.workers[name].end(signal.SIGKILL)
        self.cluster.start(name)

    def stop(self, name: str):
        self.cluster.workers[name].send(signal.SIGSTOP)
        time.sleep(self.dice.uniform(0.1, 2 * self.args.silence))
        self.cluster.workers[name].send(signal.SIGCONT)

    def restart(self, name: str):
        self.cluster.workers[name].end()
        self.cluster.start(name)

    def drop(self, _):
        session = self.live.pop(self.dice.randrange(len(self.live)))
        session.client.left = True
        self.cut_off(session)

    def cut(self, _):
        self.cut_off(self.dice.choice(self.live))

    @staticmethod
    def cut_off(session: Paced):
        try:
            session.client.socket.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it has no connection now

    def kill_gateway(self, _):
        self.replace_gateway(signal.SIGKILL)

    def update_gateway(self, _):
        self.replace_gateway(signal.SIGTERM)

    def replace_gateway(self, how: int):
        self.cluster.replace_gateway(how)
        self.addresses[0] = self.cluster.gateway

    def move(self, _):
        listed = http(self.cluster.gateway, "/sessions")[1]["sessions"]
        if listed:
            http(self.cluster.gateway, f"/sessions/{self.dice.choice(listed)['session_id']}/move", "POST")

    def attack(self, _):
        self.faults.write(attack(self.cluster.gateway.http, self.dice))


def fill_every_slot(cluster: Cluster):
    """Connects as many clients as there are slots. If none of them waits, no slot has leaked."""
    clients = [Client(cluster.gateway) for _ in range(cluster.slots * len(cluster.workers))]
    for client in clients:
        client.init()
    busy = [w["busy"] for w in cluster.gateway.workers()]
    assert busy == [cluster.slots] * len(cluster.workers), busy
    for client in clients:
        client.say_goodbye()


def rounds(args, folder: Path) -> int:
    # Those who leave without a word keep their slots only for a moment, so that every slot must be free again at the end.
    durable = ("--set", f"journal.dir={folder / 'journal'}", "--set", "limits.resume_seconds=15")
    cluster = Cluster(folder, names(args.workers), args.slots, args.silence, *TRACE, gateway_flags=durable)
    idle = descriptors(cluster.gateway)
    faults = FaultLog(args.log)
    chaos = Chaos(args, cluster, faults)
    for number in range(1, args.rounds + 1):
        chaos.round(number)
        if number % 20 == 0:
            print(f"  round {number}: {len(chaos.over)} finished, {sum(s.problem is not None for s in chaos.over)} lost", flush=True, file=sys.stderr)
    chaos.over += [session.finish() for session in chaos.live]
    cluster.assert_whole()
    nothing_is_left(folder, "journal")
    fill_every_slot(cluster)
    cluster.assert_whole()
    print(f"faults        {args.rounds} rounds, seed {args.seed}: " + ", ".join(f"{chaos.counts[kind]} {kind}" for kind in sorted(chaos.counts)))
    print(f"              {args.sessions} sessions at a time, {args.units} s each at one second each {args.pace:g} s; {args.workers} workers with {args.slots} slots; silence {args.silence:g} s")
    print(f"slots         all {cluster.slots * len(cluster.workers)} free at the end, and as many new clients got one at once; no file is left in journal.dir")
    print(f"descriptors   of the gateway: {idle} at first, {descriptors(cluster.gateway)} at the end")
    ended = cluster.end()
    print(f"gateway       {len(cluster.gateway_logs)} processes, the last ended with {ended}")
    calm = calm_runs(folder, [s.seed for s in chaos.over], args.units)
    status = report(chaos.over, calm, cluster.logs)
    for kind, pauses in sorted(faults.pauses([s for s in chaos.over if s.problem is None]).items()):
        print(f"pauses        behind {kind}: {len(pauses)} of more than 0.5 s; {spread(pauses)}")
    return max(status, ended)


def rolling(args, folder: Path) -> int:
    seeds = range(1, args.sessions + 1)
    calm = calm_runs(folder, seeds, args.units)
    cluster = Cluster(folder, names(args.workers), args.slots, args.silence, *TRACE)
    sessions = [Paced(cluster.gateway, seed, args.units, args.pace) for seed in seeds]
    for name in list(cluster.workers):
        answered = max(len(s.answered) for s in sessions)
        wait_until(lambda: all(len(s.answered) >= min(answered + 3, args.units) or s.problem for s in sessions), "all are under way", 600)
        assert min(len(s.answered) for s in sessions) < args.units, "the conversations were over before the last restart"
        begin = time.monotonic()
        assert cluster.workers[name].end() == 0
        ended = time.monotonic()
        cluster.start(name)
        cluster.gateway.wait_for_workers(args.workers)
        print(f"restarted     {name}: left after {ended - begin:.2f} s, back after {time.monotonic() - begin:.2f} s; {min(len(s.answered) for s in sessions)} seconds answered")
    for session in sessions:
        session.finish()
    errors = sum(event["type"] == "error" for s in sessions for event in s.client.heard)
    print(f"clients       {errors} errors heard by {len(sessions)} clients; {sum(s.problem is not None for s in sessions)} connections lost")
    status = report(sessions, calm, cluster.logs)
    cluster.assert_whole()
    return max(status, cluster.end(), 1 if errors else 0)


def lose_packets(lost: bool):
    """Silently drops every packet in this process's own network namespace, or stops doing so."""
    subprocess.run(["ip", "link", "set", "lo", "down" if lost else "up"], check=True)


def detect(args, folder: Path) -> int:
    if not os.environ.get("CHAOS_NAMESPACE"):
        os.environ["CHAOS_NAMESPACE"] = "own"
        os.execvp("unshare", ["unshare", "--net", sys.executable, *sys.argv])
    lose_packets(False)
    cluster = Cluster(folder, ["w1"], 4, args.silence)
    log = cluster.gateway.log
    seen: dict[str, list[float]] = collections.defaultdict(list)
    for what in ("killed", "stopped", "packets lost"):
        for _ in range(args.times):
            before = len(log_time(log, "is lost")), len(log_time(cluster.logs[-1], "the link to the gateway is lost"))
            begin = time.time()
            one = cluster.workers["w1"]
            if what == "packets lost":
                lose_packets(True)
            else:
                one.send(signal.SIGKILL if what == "killed" else signal.SIGSTOP)
            if what == "killed":
                one.end(None)
                seen["killed: process gone"].append(time.time() - begin)
            at = wait_until(lambda: log_time(log, "is lost")[before[0] :], "it is noticed")[0]
            seen[f"{what}: gateway"].append(at - begin)
            if what == "killed":
                cluster.start("w1")
            elif what == "stopped":
                one.send(signal.SIGCONT)
            else:
                here = wait_until(lambda: log_time(cluster.logs[-1], "the link to the gateway is lost")[before[1] :], "the worker notices it too")[0]
                seen[f"{what}: worker"].append(here - begin)
                lose_packets(False)
            back = time.monotonic()
            cluster.gateway.wait_for_workers(1)
            seen[f"{what}: back"].append(time.monotonic() - back)
            time.sleep(random.Random(len(seen[f"{what}: back"])).uniform(0, args.silence / 5))  # hit a different phase of the heartbeat
    for what, times in seen.items():
        print(f"{what:22} {len(times)} times: least {min(times):.3f} s, {spread(times, digits=3)}")
    print(f"nodes.silence_seconds = {args.silence:g}: a heartbeat each {args.silence / 5:g} s, and silence is noticed at one of them")
    return cluster.end()


def bytes_between(args, folder: Path) -> int:
    relays: list[Relay] = []

    def through(address: str) -> str:
        relays.append(Relay(address))
        return relays[0].address

    cluster = Cluster(folder, ["w1"], args.sessions, args.silence, through=through)
    relay = relays[0]
    time.sleep(args.silence)
    idle_from = time.monotonic(), relay.up, relay.down
    time.sleep(args.silence)
    idle = time.monotonic() - idle_from[0]
    print(f"idle             {(relay.up - idle_from[1]) / idle:.0f} and {(relay.down - idle_from[2]) / idle:.0f} B a second: heartbeats")
    before = relay.up, relay.down
    sessions = [Paced(cluster.gateway, seed, args.units, args.pace) for seed in range(1, args.sessions + 1)]
    for session in sessions:
        session.finish()
        assert session.problem is None, session.problem
    seconds = args.units * args.sessions
    samples = sum(len(s.transcript()[1]) for s in sessions)
    up, down = relay.up - before[0], relay.down - before[1]
    print(f"to the worker    {up / seconds / 1000:.2f} kB a second of conversation, {64:.2f} kB of them sound ({seconds} seconds)")
    print(f"to the gateway   {down / seconds / 1000:.2f} kB a second of conversation; {samples / 24000:.1f} s were spoken: {down / (samples / 24000) / 1000:.2f} kB each, "
          f"{96:.2f} kB of them sound; {(down - samples * 4) / seconds:.0f} B a second of conversation besides")
    return cluster.end()


def beside(args, folder: Path) -> int:
    """Compares the CPU use of the same conversations in `serve` and over a link between nodes, by turns."""
    flags = (*SEED, *PATIENT, "--set", f"worker.max_sessions={args.slots}")
    server = Server(*flags, log=folder / "serve.log")
    gateway = Gateway(folder / "gateway.log", *PATIENT)
    remote = worker(folder / "worker.log", gateway.nodes, *flags)
    gateway.wait_for_workers(1)
    parts = {"serve": [server], "gateway and worker": [gateway, remote]}
    used: dict[str, list[list[float]]] = collections.defaultdict(list)
    waits: dict[str, list[float]] = collections.defaultdict(list)
    for block in range(args.blocks + 1):  # the first block is a warm-up
        for name, processes in list(parts.items()):
            before = [cpu_seconds(p.process) for p in processes]
            sessions = [Paced(processes[0], seed, args.units, args.pace) for seed in range(1, args.sessions + 1)]
            for session in sessions:
                session.finish()
                assert session.problem is None, session.problem
            if block == 0:
                continue
            used[name].append([(cpu_seconds(p.process) - b) * 1000 / (args.units * args.sessions) for p, b in zip(processes, before)])
            waits[name] += [w * 1000 for s in sessions for w in s.waits()]
    print(f"              {args.sessions} sessions of {args.units} s, one second each {args.pace:g} s, {args.blocks} times in turns; CPU of a second, ms")
    for name, blocks in used.items():
        print(f"{name:20} " + "; ".join(" + ".join(f"{ms:.2f}" for ms in block) for block in blocks) + f"; answered after {spread(waits[name], 'ms', 1)}")
    whole = {name: sum(sum(block) for block in blocks) / len(blocks) for name, blocks in used.items()}
    print(f"ratio                {whole['gateway and worker'] / whole['serve']:.3f} of the CPU of `serve`, {whole['gateway and worker'] - whole['serve']:.2f} ms a second more")
    assert remote.end() == 0 and server.stop() == 0
    return gateway.end()


def main() -> int:
    what = {"full": full, "rounds": rounds, "rolling": rolling, "gateways": gateways, "detect": detect, "bytes": bytes_between, "beside": beside}
    sessions = {"full": 24, "rolling": 24, "gateways": 24, "bytes": 1}
    units = {"full": 60, "rolling": 40, "gateways": 60, "rounds": 16}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=list(what))
    parser.add_argument("--sessions", type=int)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--slots", type=int, help="of each worker; otherwise as many as there are sessions: one of them can hold all")
    parser.add_argument("--units", type=int, help="seconds of a conversation")
    parser.add_argument("--pace", type=float, default=1.0, help="seconds of the clock for one second of sound")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--blocks", type=int, default=3)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--silence", type=float, default=5.0, help="nodes.silence_seconds")
    parser.add_argument("--log", type=Path, help="a line for each round, and the pauses")
    args = parser.parse_args()
    args.sessions = args.sessions or sessions.get(args.what, 8)
    args.units = args.units or units.get(args.what, 20)
    args.slots = args.slots or args.sessions
    with tempfile.TemporaryDirectory() as folder:
        return what[args.what](args, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
