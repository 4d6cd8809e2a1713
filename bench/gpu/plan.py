#!/usr/bin/env python3
"""The plan of a lent GPU's 15 minutes: what is done in which call, each step with its limit. bench/gpu/run.sh --dry prints it.

    plan.py [--memory MIB]      prints the plan, for a card with so much memory
    plan.py --limit STEP        prints the limit of a step, for scripts

Steps stand in the order of their worth, and each writes its rows at once: whatever is cut off leaves what came before. A step that ends early leaves its
time to the last one of its call."""
import argparse
from typing import NamedTuple

BUDGET = 900  # seconds of a lent machine, its start included
START = 120  # from asking for it to the first command: 60 to 120 s
TRAVEL_MIB = 60  # of the 64 that a checkout may have on its way there


class Step(NamedTuple):
    part: str
    seconds: int  # at most
    tells: str


CALLS = {
    "first": (
        Step("unpack", 20, "whether the programs are there; the model folder of the published size is written beside all that follows"),
        Step("probe", 100, "questions to the card that need no program of ours: attention, operators, copies, layers of the published size"),
        Step("nano", 80, "whether the device gives the goldens of models/nano in float32; if not, whether plain attention does"),
        Step("model", 60, "what is left of writing the folder, and its check"),
        Step("stages", 100, "milliseconds and memory of each stage by sessions"),
    ),
    "second": (
        Step("sessions", 240, "conversations in real time: late units, lag, first sound, underrun"),
        Step("parity", 90, "the other goldens in float32 and bfloat16"),
    ),
}

# Sessions of a stage's rows: alone, the least that others admit on one card, and the goal.
STAGE_SESSIONS = (1, 16, 64)
STAGE_PAST = 2048  # rows of each in the language model

# Conversations: alone, what others admit (16, 20), and on towards the goal; those that the card's memory has no slots for are left out.
CONVERSATIONS = (1, 16, 20, 32, 64, 96, 128)
CONTEXT = 2048  # engine.context_tokens
# What inference/engine/capacity.cpp admits of sessions of 2,048 tokens: 73 on 81,559 MiB and 147 on 143,771. So one takes 756 MiB of nine
# tenths of what the weights and CUDA leave.
FIXED_MIB, SESSION_MIB, USABLE = 20150, 756, 0.9

# A load's seconds, and what connecting and closing add.
LOAD_SECONDS, LOAD_RAMP, LOAD_END = 15, 2, 3


LIMITS = {step.part: step.seconds for steps in CALLS.values() for step in steps}


def seconds_of(call: str) -> int:
    return sum(step.seconds for step in CALLS[call])


def total() -> int:
    return START + sum(map(seconds_of, CALLS))


def slots(memory_mib: float) -> int:
    """Sessions of `CONTEXT` tokens that a card has memory for."""
    return max(1, int(USABLE * (memory_mib - FIXED_MIB) / SESSION_MIB))


def conversations(memory_mib: float) -> list[int]:
    """Numbers of sessions to measure on a card: a server that has to refuse its slots would have loaded the model for nothing."""
    return [n for n in CONVERSATIONS if n <= slots(memory_mib)]


def text(memory_mib: float) -> str:
    lines = ["   0 s  before: bench/gpu/pack.sh, then bench/gpu/travel.py aside; after the last call: bench/gpu/travel.py back", f"{START:4} s  start of the machine"]
    for call, steps in CALLS.items():
        lines.append(f"{seconds_of(call):4} s  bash bench/gpu/{call}.sh")
        lines += [f"  {step.seconds:4} s  {step.part}: {step.tells}" for step in steps]
    counts = conversations(memory_mib)
    each = LOAD_SECONDS + LOAD_RAMP + LOAD_END
    return "\n".join([
        *lines,
        f"{total():4} s  of {BUDGET}",
        "",
        f"Stages for {', '.join(map(str, STAGE_SESSIONS))} sessions with {STAGE_PAST:,} rows each.",
        f"A card of {memory_mib:,.0f} MiB has slots for {slots(memory_mib)} sessions of {CONTEXT:,} tokens: conversations of {', '.join(map(str, counts))},",
        f"{each} s each, who speak 40 % of their seconds; then as many of those who speak always as there is time for.",
        f"At most {TRAVEL_MIB} MiB travel: bench/gpu/travel.py."])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--memory", type=float, default=81559, help="MiB of the card; default: an H100 of 80 GB")
    parser.add_argument("--limit", choices=list(LIMITS), help="print only the limit of this step")
    how = parser.parse_args()
    print(LIMITS[how.limit] if how.limit else text(how.memory))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
