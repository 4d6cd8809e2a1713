"""For bench/chaos.py gateways: what a conversation notices when the process that holds it is killed, or paused and woken. Its client comes back as
docs/protocol.md 14 says."""
import random
import signal
import threading
import time
from pathlib import Path

from chaos_cluster import PATIENT, SEED, TRACE, Gateway, Paced, Server, calm_runs, report, wait_until, worker
from realtime import Closed
from resuming import Resuming
from websockets.exceptions import ConnectionClosed, WebSocketException

SILENT = 4.0  # seconds without an event, after which a client looks for another address
GIVE_UP = 60.0


class Returning(Resuming):
    """Comes back by itself, to each of `servers` in turn. The list may change meanwhile."""

    def __init__(self, servers: list):
        super().__init__(servers[0], "audio")
        self.servers = servers
        self.returns: list[float] = []  # how long each took
        self._lock = threading.RLock()  # nothing is sent while it comes back
        self._chance = random.Random(5)

    def send(self, event):
        with self._lock:
            try:
                super().send(event)
            except ConnectionClosed:
                pass  # it is resent after the return

    def receive(self, *_) -> dict:
        while True:
            try:
                return super().receive(SILENT) if self.sent else super().receive()
            except (Closed, TimeoutError):
                self._return()

    def _return(self):
        began = time.monotonic()
        with self._lock:
            for attempt in range(10_000):
                self.use(self.servers[attempt % len(self.servers)])
                try:
                    if self.try_to_come_back():
                        return self.returns.append(time.monotonic() - began)
                except (OSError, TimeoutError, WebSocketException, Closed, AssertionError):
                    pass  # nobody there, or it does not know the conversation
                if time.monotonic() - began > GIVE_UP:
                    raise TimeoutError("nobody took the conversation up")
                time.sleep(min(0.1 * 2**attempt, 2) * self._chance.uniform(0.5, 1))


class ReturningPaced(Paced):
    @staticmethod
    def client_of(servers) -> Returning:
        return Returning(servers)


def gateways(args, folder: Path) -> int:
    seeds = range(1, args.sessions + 1)
    calm = calm_runs(folder, seeds, args.units)
    room = (*SEED, *TRACE, "--set", f"worker.max_sessions={2 * args.sessions}")
    links = (*PATIENT, "--set", f"nodes.silence_seconds={args.silence}", "--set", "nodes.rejoin_seconds=0.5")
    worst = 0

    def run(name: str, servers: list, logs: list[Path], disturb, end):
        nonlocal worst
        sessions = [ReturningPaced(servers, seed, args.units, args.pace) for seed in seeds]
        wait_until(lambda: all(len(s.answered) >= args.units // 3 or s.problem for s in sessions), "all are under way", 600)
        disturb(servers)
        for session in sessions:
            session.finish()
        returns = [seconds for s in sessions for seconds in s.client.returns]
        print(f"== {name}: {len(returns)} returns, the longest after {max(returns, default=0):.2f} s")
        worst = max(worst, report(sessions, calm, logs))
        end(servers)

    def end_all(*processes):
        for each in processes:
            assert each.end() == 0

    def serve(number: int) -> Server:
        logs.append(folder / f"serve{number}.log")
        return Server(*room, *PATIENT, "--set", f"journal.dir={folder / 'serve'}", log=logs[-1])

    def kill_serve(servers):
        servers[0].stop(signal.SIGKILL)
        servers[0] = serve(1)

    logs: list[Path] = []
    run("parley serve killed", [serve(0)], logs, kill_serve, lambda servers: servers[0].stop())

    journal = ("--set", f"journal.dir={folder / 'gateway'}")
    first = Gateway(folder / "gateway0.log", *links, *journal)
    port = int(first.nodes.rsplit(":", 1)[1])
    one = worker(folder / "w.log", first.nodes, *room, *links)
    first.wait_for_workers(1)

    def kill_gateway(servers):
        servers[0].end(signal.SIGKILL)
        servers[0] = Gateway(folder / "gateway1.log", *links, *journal, nodes_port=port)

    run("gateway killed", [first], [folder / "w.log"], kill_gateway, lambda servers: end_all(one, servers[0]))

    for what in (signal.SIGKILL, signal.SIGSTOP):
        name = what.name
        pair = [Gateway(folder / f"{name}0.log", *links, "--set", f"journal.dir={folder / name}0")]
        pair.append(Gateway(folder / f"{name}1.log", *links, "--set", f"journal.dir={folder / name}1", "--set", f"nodes.peers={pair[0].nodes}"))
        pair.reverse()  # the one with a peer is the clients' first address
        pair[0].logged("sessions are copied to another gateway")
        shared = worker(folder / f"{name}w.log", " ".join(each.nodes for each in pair), *room, *links)
        for each in pair:
            each.wait_for_workers(1)

        def disturb(servers, what=what):
            servers[0].send(what)
            if what == signal.SIGSTOP:
                servers[1].logged("taken up$")
                time.sleep(args.silence)
                servers[0].send(signal.SIGCONT)

        def end(servers, what=what, shared=shared):
            for each in servers if what == signal.SIGSTOP else servers[1:]:
                each.wait_until_free()
            end_all(shared, servers[1])
            servers[0].end(None if what == signal.SIGKILL else signal.SIGTERM)

        run(f"two gateways, {name} to one", pair, [folder / f"{name}w.log"], disturb, end)
    return worst
