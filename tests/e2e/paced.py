"""Conversations spoken at a steady pace, whatever happens to the server, and what was heard in them."""
import threading
import time

import numpy as np

from realtime import UNIT, Client, Closed, floats, speech


def material(seed: int, units: int) -> list[np.ndarray]:
    """One speaker's sound, different for each seed: the spoken question, shifted, and quieter or louder."""
    random = np.random.default_rng(seed)
    once = np.concatenate([speech(), np.zeros(UNIT // 2, np.float32)])
    sound = np.roll(np.tile(once, 1 + (units * UNIT) // len(once)), int(random.integers(len(once))))[: units * UNIT]
    return list(np.round(sound * random.uniform(0.3, 1.0) * 32767).astype(np.float32).reshape(units, UNIT) / 32768)


class Paced:
    """One session of `units` seconds on its own threads. Sends a second every `pace` seconds (0: after each
    answer)."""

    def __init__(self, server, seed: int, units: int, pace: float):
        self.seed, self.units, self.pace = seed, units, pace
        self.problem: Exception | None = None
        self.words: dict[int, list] = {}  # chunk_index -> what was decided and said
        self.sound: dict[int, list] = {}
        self.answered: list[float] = []  # when each unit was answered
        self.client = self.client_of(server)
        self.client.init(config={"seed": seed, "force_listen_count": 0})
        self._material = material(seed, units)
        self._asked_for = threading.Semaphore(1)  # without a pace: permits to send the next second
        self._threads = [threading.Thread(target=self._guarded, args=(what,)) for what in (self._speak, self._hear)]
        self.began = time.monotonic()
        for thread in self._threads:
            thread.start()

    def client_of(self, server) -> Client:
        return Client(server)

    def say(self, number: int, unit: np.ndarray):
        self.client.append(unit)

    def _guarded(self, what):
        try:
            what()
        except Exception as problem:  # reported by `finish`
            self.problem = self.problem or problem

    def _speak(self):
        for number, unit in enumerate(self._material):
            if self.pace:
                time.sleep(max(0.0, self.began + number * self.pace - time.monotonic()))
            else:
                self._asked_for.acquire()
            self.say(number, unit)

    def _hear(self):
        chunk = -1
        while len(self.answered) < self.units:
            event = self.client.until("response.output.delta", "session.closed")
            if event["type"] == "session.closed":
                raise RuntimeError(event)
            if "chunk_index" in event:
                chunk = event["chunk_index"]
                assert chunk not in self.words, "said twice"
            self.words.setdefault(chunk, []).append((event["kind"], event.get("text")))
            if event["kind"] == "audio":
                self.sound.setdefault(chunk, []).append(floats(event["audio"]))
            if "wall_clock_ms" in event.get("metrics", {}):
                self.answered.append(time.monotonic())
                self._asked_for.release()
                dropped = event["metrics"]["dropped_chunks"]
                assert dropped == 0, f"{dropped} seconds were dropped"

    def finish(self, seconds: float = 180) -> "Paced":
        for thread in self._threads:
            thread.join(seconds)
        if self.problem is None and any(t.is_alive() for t in self._threads):
            self.problem = TimeoutError(f"{len(self.answered)} of {self.units} seconds were answered")
        if self.problem is None:
            try:
                self.client.say_goodbye()
            except Closed as problem:
                self.problem = problem
        self.client.socket.close()
        return self

    def waits(self) -> list[float]:
        """The time from when each second was due to its answer."""
        return [at - (self.began + number * self.pace) for number, at in enumerate(self.answered)]

    def longest_wait(self) -> float:
        return max(self.waits())

    def transcript(self) -> tuple[list, np.ndarray]:
        words = [self.words[chunk] for chunk in sorted(self.words)]
        sound = [part for chunk in sorted(self.sound) for part in self.sound[chunk]]
        return words, np.concatenate(sound) if sound else np.zeros(0, np.float32)


def differences(one: Paced, other: Paced) -> list[str]:
    """How two conversations differ: in words, or in samples by more than 1e-3."""
    (words, sound), (other_words, other_sound) = one.transcript(), other.transcript()
    found = [f"second {i}: {a} / {b}" for i, (a, b) in enumerate(zip(words, other_words)) if a != b]
    if len(words) != len(other_words):
        found.append(f"{len(words)} / {len(other_words)} seconds")
    if len(sound) != len(other_sound):
        found.append(f"{len(sound)} / {len(other_sound)} samples")
    elif len(sound) and np.max(np.abs(sound - other_sound)) > 1e-3:
        found.append(f"samples differ by {np.max(np.abs(sound - other_sound)):.2g}")
    return found
