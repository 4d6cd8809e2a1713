"""Reads from the engines' trace logs what they sampled for each second of a conversation, and uses it to compare two runs of a conversation.

Rounding depends slightly on which sessions share the batch. It may change a draw whose margin is below `SURE`, but no other. From there on the
sound may differ, which is reported."""
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from paced import Paced, differences

SURE = 1e-5
TRACE = ("--set", "log.engine_level=trace")
LINE = re.compile(r"draws of unit (\d+), seed (\d+): text((?: \S+)*?); speech((?: \S+)*)$", re.M)


@dataclass
class Unit:
    text: list[float]  # the margin of each draw
    speech: list[tuple[int, float | None]]  # token and margin of each draw; no margin if the token was already known


def draws(logs: list[Path]) -> dict[int, dict[int, list[Unit]]]:
    """Indexed by seed, then by unit number; the list has one entry for each engine that began the unit."""
    found: dict[int, dict[int, list[Unit]]] = {}
    for log in logs:
        for number, seed, text, speech in LINE.findall(log.read_text()):
            spoken = [(int(token), float(margin) if margin else None) for token, _, margin in (one.partition(":") for one in speech.split())]
            found.setdefault(int(seed), {}).setdefault(int(number), []).append(Unit([float(m) for m in text.split()], spoken))
    return found


@dataclass
class Verdict:
    """One conversation compared with its undisturbed run."""

    alike: bool  # same words, and sound within 1e-3
    errors: list[str] = field(default_factory=list)  # differences that rounding does not explain
    close_call: float | None = None  # margin of the draw that came out differently
    moved: float = 0.0  # the most by which rounding moved a margin
    compared: int = 0  # draws whose margins were compared

    def __str__(self) -> str:
        if self.errors:
            return "; ".join(self.errors)
        return "alike" if self.alike else f"too close to call: a draw of speech with a margin of {self.close_call:.2g} went the other way"


def first_difference(mine: dict[int, list[Unit]], calm: dict[int, list[Unit]], verdict: Verdict) -> tuple[int, float | None] | None:
    """Unit and margin of the first speech token that differs. Compares the margins before it, too."""
    for number in sorted(calm):
        [undisturbed] = calm[number]
        tipped = None
        for again in mine.get(number, []):
            for (token, margin), (calm_token, calm_margin) in zip(again.speech, undisturbed.speech):
                if token != calm_token:
                    tipped = number, calm_margin
                    break
                if margin is not None and calm_margin is not None:
                    verdict.moved = max(verdict.moved, abs(margin - calm_margin))
                    verdict.compared += 1
        if tipped:
            return tipped
    return None


def text_of(session: Paced) -> list[tuple[bool, str]]:
    """What was decided and said each second. Not whether it had sound: a different speech token may end a turn
    earlier."""
    return [(any(kind == "listen" for kind, _ in second), "".join(text or "" for _, text in second)) for second in session.transcript()[0]]


def judge(session: Paced, calm: Paced, mine: dict[int, list[Unit]], calm_draws: dict[int, list[Unit]]) -> Verdict:
    found = differences(session, calm)
    verdict = Verdict(alike=not found)
    tipped = first_difference(mine, calm_draws, verdict)
    if verdict.moved > SURE:
        verdict.errors.append(f"margins moved by {verdict.moved:.2g}: that is no rounding")
    if tipped and not (tipped[1] is not None and tipped[1] < SURE):
        verdict.errors.append(f"second {tipped[0]}: another speech token, though the margin was {tipped[1]}")
    if verdict.alike:
        return verdict
    words, calm_words = text_of(session), text_of(calm)
    if words != calm_words:
        second = next((i for i, (a, b) in enumerate(zip(words, calm_words)) if a != b), min(len(words), len(calm_words)))
        closest = min((m for unit in calm_draws.get(second, []) for m in unit.text), default=None)
        if closest is None or closest >= SURE:
            verdict.errors += found[:3]
        else:
            verdict.close_call = closest
        return verdict
    if tipped is None:
        verdict.errors += [*found[:3], "though the same speech tokens were drawn"]
        return verdict
    verdict.close_call = tipped[1]
    # Before that second both must sound the same.
    for chunk in sorted(calm.sound):
        if chunk >= tipped[0]:
            break
        a, b = (np.concatenate(of.sound.get(chunk, [np.zeros(0, np.float32)])) for of in (session, calm))
        if len(a) != len(b) or (len(a) and np.max(np.abs(a - b)) > 1e-3):
            verdict.errors.append(f"second {chunk} sounds different, before any draw did")
    return verdict
