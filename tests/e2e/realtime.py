"""A small client of /v1/realtime, written from the protocol documentation: both dialects, none of the server's code."""
import base64
import contextlib
import json
import struct
import subprocess
import threading
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
    """A spoken question at 16 kHz, padded with silence or cut to the requested length."""
    with wave.open(str(SPOKEN)) as f:
        assert (f.getframerate(), f.getnchannels(), f.getsampwidth()) == (16000, 1, 2)
        samples = np.frombuffer(f.readframes(f.getnframes()), np.int16).astype(np.float32) / 32768
    if seconds is None:
        return samples
    out = np.zeros(int(seconds * UNIT), np.float32)
    out[: min(len(out), len(samples))] = samples[: len(out)]
    return out


def say(text: str) -> np.ndarray:
    """A sentence at 16 kHz, freshly spoken by espeak-ng."""
    spoken = subprocess.run(["espeak-ng", "--stdout", text], check=True, capture_output=True).stdout
    rate = int.from_bytes(spoken[24:28], "little")
    samples = np.frombuffer(spoken[44:], "<i2").astype(np.float32) / 32768  # a stream's header knows no length
    at = np.arange(0, len(samples) - 1, rate / UNIT)
    return np.interp(at, np.arange(len(samples)), samples).astype(np.float32)


def write_wav(path: Path, samples: np.ndarray):
    """Writes mono 16-bit samples at 16 kHz."""
    with wave.open(str(path), "wb") as f:
        f.setparams((1, 2, UNIT, 0, "NONE", ""))
        f.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())


def jpeg(pixels: np.ndarray) -> str:
    """RGB bytes [height,width,3], sides multiples of 8, as a baseline JPEG in base64: quantised by 4, codes of one
    length."""
    height, width, _ = pixels.shape
    frequency = np.cos(np.pi / 16 * np.arange(8)[:, None] * (2 * np.arange(8) + 1)) / 2
    frequency[0] /= 2**0.5
    zigzag = sorted(range(64), key=lambda i: (i // 8 + i % 8, i // 8 if (i // 8 + i % 8) % 2 else i % 8))
    sizes = [0, 0xF0] + [16 * zeros + bits for zeros in range(16) for bits in range(1, 11)]
    colours = pixels @ np.array([[0.299, -0.168736, 0.5], [0.587, -0.331264, -0.418688], [0.114, 0.5, -0.081312]]) - [128, 0, 0]
    blocks = frequency @ colours.reshape(height // 8, 8, width // 8, 8, 3).transpose(0, 2, 4, 1, 3) @ frequency.T
    out, before = [], [0, 0, 0]

    def number(value: int) -> str:
        return format(value if value > 0 else value + (1 << abs(value).bit_length()) - 1, f"0{abs(value).bit_length()}b") if value else ""

    for k, block in enumerate(np.round(blocks / 4).astype(int).reshape(-1, 64)[:, zigzag].tolist()):
        change, before[k % 3], zeros = block[0] - before[k % 3], block[0], 0
        out.append(format(abs(change).bit_length(), "04b") + number(change))
        for value in block[1:]:
            if value:
                out += [format(sizes.index(0xF0), "08b")] * (zeros // 16)
                out.append(format(sizes.index(zeros % 16 * 16 + abs(value).bit_length()), "08b") + number(value))
            zeros = 0 if value else zeros + 1
        out.append("00000000" if zeros else "")
    bits = "".join(out)
    bits += "1" * (-len(bits) % 8)
    scan = int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\0")
    part = lambda kind, data: struct.pack(">BBH", 255, kind, len(data) + 2) + data
    codes = lambda which, length, symbols: bytes([which] + [len(symbols) if n == length else 0 for n in range(1, 17)] + symbols)
    file = b"\xff\xd8" + part(0xDB, bytes([0] + [4] * 64)) + part(0xC0, struct.pack(">BHHB", 8, height, width, 3) + bytes([1, 17, 0, 2, 17, 0, 3, 17, 0]))
    file += part(0xC4, codes(0, 4, list(range(12)))) + part(0xC4, codes(16, 8, sizes)) + part(0xDA, bytes([3, 1, 0, 2, 0, 3, 0, 0, 63, 0])) + scan + b"\xff\xd9"
    return base64.b64encode(file).decode()


def drawn(shape: str, colour: tuple[int, int, int], width: int = 320, height: int = 240) -> np.ndarray:
    """One shape ("circle" or "square"), 120 pixels wide, in the middle of a white picture."""
    y, x = np.mgrid[:height, :width]
    across, down = abs(x - width / 2), abs(y - height / 2)
    inside = np.hypot(across, down) < 60 if shape == "circle" else np.maximum(across, down) < 60
    return np.where(inside[..., None], np.uint8(colour), np.uint8(255))


def b64(samples: np.ndarray) -> str:
    return base64.b64encode(np.asarray(samples, "<f4").tobytes()).decode()


def floats(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text, validate=True), "<f4")


def http(server, path: str, method: str = "GET", body: dict | None = None) -> tuple[int, dict | str]:
    """Status and body (parsed if it is JSON) of one HTTP request."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(server.http + path, data=data, method=method, headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=WAIT_SECONDS) as answer:
            status, text, kind = answer.status, answer.read().decode(), answer.headers["Content-Type"]
    except urllib.error.HTTPError as answer:
        status, text, kind = answer.code, answer.read().decode(), answer.headers["Content-Type"]
    return status, json.loads(text) if kind.startswith("application/json") else text


def sessions(server, state: str) -> list[dict]:
    """Those in `GET /sessions` that are in this state."""
    return [session for session in http(server, "/sessions")[1]["sessions"] if session["state"] == state]


class Closed(Exception):
    """The server closed the WebSocket."""

    def __init__(self, code: int | None):
        super().__init__(f"closed with {code}")
        self.code = code


class Client:
    """A connection in one mode. `heard` holds every received event, in order."""

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
        """Waits for the next event of one of these types; `heard` keeps the others. Fails on an unexpected error."""
        while True:
            event = self.receive()
            if event["type"] in types:
                return event
            assert event["type"] != "error", event

    def until_error(self) -> dict:
        """Waits for the next error and returns its {code, message, type}; `heard` keeps other events."""
        while True:
            event = self.receive()
            if event["type"] == "error":
                return event["error"]

    @contextlib.contextmanager
    def talking(self, event: dict):
        """Sends this event again and again, as a microphone does, until the connection has ended or the block has."""
        stop = threading.Event()

        def talk():
            while not stop.is_set():
                try:
                    self.send(event)
                except ConnectionClosed:
                    return

        microphone = threading.Thread(target=talk)
        microphone.start()
        try:
            yield
        finally:
            stop.set()
            microphone.join()

    def closed(self) -> int:
        """Reads to the end and returns the close code."""
        while True:
            try:
                self.receive()
            except Closed as end:
                return end.code

    # ---- the current dialect
    def init(self, **payload) -> dict:
        self.until("session.queue_done")
        self.send({"type": "session.init", "payload": payload})
        return self.until("session.created")

    def append(self, samples: np.ndarray, **fields):
        self.send({"type": "input.append", "input": {"audio": b64(samples), **fields}})

    def step(self, samples: np.ndarray, **fields) -> list[dict]:
        """Sends one unit and returns all deltas of its answer; the last one carries metrics.wall_clock_ms."""
        self.append(samples, **fields)
        deltas = [self.until("response.output.delta")]
        while "wall_clock_ms" not in deltas[-1].get("metrics", {}):
            deltas.append(self.until("response.output.delta"))
        return deltas

    def ask(self, text: str, **fields) -> tuple[list[dict], dict]:
        """One chat turn: returns its deltas and its response.done."""
        self.send({"type": "input.append", "input": {"messages": [{"role": "user", "content": text}], **fields}})
        deltas = []
        while True:
            event = self.until("response.output.delta", "response.done")
            if event["type"] == "response.done":
                return deltas, event
            deltas.append(event)

    def until_done(self) -> dict:
        return self.until("response.done")

    # ---- the legacy dialect
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
        """Sends session.close; returns the confirmation and the close code."""
        self.send({"type": "session.close", "reason": reason})
        return self.until("session.closed"), self.closed()
