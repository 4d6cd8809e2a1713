"""Someone who talks to a server of OpenAI's Realtime API as clients do: 24 kHz, 100 ms at a time, from a microphone that never stops."""
import asyncio
import base64
import json
import subprocess
import time
from typing import NamedTuple

import numpy as np
from websockets.asyncio.client import connect

RATE, PIECE = 24_000, 2_400
VOICES = ["en-us", "en-gb", "en-us+f2", "en-us+f4", "en-gb+m3", "en-us+m5", "en-gb-scotland", "en-us+croak"]
LOUD = 0.02


def voice(text: str, name: str, speed: int = 160) -> np.ndarray:
    """A sentence by espeak-ng at 24 kHz, peaks at half of full scale, without the silence around it."""
    spoken = subprocess.run(["espeak-ng", "--stdout", "-v", name, "-s", str(speed), text], check=True, capture_output=True).stdout
    rate = int.from_bytes(spoken[24:28], "little")
    samples = np.frombuffer(spoken[44:], "<i2").astype(np.float32) / 32768
    samples = np.interp(np.arange(0, len(samples) - 1, rate / RATE), np.arange(len(samples)), samples)
    loud = np.flatnonzero(np.abs(samples) > LOUD)
    samples = samples[loud[0]:loud[-1]]
    return (samples / np.abs(samples).max() * 0.5).astype(np.float32)


def hum(name: str, ms: int = 300) -> np.ndarray:
    """An "mm-hm" of that length."""
    whole = voice("mm-hmm", name, 300)
    wanted = RATE * ms // 1000
    out = np.interp(np.linspace(0, len(whole) - 1, wanted), np.arange(len(whole)), whole) if len(whole) > wanted else whole
    return np.concatenate([out, np.zeros(wanted - len(out))]).astype(np.float32)


class Talk:
    """A connection whose microphone never stops."""

    def __init__(self, socket):
        self.socket, self.pending, self.events, self.news = socket, np.zeros(0, np.float32), [], asyncio.Event()
        self.loud_at = None

    async def send(self, **event):
        await self.socket.send(json.dumps(event))

    async def microphone(self):
        due = time.monotonic()
        while True:
            piece, self.pending = self.pending[:PIECE], self.pending[PIECE:]
            loud = np.flatnonzero(np.abs(piece) > LOUD)
            samples = np.zeros(PIECE, np.float32)
            samples[: len(piece)] = piece
            # A microphone hands a piece over when it is full: its first sample is as old as the piece is long.
            due += PIECE / RATE
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            if len(loud) and self.loud_at is None:
                self.loud_at = due - (PIECE - loud[0]) / RATE
            await self.send(type="input_audio_buffer.append", audio=base64.b64encode((samples * 32767).astype("<i2")).decode())

    async def listen(self):
        async for frame in self.socket:
            self.events.append((time.monotonic(), json.loads(frame)))
            self.news.set()

    async def until(self, kind: str, seconds: float = 20, from_event: int = 0):
        """The first event of a kind, and when it came."""
        end = time.monotonic() + seconds
        while True:
            for at, event in self.events[from_event:]:
                if event["type"] == kind:
                    return at, event
            self.news.clear()
            await asyncio.wait_for(self.news.wait(), max(0.0, end - time.monotonic()))


class Outcome(NamedTuple):
    """Times as by time.monotonic."""

    loud_at: float  # when the first loud sample of the sound was
    last_delta_at: float  # of the answer
    done_at: float
    status: str  # how the answer ended
    announced: bool  # as somebody's turn, before the answer ended


async def answer_and(url: str, eagerness: str, question: np.ndarray, sound: np.ndarray, wait: float) -> "Outcome | None":
    """Has a question answered, and makes a sound `wait` seconds into the answer's. None if there was no answer that was long enough."""
    async with connect(url.replace("http", "ws", 1) + "/v1/realtime?model=any", max_size=None) as socket:
        talk = Talk(socket)
        reader = asyncio.create_task(talk.listen())
        await talk.send(type="session.update", session={"type": "realtime", "audio": {"input": {"turn_detection": {"type": "semantic_vad", "eagerness": eagerness}}}})
        mic = asyncio.create_task(talk.microphone())
        try:
            await talk.until("session.updated")
            talk.pending = np.concatenate([np.zeros(RATE // 2, np.float32), question])
            _, first = await talk.until("response.output_audio.delta")
            await asyncio.sleep(wait)  # into the answer
            talk.loud_at, before = None, len(talk.events)
            talk.pending = np.concatenate([talk.pending, sound])
            done_at, done = await talk.until("response.done")
            if talk.loud_at is None:
                return None  # the answer was too short
            mine = [at for at, e in talk.events if e.get("response_id") == first["response_id"] and e["type"].endswith("audio.delta")]
            announced = any(e["type"] == "input_audio_buffer.speech_started" for at, e in talk.events[before:] if at <= done_at)
            return Outcome(talk.loud_at, mine[-1], done_at, done["response"]["status"], announced)
        except asyncio.TimeoutError:
            return None
        finally:
            mic.cancel()
            reader.cancel()
