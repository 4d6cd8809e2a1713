"""A small client of /v1/realtime, written from the protocol's documentation: both dialects, nothing of the server's code."""
import base64
import json
import subprocess
import urllib.error
import urllib.request
import wave
from pathlib import Path

import numpy as np
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

UNIT = 16000
SPOKEN = Path(__file__).resolve().parents[1] / "data" / "question.wav"
WAIT_SECONDS = 60


def speech(seconds: float | None = None) -> np.ndarray:
    """A spoken question at 16 kHz, padded with silence (or cut) to the length asked for."""
    with wave.open(str(SPOKEN)) as f:
        assert (f.getframerate(), f.getnchannels(), f.getsampwidth()) == (16000, 1, 2)
        samples = np.frombuffer(f.readframes(f.getnframes()), np.int16).astype(np.float32) / 32768
    if seconds is None:
        return samples
    out = np.zeros(int(seconds * UNIT), np.float32)
    out[: min(len(out), len(samples))] = samples[: len(out)]
    return out


def say(text: str) -> np.ndarray:
    """A fresh sentence at 16 kHz, as espeak-ng speaks it."""
    spoken = subprocess.run(["espeak-ng", "--stdout", text], check=True, capture_output=True).stdout
    rate = int.from_bytes(spoken[24:28], "little")
    samples = np.frombuffer(spoken[44:], "<i2").astype(np.float32) / 32768  # a stream's header knows no length
    at = np.arange(0, len(samples) - 1, rate / UNIT)
    return np.interp(at, np.arange(len(samples)), samples).astype(np.float32)


def write_wav(path: Path, samples: np.ndarray):
    """Mono, 16 kHz, 16 bits."""
    with wave.open(str(path), "wb") as f:
        f.setparams((1, 2, UNIT, 0, "NONE", ""))
        f.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())


def b64(samples: np.ndarray) -> str:
    return base64.b64encode(np.asarray(samples, "<f4").tobytes()).decode()


def floats(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text, validate=True), "<f4")


def http(server, path: str, method: str = "GET", body: dict | None = None) -> tuple[int, dict | str]:
    """Status and body (parsed where it is JSON) of one HTTP request."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(server.http + path, data=data, method=method, headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=WAIT_SECONDS) as answer:
            status, text, kind = answer.status, answer.read().decode(), answer.headers["Content-Type"]
    except urllib.error.HTTPError as answer:
        status, text, kind = answer.code, answer.read().decode(), answer.headers["Content-Type"]
    return status, json.loads(text) if kind.startswith("application/json") else text


class Closed(Exception):
    """The server closed the WebSocket."""

    def __init__(self, code: int | None):
        super().__init__(f"closed with {code}")
        self.code = code


class Client:
    """A connection in one mode. `heard` holds every event that came, in order."""

    def __init__(self, server, mode: str | None = "audio", query: str = "", **options):
        url = server.realtime + (f"?mode={mode}" if mode is not None else "?") + query
        self.socket = connect(url, max_size=None, compression=None, open_timeout=WAIT_SECONDS, close_timeout=5, **options)
        self.heard: list[dict] = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, event: dict | str | bytes):
        self.socket.send(json.dumps(event) if isinstance(event, dict) else event)

    def receive(self, seconds: float = WAIT_SECONDS) -> dict:
        try:
            event = json.loads(self.socket.recv(timeout=seconds))
        except ConnectionClosed as gone:
            raise Closed(gone.rcvd.code if gone.rcvd else None) from None
        self.heard.append(event)
        return event

    def until(self, *types: str) -> dict:
        """The next event of one of these types; others are kept in `heard`. An unexpected error fails the test."""
        while True:
            event = self.receive()
            if event["type"] in types:
                return event
            assert event["type"] != "error", event

    def until_error(self) -> dict:
        """The next error, other events kept in `heard`: its {code, message, type}."""
        while True:
            event = self.receive()
            if event["type"] == "error":
                return event["error"]

    def closed(self) -> int:
        """Reads to the end and gives back the close code."""
        while True:
            try:
                self.receive()
            except Closed as end:
                return end.code

    # -- the current dialect -------------------------------------------------------------------------------------------
    def init(self, **payload) -> dict:
        self.until("session.queue_done")
        self.send({"type": "session.init", "payload": payload})
        return self.until("session.created")

    def append(self, samples: np.ndarray, **fields):
        self.send({"type": "input.append", "input": {"audio": b64(samples), **fields}})

    def step(self, samples: np.ndarray, **fields) -> list[dict]:
        """One unit in, all deltas of its answer out: the last one carries metrics.wall_clock_ms."""
        self.append(samples, **fields)
        deltas = [self.until("response.output.delta")]
        while "wall_clock_ms" not in deltas[-1].get("metrics", {}):
            deltas.append(self.until("response.output.delta"))
        return deltas

    def ask(self, text: str, **fields) -> tuple[list[dict], dict]:
        """One chat turn: its deltas and its response.done."""
        self.send({"type": "input.append", "input": {"messages": [{"role": "user", "content": text}], **fields}})
        deltas = []
        while True:
            event = self.until("response.output.delta", "response.done")
            if event["type"] == "response.done":
                return deltas, event
            deltas.append(event)

    def until_done(self) -> dict:
        return self.until("response.done")

    # -- the legacy dialect --------------------------------------------------------------------------------------------
    def update(self, **session) -> dict:
        self.until("session.queue_done")
        self.send({"type": "session.update", "session": {"instructions": "You are a helpful assistant.", **session}})
        return self.until("session.created")

    def append_legacy(self, samples: np.ndarray, **fields):
        self.send({"type": "input_audio_buffer.append", "audio": b64(samples), **fields})

    def step_legacy(self, samples: np.ndarray, **fields) -> dict:
        self.append_legacy(samples, **fields)
        return self.until("response.listen", "response.output_audio.delta")

    def say_goodbye(self, reason: str = "user_stop") -> tuple[dict, int]:
        """session.close, the confirmation and the close code."""
        self.send({"type": "session.close", "reason": reason})
        return self.until("session.closed"), self.closed()
