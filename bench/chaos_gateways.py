"""For bench/chaos.py gateways: what conversations notice when the process that holds them is killed, updated, or paused and woken. Their clients come back
as docs/protocol.md 14 says."""
import os
import random
import signal
import threading
import time
from pathlib import Path

from chaos_cluster import PATIENT, SEED, TRACE, Cluster, Gateway, Paced, Process, Server, calm_runs, report, spread, wait_until, worker
from realtime import Client, Closed
from resuming import Resuming
from test_video import FRAME
from websockets.exceptions import ConnectionClosed, WebSocketException

SILENT = 4.0  # seconds without an event, after which a client looks for another address
GIVE_UP = 60.0
VIDEO_SEEDS, CHAT_SEEDS = 1000, 2000  # those of audio begin at 1
QUESTIONS, QUESTION_SECONDS = 6, 8.0


class Returning(Resuming):
    """Comes back by itself, to each of `servers` in turn. The list may change meanwhile."""

    def __init__(self, servers: list, mode: str, **options):
        super().__init__(servers[0], mode, **options)
        self.servers = servers
        self.left = False  # it does not come back
        self.goodbye: dict | None = None  # sent again after a return
        self.returns: list[tuple[float, float]] = []  # when it lost its connection, and when it was back
        self._lock = threading.RLock()  # nothing is sent while it comes back
        self._chance = random.Random(5)

    def send(self, event):
        with self._lock:
            if isinstance(event, dict) and event["type"] == "session.close":
                self.goodbye = event
            try:
                super().send(event)
            except ConnectionClosed:
                pass  # it is resent after the return

    def receive(self, *_) -> dict:
        while True:
            try:
                return super().receive(SILENT) if self.sent else super().receive()
            except (Closed, TimeoutError):
                if self.left or self.heard[-1]["type"] == "session.closed":
                    raise
                self._return()

    def _return(self):
        began = time.monotonic()
        with self._lock:
            for attempt in range(10_000):
                self.use(self.servers[attempt % len(self.servers)])
                try:
                    if self.try_to_come_back():
                        if self.goodbye:
                            super().send(self.goodbye)
                        return self.returns.append((began, time.monotonic()))
                except (OSError, TimeoutError, WebSocketException, Closed, AssertionError):
                    pass  # nobody there, or it does not know the conversation
                if self.left or time.monotonic() - began > GIVE_UP:
                    raise TimeoutError("nobody took the conversation up")
                time.sleep(min(0.1 * 2**attempt, 2) * self._chance.uniform(0.5, 1))


def show(session: Paced, number: int, unit):
    """A picture in every third second."""
    session.client.append(unit, **({"video_frames": [FRAME]} if number % 3 == 0 else {}))


class CalmVideo(Paced):
    say = show

    def client_of(self, server) -> Client:
        return Client(server, "video")


class ReturningPaced(Paced):
    def client_of(self, servers) -> Returning:
        return Returning(servers, "audio")


class ReturningVideo(Paced):
    say = show

    def client_of(self, servers) -> Returning:
        return Returning(servers, "video")


class Chat:
    """One chat of a few questions on a thread of its own, with what was answered. `server`: one, or the addresses of a client that comes back."""

    def __init__(self, server, seed: int, pace: float):
        self.seed, self.pace = seed, pace
        self.problem: Exception | None = None
        self.answers: list[str] = []
        self.client = Returning(server, "chat") if isinstance(server, list) else Client(server, "chat")
        self.client.init()
        self._thread = threading.Thread(target=self._talk)
        self._thread.start()

    def _talk(self):
        try:
            for number in range(QUESTIONS):
                began = time.monotonic()
                asked = {"messages": [{"role": "user", "content": f"Tell me story number {number}."}], "generation": {"max_new_tokens": 100, "seed": self.seed + number}}
                self.client.send({"type": "input.append", "input": asked})
                self.answers.append(self.client.until_done()["text"])
                time.sleep(max(0.0, began + self.pace * QUESTION_SECONDS - time.monotonic()))
            self.client.say_goodbye()
        except Exception as problem:  # reported by `compare_chats`
            self.problem = problem

    def finish(self, seconds: float = 180) -> "Chat":
        self._thread.join(seconds)
        if self._thread.is_alive():
            self.problem = TimeoutError(f"{len(self.answers)} of {QUESTIONS} questions were answered")
        self.client.socket.close()
        return self


def calm_chats(folder: Path, seeds) -> dict[int, list[str]]:
    server = Server(*SEED, "--set", "worker.max_sessions=4", log=folder / "chats.log")
    answers = {seed: Chat(server, seed, 0).finish().answers for seed in seeds}
    assert server.stop() == 0
    return answers


def compare_chats(chats: list[Chat], calm: dict[int, list[str]]) -> int:
    lost = [(c.seed, repr(c.problem)) for c in chats if c.problem is not None]
    wrong = [c.seed for c in chats if c.problem is None and c.answers != calm[c.seed]]
    print(f"chats         {len(chats) - len(lost)} of {len(chats)} finished, {sum(len(c.answers) for c in chats)} answers, {len(wrong)} chats in other words")
    for seed, problem in lost:
        print(f"              seed {seed} lost: {problem}")
    return 1 if lost or wrong else 0


def pauses(sessions: list[Paced], restarts: list[tuple[float, float]]):
    """The longest break with its parts. `restarts`: when the process was killed, and when the next one was ready for it."""
    breaks = []
    for session in sessions:
        for lost, back in session.client.returns:
            answer = next((at for at in session.answered if at >= back), back)
            ready = max((ready for killed, ready in restarts if killed <= back), default=lost)
            breaks.append((answer - lost, max(0.0, ready - lost), max(0.0, back - max(lost, ready)), answer - back))
    if breaks:
        print(f"returns       {len(breaks)}, until the next answer {spread([b[0] for b in breaks])}; "
              "the longest: {1:.2f} s until the process and its workers are back, {2:.2f} s until the client is, {3:.2f} s until its second is answered".format(*max(breaks)))


def descriptors(process: Process) -> int:
    return len(os.listdir(f"/proc/{process.process.pid}/fd"))


def nothing_is_left(folder: Path, *names: str):
    wait_until(lambda: not [f for name in names for ending in ("session", "copy") for f in (folder / name).glob(f"*.{ending}")], "no file is left over")


def gateways(args, folder: Path) -> int:
    seeds = range(1, args.sessions + 1)
    video_seeds = range(VIDEO_SEEDS, VIDEO_SEEDS + args.sessions // 3)
    chat_seeds = range(CHAT_SEEDS, CHAT_SEEDS + 100 * (args.sessions // 3), 100)
    calm, calm_draws = calm_runs(folder, seeds, args.units)
    more, more_draws = calm_runs(folder, video_seeds, args.units, kind=CalmVideo)
    calm, calm_draws, chats = calm | more, calm_draws | more_draws, calm_chats(folder, chat_seeds)
    room = (*SEED, *TRACE, "--set", f"worker.max_sessions={2 * args.sessions}")
    links = (*PATIENT, "--set", f"nodes.silence_seconds={args.silence}", "--set", "nodes.rejoin_seconds=0.5")
    dice = random.Random(args.seed)
    worst = 0

    def run(name: str, servers: list, logs: list[Path], disturb):
        """`disturb` returns when which process was gone and back."""
        nonlocal worst
        print(f"== {name}")
        sessions = [ReturningPaced(servers, seed, args.units, args.pace) for seed in seeds] + [ReturningVideo(servers, seed, args.units, args.pace) for seed in video_seeds]
        talks = [Chat(servers, seed, args.pace) for seed in chat_seeds]
        wait_until(lambda: all(len(s.answered) >= 3 or s.problem for s in sessions), "all are under way", 600)
        restarts = disturb(sessions)
        for each in [*sessions, *talks]:
            each.finish()
        worst = max(worst, report(sessions, (calm, calm_draws), logs), compare_chats(talks, chats))
        pauses(sessions, restarts)

    def part_over(sessions: list[Paced], part: float):
        """Waits until the conversations have reached that part of their length."""
        wait_until(lambda: all(len(s.answered) >= args.units * part or s.problem for s in sessions), f"{part:.0%} of each is over", 600)

    # ---- one process, and one gateway with its workers
    logs: list[Path] = []

    def serve() -> Server:
        logs.append(folder / f"serve{len(logs)}.log")
        return Server(*room, *PATIENT, "--set", f"journal.dir={folder / 'serve'}", log=logs[-1])

    servers = [serve()]

    def kill_serve(sessions):
        part_over(sessions, dice.uniform(0.2, 0.7))
        killed = time.monotonic()
        servers[0].stop(signal.SIGKILL)
        servers[0] = serve()
        return [(killed, time.monotonic())]

    run("parley serve: killed", servers, logs, kill_serve)
    nothing_is_left(folder, "serve")
    assert servers[0].stop() == 0

    cluster = Cluster(folder, [f"w{i + 1}" for i in range(args.workers)], 2 * args.sessions, args.silence, *TRACE, gateway_flags=("--set", f"journal.dir={folder / 'gateway'}"))
    addresses = [cluster.gateway]

    def numbers() -> list[int]:
        return [descriptors(each) for each in (cluster.gateway, *cluster.workers.values())]

    idle = numbers()

    def replace_gateway(how: int) -> tuple[float, float]:
        gone = time.monotonic()
        cluster.replace_gateway(how)
        addresses[0] = cluster.gateway
        cluster.gateway.wait_for_workers(args.workers)
        return gone, time.monotonic()

    def kill_again_and_again(sessions):
        restarts = []
        for part in sorted(dice.uniform(0.05, 0.9) for _ in range(args.times)):
            part_over(sessions, part)
            restarts.append(replace_gateway(signal.SIGKILL))
        return restarts

    run(f"gateway: killed {args.times} times", addresses, cluster.logs, kill_again_and_again)
    cluster.assert_whole()
    nothing_is_left(folder, "gateway")
    print(f"left over     no file, no slot; descriptors of the gateway and its workers {idle} before, {numbers()} after")

    def update_all(sessions):
        part_over(sessions, 0.2)
        restarts = [replace_gateway(signal.SIGTERM)]
        for i, name in enumerate(cluster.workers):
            part_over(sessions, 0.4 + 0.4 * i / args.workers)
            assert cluster.workers[name].end() == 0
            cluster.start(name)
            cluster.gateway.wait_for_workers(args.workers)
        return restarts

    run("gateway and all workers: updated, one after the other", addresses, cluster.logs, update_all)
    cluster.assert_whole()
    assert cluster.end() == 0

    # ---- two gateways
    for how in (signal.SIGKILL, signal.SIGSTOP):
        name = how.name
        pair = [Gateway(folder / f"{name}0.log", *links, "--set", f"journal.dir={folder / name}0")]
        pair.append(Gateway(folder / f"{name}1.log", *links, "--set", f"journal.dir={folder / name}1", "--set", f"nodes.peers={pair[0].nodes}"))
        pair.reverse()  # the one with a peer is the clients' first address
        pair[0].logged("sessions are copied to another gateway")
        shared = worker(folder / f"{name}w.log", " ".join(each.nodes for each in pair), *room, *links)
        for each in pair:
            each.wait_for_workers(1)

        def disturb(sessions, how=how, pair=pair):
            part_over(sessions, dice.uniform(0.2, 0.6))
            gone = time.monotonic()
            pair[0].send(how)
            if how == signal.SIGSTOP:
                pair[1].logged("the link to gateway .* is lost")
                time.sleep(2 * SILENT)
                pair[0].send(signal.SIGCONT)
            return [(gone, gone)]

        run(f"two gateways: {name} to one", pair, [folder / f"{name}w.log"], disturb)
        for each in pair if how == signal.SIGSTOP else pair[1:]:
            each.wait_until_free()
        assert shared.end() == 0 and pair[1].end() == 0
        pair[0].end(None if how == signal.SIGKILL else signal.SIGTERM)
        nothing_is_left(folder, f"{name}0", *([f"{name}1"] if how == signal.SIGSTOP else []))  # a killed one leaves its files to its next process
    return worst
