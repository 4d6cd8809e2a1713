"""A spoken conversation: from a microphone to the model, and from the model to a loudspeaker.

`talk` takes any source and any player of sound. `Microphone` and `Speaker` are those of this machine, by the package sounddevice, which is optional:
`pip install "parley-server[sound]"`."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from array import array
from types import TracebackType
from typing import TYPE_CHECKING, Any, AsyncIterator, Protocol

from parley.client import Client, ServerError
from parley.content import INPUT_RATE, OUTPUT_RATE, Samples
from parley.events import Delta, Problem

if TYPE_CHECKING:
    from typing_extensions import Self


LAST_INPUT = "end_of_source"


class Player(Protocol):
    """What plays 24 kHz sound."""

    def play(self, samples: Samples) -> None:
        """Plays samples behind those that are being played."""

    def stop(self) -> None:
        """Falls silent at once."""


async def talk(client: Client, source: AsyncIterator[Samples] | None = None, player: Player | None = None) -> AsyncIterator[str]:
    """Sends a source of 16 kHz sound, plays what the model says, and yields its words as they come, with a line break behind each turn. Ends with the session, or when
    the source has ended and the model has answered all of it. Without source and player: microphone and speaker of this machine. Raises ServerError for what the server
    refuses."""
    with contextlib.ExitStack() as devices:
        heard = source if source is not None else devices.enter_context(Microphone())
        spoken = player if player is not None else devices.enter_context(Speaker())
        feeding = asyncio.create_task(_feed(client, heard))
        finished = True
        try:
            async for event in client:
                if isinstance(event, Problem):
                    raise ServerError(event.code, event.message)
                if not isinstance(event, Delta):
                    continue
                if event.kind != "listen":
                    finished = event.end_of_turn
                elif not finished:
                    spoken.stop()  # somebody cut in; a turn that was finished is played to its end
                if len(event.audio):
                    spoken.play(event.audio)
                if event.text:
                    yield event.text
                if event.end_of_turn:
                    yield "\n"
                if event.input_id == LAST_INPUT and "wall_clock_ms" in event.metrics:
                    break
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)


async def _feed(client: Client, source: AsyncIterator[Samples]) -> None:
    await client.feed(source)
    await client.append(silence(1), input_id=LAST_INPUT)  # a whole second completes a unit, whatever was sent before


def silence(seconds: float) -> Samples:
    """Nothing to hear, at 16 kHz."""
    return array("f", bytes(4 * round(seconds * INPUT_RATE)))


async def paced(samples: Samples, listen_seconds: float = 0) -> AsyncIterator[Samples]:
    """Samples at 16 kHz as a microphone brings them: a second of them when that second is over. Behind them, silence for as long as one wants to listen."""
    loop = asyncio.get_running_loop()
    samples = samples + silence(listen_seconds)
    begin = loop.time()
    for number, at in enumerate(range(0, len(samples), INPUT_RATE), 1):
        await asyncio.sleep(begin + number - loop.time())
        yield samples[at : at + INPUT_RATE]


class Microphone:
    """The machine's microphone as a source of sound, in pieces of 100 ms: `with Microphone() as microphone: await client.feed(microphone)`."""

    def __init__(self, device: int | str | None = None):
        self._device = device
        self._pieces: asyncio.Queue[Samples] = asyncio.Queue()
        self._stream: Any = None

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()

        def heard(data: Any, frames: int, time: Any, status: Any) -> None:
            loop.call_soon_threadsafe(self._pieces.put_nowait, array("f", bytes(data)))

        self._stream = _sounddevice().RawInputStream(INPUT_RATE, INPUT_RATE // 10, self._device, 1, "float32", callback=heard)
        self._stream.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self._stream.close()

    def __aiter__(self) -> AsyncIterator[Samples]:
        return self

    async def __anext__(self) -> Samples:
        return await self._pieces.get()


class Waiting:
    """Sound that waits to be played. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bytes = bytearray()

    def add(self, samples: Samples) -> None:
        with self._lock:
            self._bytes += samples.tobytes()

    def clear(self) -> None:
        with self._lock:
            self._bytes.clear()

    def fill(self, out: memoryview) -> None:
        """Fills bytes of float32 with what is next, and with silence behind it."""
        with self._lock:
            count = min(len(out), len(self._bytes))
            out[:count] = self._bytes[:count]
            del self._bytes[:count]
        out[count:] = bytes(len(out) - count)


class Speaker:
    """The machine's loudspeaker: `with Speaker() as speaker: speaker.play(delta.audio)`."""

    def __init__(self, device: int | str | None = None):
        self._device = device
        self._waiting = Waiting()
        self._stream: Any = None

    def __enter__(self) -> Self:
        def wanted(out: Any, frames: int, time: Any, status: Any) -> None:
            self._waiting.fill(memoryview(out))

        self._stream = _sounddevice().RawOutputStream(OUTPUT_RATE, 0, self._device, 1, "float32", callback=wanted)
        self._stream.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self._stream.close()

    def play(self, samples: Samples) -> None:
        self._waiting.add(samples)

    def stop(self) -> None:
        self._waiting.clear()


def _sounddevice() -> Any:
    try:
        import sounddevice  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError as missing:
        raise RuntimeError('microphone and speaker take the package sounddevice: pip install "parley-server[sound]"') from missing
    except OSError as missing:
        raise RuntimeError(f"sounddevice does not find PortAudio ({missing}); on Debian and Ubuntu: apt install libportaudio2") from missing
    return sounddevice
