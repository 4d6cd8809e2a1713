"""Sound and pictures as the wire carries them (docs/protocol.md 1 and 3)."""

from __future__ import annotations

import base64
import os
import sys
import wave
from array import array
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from typing_extensions import Buffer

INPUT_RATE = 16_000
OUTPUT_RATE = 24_000

Samples: TypeAlias = "array[float]"
"""32-bit floats between -1 and 1, one channel. `numpy.asarray` takes them without a copy, and arrays of `numpy.float32` are taken wherever sound is asked for."""


def encode_samples(samples: Buffer) -> str:
    """Float32 samples, of any object that shows its memory as such, in base64. Bytes are taken for little-endian float32."""
    view = memoryview(samples)
    if view.format not in ("f", "<f", "B") or view.ndim != 1:
        raise TypeError(f"sound is one-dimensional float32, not {view.ndim}-dimensional {view.format!r}")
    if view.nbytes % 4:
        raise ValueError(f"{view.nbytes} bytes are no whole number of float32 samples")
    data = view.tobytes()
    if view.format == "f" and sys.byteorder == "big":
        swapped = array("f", data)
        swapped.byteswap()
        data = swapped.tobytes()
    return base64.b64encode(data).decode("ascii")


def decode_samples(text: str) -> Samples:
    """The samples of an `audio` field."""
    samples = array("f", base64.b64decode(text, validate=True))
    if sys.byteorder == "big":
        samples.byteswap()
    return samples


def encode_bytes(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def picture(data: bytes) -> dict[str, str]:
    """A JPEG, PNG or WebP file as an item of a chat message's `content`."""
    return {"type": "image", "data": encode_bytes(data)}


def sound(data: bytes) -> dict[str, str]:
    """A file of sound (WAV, FLAC, Ogg, MP3 and others: docs/protocol.md 3.1) as an item of a chat message's `content`."""
    return {"type": "audio", "data": encode_bytes(data)}


def load_wav(path: str | os.PathLike[str]) -> Samples:
    """The samples of a WAV file with 16 bits at 16 kHz, its channels mixed into one: what a duplex session takes. Raises ValueError for other files."""
    with wave.open(os.fspath(path)) as file:
        channels, width, rate = file.getnchannels(), file.getsampwidth(), file.getframerate()
        if (width, rate) != (2, INPUT_RATE):
            raise ValueError(f"{os.fspath(path)} has {8 * width} bits at {rate} Hz; a microphone's sound is 16 bits at 16000 Hz: ffmpeg -i IN -ac 1 -ar 16000 OUT.wav")
        numbers = array("h", file.readframes(file.getnframes()))
    if sys.byteorder == "big":
        numbers.byteswap()
    if channels == 1:
        return array("f", (number / 32768 for number in numbers))
    return array("f", (sum(numbers[at : at + channels]) / (32768 * channels) for at in range(0, len(numbers), channels)))


def save_wav(path: str | os.PathLike[str], samples: Samples, rate: int = OUTPUT_RATE) -> None:
    """Writes samples as a WAV file with 16 bits."""
    numbers = array("h", (round(max(-1.0, min(1.0, sample)) * 32767) for sample in samples))
    if sys.byteorder == "big":
        numbers.byteswap()
    with wave.open(os.fspath(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(numbers.tobytes())
