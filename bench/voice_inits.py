#!/usr/bin/env python3
"""How much a running session is slowed when others begin with their own voices: its unit latency alone, and during a series of inits.
  bench/voice_inits.py ws://127.0.0.1:8006 [--inits 20] [--units 200] [--blocks 4] [--voice-seconds 6] [--pace 0]
The server needs two slots. Prints p50, p95, p99 and max of both, their ratio, and how long an init took."""
import argparse
import threading
import time

import numpy as np

from timed_session import UNIT, TimedSession, b64


def some_voice(seed: int, seconds: float) -> np.ndarray:
    random = np.random.default_rng(seed)
    t = np.arange(int(seconds * UNIT)) / UNIT
    return 0.3 * np.sin(2 * np.pi * random.uniform(90, 250) * t) * (1 + 0.5 * np.sin(6 * t)) + random.normal(0, 0.01, len(t))


def talk(session: TimedSession, units: int, pace: float, go_on=lambda: True) -> list[float]:
    audio = b64(some_voice(0, 1))
    latencies = []
    while len(latencies) < units and go_on():
        latencies.append(session.unit_ms(audio))
        time.sleep(max(0, pace - latencies[-1] / 1e3))
    return latencies


def row(name: str, ms: list[float]):
    p = np.percentile(ms, [50, 95, 99, 100])
    print(f"{name:<22}{len(ms):>6}{p[0]:>9.1f}{p[1]:>9.1f}{p[2]:>9.1f}{p[3]:>9.1f}")


def main():
    args = argparse.ArgumentParser()
    args.add_argument("url")
    args.add_argument("--inits", type=int, default=20)
    args.add_argument("--units", type=int, default=200)
    args.add_argument("--blocks", type=int, default=4, help="how often quiet and inits alternate")
    args.add_argument("--voice-seconds", type=float, default=6)
    args.add_argument("--pace", type=float, default=0, help="seconds between units; 0 = as fast as they are answered")
    args = args.parse_args()
    config = {"force_listen_count": 0, "seed": 1, "sliding_window_mode": "basic"}
    warm_up = TimedSession(args.url, {"config": config})
    talk(warm_up, 10, 0)
    warm_up.close()

    created, alone, during = [], [], []
    talker = TimedSession(args.url, {"config": config})
    for block in range(args.blocks):  # alternate, so that other load on the machine affects both alike
        alone += talk(talker, args.units // args.blocks, args.pace)
        over = threading.Event()

        def inits():
            for i in range(args.inits // args.blocks):
                voice = b64(some_voice(time.time_ns() % (1 << 32) + i, args.voice_seconds))
                beginner = TimedSession(args.url, {"voice": {"tts_ref_audio_base64": voice}, "config": config})
                created.append(beginner.created_ms)
                beginner.close()
            over.set()

        thread = threading.Thread(target=inits)
        thread.start()
        during += talk(talker, 1 << 30, args.pace, lambda: not over.is_set())
        thread.join()
    talker.close()
    print(f"{'ms':<22}{'n':>6}{'p50':>9}{'p95':>9}{'p99':>9}{'max':>9}")
    row("units alone", alone)
    row(f"units in {len(created)} inits", during)
    row("inits", created)
    print(f"p99 ratio {np.percentile(during, 99) / np.percentile(alone, 99):.2f}")


if __name__ == "__main__":
    main()
