"""The rules of coming back to a session whose connection broke (docs/protocol.md 14), without sockets or clocks."""

from __future__ import annotations

from collections import deque
from typing import Callable, Iterator

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 10.0
KEPT_BYTES = 8 * 2**20
"""Of append events: more than a minute of sound."""


def waits(told_s: float | None, chance: Callable[[], float]) -> Iterator[float]:
    """How long to wait before each attempt, in seconds. `told_s` is what the server asked for, if it did; `chance` returns 0 to 1."""
    base = FIRST_WAIT_S if told_s is None else told_s
    while True:
        yield base + base * chance()
        base = min(LONGEST_WAIT_S, max(2 * base, FIRST_WAIT_S))


class Journal:
    """The newest append events of a session, numbered as the server counts them: what has to be sent again."""

    def __init__(self, kept_bytes: int = KEPT_BYTES):
        self._kept_bytes = kept_bytes
        self._frames: deque[str] = deque()
        self._bytes = 0
        self._first = 1  # the number of the oldest frame kept

    def add(self, frame: str) -> None:
        """Keeps an append event; the oldest ones give way to it."""
        self._frames.append(frame)
        self._bytes += len(frame)
        while self._bytes > self._kept_bytes and len(self._frames) > 1:
            self._drop_oldest()

    def after(self, inputs: int) -> list[str]:
        """The events behind the first `inputs`, which have arrived. Those that are no longer kept are skipped, and later ones take their numbers."""
        while self._frames and self._first <= inputs:
            self._drop_oldest()
        self._first = inputs + 1
        return list(self._frames)

    def _drop_oldest(self) -> None:
        self._bytes -= len(self._frames.popleft())
        self._first += 1
