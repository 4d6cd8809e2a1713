#!/usr/bin/env python3
"""How much later all others are answered while one client sends the heaviest possible messages.
Four paced conversations run a quarter of a second apart. Then another client sends each message of heavy_messages.py in turn, and each flood for
some seconds. Each row shows the message, its answer and how long that took, and the latency of the four conversations during it and in the
quiet seconds before.
  bench/stall.py BINARY [--model M] [--only NAME] [--json F] [-- flags of parley serve]"""
import argparse
import base64
import collections
import json
import multiprocessing
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.sync.client import connect

from heavy_messages import FLOODS, MESSAGES, complete, opening, path
from timed_session import TimedSession

ROOT = Path(__file__).resolve().parents[1]
BYSTANDERS = 4
QUIET_SECONDS = 4
FLOOD_SECONDS = 6


class Bystander(threading.Thread):
    """Sends one second of sound every second. `waits` holds pairs: when a unit was sent, and how long its answer took."""

    def __init__(self, url: str, offset: float, stop: threading.Event):
        super().__init__()
        self.session = TimedSession(url, {"config": {"generate_audio": False}})
        self.offset, self.stop, self.waits = offset, stop, []

    def run(self):
        audio = base64.b64encode(bytes(64000)).decode()
        begin = time.monotonic() + self.offset
        for n in range(100_000):
            if self.stop.wait(max(0, begin + n - time.monotonic())):
                break
            sent = time.monotonic()
            self.waits.append((sent, self.session.unit_ms(audio)))
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
            event = self.until(ANSWERS)
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


def attack(url: str, name: str) -> tuple[int, float, float, str]:
    """Waits for QUIET_SECONDS, then attacks. The bytes of one round, when it began and was over, and the answer."""
    mode, *builders = FLOODS[name] if name in FLOODS else (MESSAGES[name][0], lambda: opening(MESSAGES[name][0]), MESSAGES[name][1])
    first, frame = (build() for build in builders)
    attacker = None if name in FLOODS else Attacker(url, mode, first)
    time.sleep(QUIET_SECONDS)
    sent = time.monotonic()
    answer = attacker.send(frame) if attacker else flood(url, mode, first, frame)
    over = time.monotonic()
    if attacker and attacker.socket:
        attacker.socket.close()
    return sum(map(len, frame)) if name in FLOODS else len(frame), sent, over, answer


def quantile(values: list, share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--model", default="")
    parser.add_argument("--only", action="append")
    parser.add_argument("--json", type=Path)
    parser.add_argument("flags", nargs="*")
    options = parser.parse_args()
    flags = ["--port", "0", "--set", f"worker.max_sessions={BYSTANDERS + 2}", "--set", "log.level=warn", *options.flags]
    if options.model:
        flags += ["--model", options.model]
    server = subprocess.Popen([options.binary, "serve", *flags], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    rows, worst = [], 0.0
    stop = threading.Event()
    processes = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))  # so that the attacker never holds a bystander's interpreter
    try:
        url = server.stdout.readline().split()[1]
        everybody = [Bystander(url, n / BYSTANDERS, stop) for n in range(BYSTANDERS)]
        for each in everybody:
            each.start()
        print(f"{'message':<24} {'MB':>6} {'quiet p50':>9} {'max':>7} | {'beside it max':>13} {'later':>7} | {'took':>7}  answer")
        for name in [*MESSAGES, *FLOODS]:
            if options.only and name not in options.only:
                continue
            size, sent, over, answer = processes.submit(attack, url, name).result()
            time.sleep(2)
            units = [unit for each in everybody for unit in list(each.waits)]
            quiet = [ms for at, ms in units if sent - QUIET_SECONDS <= at < sent - 0.5]
            beside = [ms for at, ms in units if sent - 0.5 <= at < over + 1]
            later = max(beside) - quantile(quiet, 0.5)
            worst = max(worst, later)
            rows.append({"message": name, "bytes": size, "quiet_p50_ms": quantile(quiet, 0.5), "quiet_max_ms": max(quiet), "beside_max_ms": max(beside), "later_ms": later,
                         "took_s": over - sent, "answer": answer})
            print(f"{name:<24} {size / 1e6:6.1f} {quantile(quiet, 0.5):6.1f} ms {max(quiet):4.0f} ms | {max(beside):10.0f} ms {later:4.0f} ms | {over - sent:5.1f} s  {answer}", flush=True)
        stop.set()
        for each in everybody:
            each.join()
        if server.poll() is not None:
            raise SystemExit(f"stall: the server has gone with {server.returncode}")
        peak = int(next(line for line in Path(f"/proc/{server.pid}/status").read_text().splitlines() if line.startswith("VmHWM")).split()[1]) / 1024
        print(f"worst: {worst:.0f} ms later; the server held {peak:.0f} MiB at most")
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
