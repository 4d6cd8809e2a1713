#!/usr/bin/env python3
"""How much later all others are answered while one client sends the heaviest possible messages, floods, or has all done that it may.
Four paced conversations run a quarter of a second apart: two listen, two answer a question in words and sound. Then another client sends each
message of heavy_messages.py in turn, each flood for some seconds, and has each kind of work done. Each row shows what it did, how long that took,
and how much later the slowest answer of those that listen and of those that speak came than the slowest one of the quiet seconds before.
  bench/stall.py BINARY [--model M] [--only NAME] [--json F] [-- flags of parley serve]"""
import argparse
import collections
import json
import multiprocessing
import subprocess
import sys
import threading
import time
import wave
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.sync.client import connect

from heavy_messages import FLOODS, MESSAGES, WORK, complete, opening, path
from timed_session import UNIT, TimedSession, b64

ROOT = Path(__file__).resolve().parents[1]
BYSTANDERS = 4
QUIET_SECONDS = 8  # a question and its answer
FLOOD_SECONDS = 6


class Bystander(threading.Thread):
    """Sends one second of sound every second. `waits` holds pairs: when a unit was sent, and how long its answer took."""

    def __init__(self, url: str, offset: float, speaks: bool, stop: threading.Event):
        super().__init__()
        self.url, self.offset, self.speaks, self.stop, self.waits = url, offset, speaks, stop, []
        self.session = self.begin()

    def begin(self):
        return TimedSession(self.url, {"config": {"seed": 5, "sliding_window_mode": "basic"}})

    def run(self):
        with wave.open(str(ROOT / "tests/data/question.wav")) as file:
            words = np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768
        seconds = np.concatenate([words, np.zeros(6 * UNIT)])  # what is asked, and time to answer
        audio = [b64(seconds[at : at + UNIT]) for at in range(0, len(seconds) - UNIT + 1, UNIT)]
        begin = time.monotonic() + self.offset
        for n in range(100_000):
            if self.stop.wait(max(0, begin + n - time.monotonic())):
                break
            sent = time.monotonic()
            self.waits.append((sent, self.session.unit_ms(audio[n % len(audio)], force_listen=not self.speaks)))
        self.session.close()


ANSWERS = {"error", "response.done", "session.closed", "session.started", "conversation.item.done", "input_audio_buffer.speech_started", "unit"}


class Attacker:
    def __init__(self, url: str, mode: str, first: list[str]):
        self.url, self.mode, self.socket = url, mode, None
        if mode == "completions":
            return
        self.socket = connect(url.replace("http", "ws", 1) + path(mode), max_size=None, compression=None, close_timeout=1)
        for frame in first:
            self.socket.send(frame)
        if mode not in ("realtime", "live"):
            self.until({"session.created"})

    def until(self, kinds: set) -> dict:
        while True:
            event = json.loads(self.socket.recv(timeout=200))
            metrics = event.get("metrics") or {}
            if event["type"] in kinds or ("unit" in kinds and "wall_clock_ms" in metrics):
                return event

    def send(self, frame: str) -> str:
        """The answer, in a few words."""
        if self.mode == "completions":
            return complete(self.url, frame)
        self.socket.send(frame)
        if "input_audio_buffer.append" in frame[:60]:
            self.socket.send('{"type":"input_audio_buffer.commit"}')
        try:
            event = self.until({"error", "response.done"} if "response.create" in frame[:60] else ANSWERS)
        except ConnectionClosed as gone:
            return f"closed with {gone.rcvd.code if gone.rcvd else None}"
        except TimeoutError:
            return "nothing in 200 s"
        return event["error"]["message"][:70] if event["type"] == "error" else event["type"]

    def flood(self, frames: list[str], until: float, answers: collections.Counter):
        """Sends the frames again and again, as fast as they are taken, and counts the answers."""

        def read():
            try:
                while time.monotonic() < until + 1:
                    kind = json.loads(self.socket.recv(timeout=1))["type"]
                    answers[kind] += kind in ANSWERS
            except ConnectionClosed as gone:
                answers[f"closed with {gone.rcvd.code if gone.rcvd else None}"] += 1
            except TimeoutError:
                pass

        reader = threading.Thread(target=read)
        reader.start()
        try:
            while time.monotonic() < until:
                for frame in frames:
                    self.socket.send(frame)
                    answers["sent"] += 1
        except (ConnectionClosed, OSError):
            pass  # the server closed the connection, which the reader counts
        reader.join()


def flood(url: str, mode: str, first: list[str], frames: list[str]) -> str:
    """Floods for FLOOD_SECONDS, over a new connection whenever the server has closed the last one."""
    answers = collections.Counter()
    until = time.monotonic() + FLOOD_SECONDS
    while time.monotonic() < until:
        try:
            attacker = Attacker(url, mode, first)
            attacker.flood(frames, until, answers)
            attacker.socket.close()
        except (WebSocketException, OSError, TimeoutError) as refused:
            answers[type(refused).__name__] += 1
    return ", ".join(f"{count} {kind}" for kind, count in answers.most_common(4) if count)


def work(url: str, mode: str, first: list[str], frames: list[str], until: float, answers: collections.Counter):
    """Has one frame after the other done; a mode "init" is a newcomer for each."""
    attacker = None
    try:
        while time.monotonic() < until:
            for frame in frames:
                if mode == "init":
                    attacker = Attacker(url, "audio", [frame])
                    attacker.socket.close()
                    answers["session.created"] += 1
                    continue
                attacker = attacker or Attacker(url, mode, first)
                answers[attacker.send(frame)] += 1
                if time.monotonic() > until:
                    break
    except (WebSocketException, OSError, TimeoutError) as gone:
        answers[type(gone).__name__] += 1
    if attacker and attacker.socket:
        attacker.socket.close()


def have_done(url: str, mode: str, connections: int, first: list[str], frames: list[str]) -> str:
    answers = collections.Counter()
    until = time.monotonic() + FLOOD_SECONDS
    workers = [threading.Thread(target=work, args=(url, mode, first, frames, until, answers)) for _ in range(connections)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    return ", ".join(f"{count} {kind[:40]}" for kind, count in answers.most_common(3))


def attack(url: str, name: str) -> tuple[int, float, float, str]:
    """Waits for QUIET_SECONDS, then attacks. The bytes of one round, when it began and was over, and the answer."""
    if name in WORK:
        mode, connections, *builders = WORK[name]
    else:
        mode, *builders = FLOODS[name] if name in FLOODS else (MESSAGES[name][0], lambda: opening(MESSAGES[name][0]), MESSAGES[name][1])
    first, frame = (build() for build in builders)
    attacker = Attacker(url, mode, first) if name in MESSAGES else None
    time.sleep(QUIET_SECONDS)
    sent = time.monotonic()
    if attacker:
        answer = attacker.send(frame)
    else:
        answer = have_done(url, mode, connections, first, frame) if name in WORK else flood(url, mode, first, frame)
    over = time.monotonic()
    if attacker and attacker.socket:
        attacker.socket.close()
    return len(frame) if attacker else sum(map(len, frame)), sent, over, answer


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--model", default="")
    parser.add_argument("--only", action="append", help="a name, or messages, floods or work")
    parser.add_argument("--json", type=Path)
    parser.add_argument("flags", nargs="*")
    options = parser.parse_args()
    flags = ["--port", "0", "--set", f"worker.max_sessions={BYSTANDERS + 12}", "--set", "limits.audio_seconds=7200", "--set", "log.level=warn", *options.flags]
    if options.model:
        flags += ["--model", options.model]
    server = subprocess.Popen([options.binary, "serve", *flags], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    rows, worst = [], [0.0, 0.0]
    stop = threading.Event()
    processes = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))  # so that the attacker never holds a bystander's interpreter
    try:
        url = server.stdout.readline().split()[1]
        everybody = [Bystander(url, n / BYSTANDERS, n % 2 == 1, stop) for n in range(BYSTANDERS)]
        for each in everybody:
            each.start()
        print(f"{'what':<24} {'MB':>6} {'quiet, worst':>14} | {'beside it':>14} {'later':>14} | {'took':>7}  answer (listening, speaking; ms)")
        for kind, names in (("messages", MESSAGES), ("floods", FLOODS), ("work", WORK)):
            for name in names:
                if options.only and name not in options.only and kind not in options.only:
                    continue
                size, sent, over, answer = processes.submit(attack, url, name).result()
                time.sleep(2)

                def slowest(begin: float, end: float) -> list[float]:
                    return [max(ms for each in everybody if each.speaks == speaks for at, ms in list(each.waits) if begin <= at < end) for speaks in (False, True)]

                quiet, beside = slowest(sent - QUIET_SECONDS, sent - 0.5), slowest(sent - 0.5, over + 1)
                later = [after - before for before, after in zip(quiet, beside)]
                worst = [max(one, other) for one, other in zip(worst, later)]
                rows.append({"what": name, "bytes": size, "quiet_ms": quiet, "beside_ms": beside, "later_ms": later, "took_s": over - sent, "answer": answer})
                pair = lambda values: f"{values[0]:6.0f} {values[1]:6.0f}"
                print(f"{name:<24} {size / 1e6:6.1f} {pair(quiet):>14} | {pair(beside):>14} {pair(later):>14} | {over - sent:5.1f} s  {answer}", flush=True)
        stop.set()
        for each in everybody:
            each.join()
        if server.poll() is not None:
            raise SystemExit(f"stall: the server has gone with {server.returncode}")
        peak = int(next(line for line in Path(f"/proc/{server.pid}/status").read_text().splitlines() if line.startswith("VmHWM")).split()[1]) / 1024
        print(f"worst: {worst[0]:.0f} and {worst[1]:.0f} ms later; the server held {peak:.0f} MiB at most")
    finally:
        stop.set()
        processes.shutdown(cancel_futures=True)
        server.terminate()
        server.wait(60)
    if options.json:
        options.json.write_text(json.dumps({"rows": rows, "peak_mib": peak}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
