#!/usr/bin/env python3
"""How soon the model falls silent when somebody interrupts it, and whether a short "mm-hm" leaves it alone: the default model on the real
server, through OpenAI's Realtime API as clients speak it (24 kHz, 100 ms at a time, full duplex). Prints a table.
  bench/barge_in.py [--binary build/release/parley] [--trials 24] [--at-once 3]"""
import argparse
import asyncio
import random
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from talking import VOICES, answer_and, hum, voice  # noqa: E402
async def trials(url: str, a, eagerness: str, make_sound, question):
    rng, gate, results = random.Random(a.seed), asyncio.Semaphore(a.at_once), []

    async def one(i: int, wait: float):
        async with gate:
            results.append(await answer_and(url, eagerness, question, make_sound(VOICES[i % len(VOICES)]), wait))

    await asyncio.gather(*(one(i, rng.uniform(0.0, 0.3)) for i in range(a.trials)))
    return [r for r in results if r]


def spread(values) -> str:
    return f"{min(values):.0f} / {statistics.median(values):.0f} / {max(values):.0f} ms" if values else "–"


async def measure(url: str, a):
    question = voice(a.question, "en-us")
    print("| sound, eagerness | answers | cut | last delta after the first loud sample: min / median / max | end of the answer: min / median / max |")
    print("|---|---|---|---|---|")
    for name, eagerness, sound in (("an interruption", "high", lambda v: voice("Wait, stop, I have another question.", v)),
                                   ("an interruption", "auto", lambda v: voice("Wait, stop, I have another question.", v)),
                                   ("mm-hm, 300 ms", "auto", hum), ("mm-hm, 300 ms", "low", hum), ("mm-hm, 300 ms", "high", hum)):
        found = await trials(url, a, eagerness, sound, question)
        cut = [r for r in found if r.status == "cancelled"]
        deltas = [max(0.0, r.last_delta_at - r.loud_at) * 1000 for r in cut]
        ends = [(r.done_at - r.loud_at) * 1000 for r in cut]
        print(f"| {name}, `{eagerness}` | {len(found)} | {len(cut)} | {spread(deltas)} | {spread(ends)} |", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--binary", default="build/release/parley")
    p.add_argument("--model", default="models/nano")
    p.add_argument("--question", default="What are the days of the week?")
    p.add_argument("--trials", type=int, default=24)
    p.add_argument("--at-once", type=int, default=3)
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    server = subprocess.Popen([a.binary, "serve", "--set", "server.port=0", "--set", "worker.max_sessions=16", "--set", "engine.seed=7", "--model", a.model],
                              cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        url = next(line.split()[-1] for line in server.stdout if line.startswith("ready "))
        asyncio.run(measure(url, a))
    finally:
        server.terminate()
        server.wait(20)


if __name__ == "__main__":
    main()
