"""The client of the native dialect (docs/protocol.md): chat, and full-duplex audio and video."""

from __future__ import annotations

import asyncio
import json
import random
import ssl as tls
import urllib.parse
from array import array
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, AsyncIterator, Literal, Mapping, Sequence

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from parley.content import Samples, encode_bytes, encode_samples
from parley.events import Answer, Closed, Delta, Event, Fields, GoAway, Problem, Queued, Resumed, ToolCall, read_event
from parley.resuming import Journal, waits

if TYPE_CHECKING:
    from typing_extensions import Buffer, Self

MOST_WAITING_EVENTS = 1024  # then reading pauses, and the server closes a connection that it cannot write to
CLOSE_SECONDS = 10.0


class ServerError(Exception):
    """The server refused something; `code` is one of docs/protocol.md 10."""

    def __init__(self, code: str, message: str):
        super().__init__(f"{code}: {message}")
        self.code = code


class ConnectionLost(Exception):
    """The connection broke, and the session could not be resumed."""


class Client:
    """One session. Use it with `async with`: that connects, waits in the queue and starts the session, and closes it at the end.

    In audio and video, send sound with `append` or `feed`, and iterate over the client for what the server says. In chat, `ask`. A connection that breaks is resumed
    without anything lost or repeated, for as long as the server keeps the session; an iteration sees a `Resumed` then.

        async with parley.Client("http://127.0.0.1:8006", "chat") as client:
            print((await client.ask("What is the capital of France?")).text)
    """

    def __init__(self, url: str = "http://127.0.0.1:8006", mode: Literal["chat", "audio", "video"] = "audio", *, system_prompt: str | None = None,
                 config: Mapping[str, object] | None = None, voice: bytes | None = None, api_key: str | None = None, resume: bool = True, others: Sequence[str] = (),
                 ssl: tls.SSLContext | None = None):
        """`url` is the server's address; `others` are further gateways that may go on with the session. `config` holds settings of docs/protocol.md 3.1, `voice` a file
        with a reference voice. `ssl` decides whom a https address is trusted by."""
        self.mode = mode
        self.session_id = ""
        self.created: Fields = {}
        """The server's `session.created`."""
        payload: dict[str, object] = {"resume": resume}
        if system_prompt is not None:
            payload["system_prompt"] = system_prompt
        if config is not None:
            payload["config"] = dict(config)
        if voice is not None:
            payload["voice"] = {"ref_audio_base64": encode_bytes(voice)}
        self._payload = payload
        self._addresses = [_websocket_address(address) for address in (url, *others)]
        self._ssl = ssl
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key is not None else {}
        self._socket: ClientConnection | None = None  # None while there is no connection
        self._sending = asyncio.Lock()
        self._journal = Journal()
        self._events: asyncio.Queue[Event | None] = asyncio.Queue(MOST_WAITING_EVENTS)  # None: look whether the session is over
        self._reading: asyncio.Task[None] | None = None
        self._resume_token: str | None = None
        self._resume_seconds = 0.0
        self._last_event_id = 0
        self._retry_after_s: float | None = None
        self._closing = False
        self._over = False
        self._end: Exception | None = None
        self._turns = 0

    # ---- the session's life

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def open(self, seconds: float | None = None) -> None:
        """Connects, waits for a slot and starts the session. Raises ServerError if the server does not want to, TimeoutError after `seconds`. `positions` tells more of
        the wait."""
        async for _ in self.positions(seconds):
            pass

    async def positions(self, seconds: float | None = None) -> AsyncIterator[Queued]:
        """The same as `open`, but tells each place in the queue on the way."""
        loop = asyncio.get_running_loop()
        deadline = None if seconds is None else loop.time() + seconds
        socket = await self._connect(self._addresses[0], {"mode": self.mode})
        try:
            while not self.created:
                left = None if deadline is None else deadline - loop.time()
                fields = _fields(await asyncio.wait_for(socket.recv(), left))
                event = read_event(fields)
                if fields["type"] == "session.queue_done":
                    await socket.send(json.dumps({"type": "session.init", "payload": self._payload}))
                elif fields["type"] == "session.created":
                    self._begin(socket, fields)
                elif isinstance(event, Problem):
                    raise ServerError(event.code, event.message)
                elif isinstance(event, Closed):
                    raise ServerError(event.reason, "the session was closed before it began")
                elif isinstance(event, Queued):
                    yield event
        except ConnectionClosed as closed:
            raise ConnectionLost(str(closed)) from closed
        finally:
            if not self.created:
                await socket.close()

    async def close(self, reason: str = "user_stop") -> None:
        """Ends the session for good. Events that nobody has read may be lost."""
        if self._reading is None:
            return
        if not self._over:
            self._closing = True
            while not self._events.empty():  # the reader may wait for room
                self._events.get_nowait()
            await self._send({"type": "session.close", "reason": reason})
            await asyncio.wait([self._reading], timeout=CLOSE_SECONDS if self._socket is not None else 0)
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        if self._socket is not None:
            await self._socket.close()

    # ---- audio and video

    async def append(self, audio: Buffer | None = None, *, frames: Sequence[bytes] = (), force_listen: bool = False, context: Sequence[Mapping[str, str]] = (),
                     **fields: object) -> None:
        """Sends 16 kHz sound (float32), with JPEG frames in video, and text for the model in `context` (docs/protocol.md 3.3, 3.9). `force_listen` interrupts the model.
        `fields` are further ones of `input`. While the connection is broken, the newest appends are kept for when it is back."""
        if audio is not None:
            fields["audio"] = encode_samples(audio)
        if frames:
            fields["video_frames"] = [encode_bytes(frame) for frame in frames]
        if force_listen:
            fields["force_listen"] = True
        if context:
            fields["context"] = [dict(message) for message in context]
        await self._send({"type": "input.append", "input": fields}, kept=True)

    async def feed(self, source: AsyncIterator[Samples]) -> None:
        """Appends all that a source of sound yields, as a microphone does, until it ends or the session does."""
        async for samples in source:
            if self._over:
                return
            await self.append(samples)

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        """The next thing that the server says. Ends behind `Closed`; raises ConnectionLost if the session is lost. One reader at a time."""
        event = await self._next()
        if event is None:
            raise StopAsyncIteration
        return event

    # ---- chat

    async def ask(self, messages: str | Sequence[Mapping[str, object]], *, speak: bool = False, **fields: object) -> Answer:
        """One turn of a chat: its text, its calls of functions, and with `speak` its sound. `messages` is the whole conversation, or what the user says. `fields` are
        further ones of `input` (docs/protocol.md 3.5), such as `generation={"max_new_tokens": 64}` or `tools=[...]`."""
        calls: list[ToolCall] = []
        audio = array("f")
        async for event in self.stream(messages, speak=speak, **fields):
            if isinstance(event, Delta):
                audio.extend(event.audio)
            elif isinstance(event, ToolCall):
                calls.append(event)
            else:
                audio.extend(event.audio)
                return replace(event, tool_calls=tuple(calls), audio=audio)
        raise ConnectionLost("the session ended before the answer did")

    async def stream(self, messages: str | Sequence[Mapping[str, object]], *, speak: bool = False, **fields: object) -> AsyncIterator[Delta | ToolCall | Answer]:
        """The same as `ask`, piece by piece. The last one is an `Answer` with the whole text. Raises ServerError if the turn is refused."""
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        if speak:
            fields["tts"] = {"enabled": True, **_mapping(fields.get("tts"))}
        self._turns += 1
        name = f"turn_{self._turns}"
        await self._send({"type": "input.append", "input": {"messages": [dict(message) for message in messages], **fields, "input_id": name}}, kept=True)
        while (event := await self._next()) is not None:
            if isinstance(event, Problem):
                raise ServerError(event.code, event.message)
            if not isinstance(event, (Delta, ToolCall, Answer)) or event.input_id != name:
                continue  # what is left of a turn that nobody read to its end
            yield event
            if isinstance(event, Answer):
                return

    # ---- below

    def _begin(self, socket: ClientConnection, created: Fields) -> None:
        self.created = created
        self.session_id = created["session_id"]
        self._resume_token = created.get("resume_token")
        self._resume_seconds = created.get("resume_seconds", 0)
        self._last_event_id = created.get("event_id", 0)
        self._socket = socket
        self._reading = asyncio.get_running_loop().create_task(self._read())

    async def _next(self) -> Event | None:
        while not self._over or not self._events.empty():
            event = await self._events.get()
            if event is not None:
                return event
        if self._end is not None:
            raise self._end
        return None

    async def _send(self, event: Mapping[str, object], kept: bool = False) -> None:
        """Sends an event. One that is `kept` is sent again if it has not arrived when the connection is back."""
        frame = json.dumps(event)
        async with self._sending:
            if self._over:
                raise ConnectionLost("the session is over")
            if kept:
                self._journal.add(frame)
            if self._socket is not None:
                try:
                    await self._socket.send(frame)
                except ConnectionClosed:
                    pass  # the reader notices too, and comes back

    async def _read(self) -> None:
        """Reads all connections of the session, one after another."""
        try:
            while not await self._read_connection():
                await self._come_back()
        except Exception as problem:  # it is the iteration's to raise
            self._end = problem
        finally:
            self._over = True
            self._tell(None)

    async def _read_connection(self) -> bool:
        """Reads until the connection ends, and returns whether the session has."""
        assert self._socket is not None
        socket = self._socket
        try:
            while True:
                fields = _fields(await socket.recv())
                number = fields.get("event_id")
                if number is not None:
                    if number <= self._last_event_id:
                        continue
                    self._last_event_id = number
                event = read_event(fields)
                if isinstance(event, GoAway) and event.retry_after_ms is not None:
                    self._retry_after_s = event.retry_after_ms / 1000
                if event is None:
                    continue
                if self._closing:
                    self._tell(event)
                else:
                    await self._events.put(event)
                if isinstance(event, Closed):
                    return True
        except ConnectionClosed as closed:
            self._socket = None
            if self._closing:
                return True
            if self._resume_token is None:
                raise ConnectionLost(str(closed)) from closed
            return False

    async def _come_back(self) -> None:
        """Resumes the session over a new connection. Raises if it is over, or the server has not taken it back in time."""
        loop = asyncio.get_running_loop()
        give_up = loop.time() + self._resume_seconds + (self._retry_after_s or 0)
        refused: dict[str, str] = {}
        address = 0
        for wait in waits(self._retry_after_s, random.random):
            if loop.time() + wait > give_up:
                raise ConnectionLost(f"no connection for {self._resume_seconds:g} s")
            await asyncio.sleep(wait)
            try:
                socket, first = await self._claim(self._addresses[address])
            except (OSError, asyncio.TimeoutError, WebSocketException):
                socket, first = None, None
            if socket is not None and isinstance(first, Resumed):
                await self._take(socket, first)
                return
            if isinstance(first, Problem) and first.code == "resume_refused":
                refused[self._addresses[address]] = first.message
                if len(refused) == len(set(self._addresses)):
                    raise ServerError("resume_refused", first.message)
            address = (address + 1) % len(self._addresses)

    async def _claim(self, address: str) -> tuple[ClientConnection, Event | None]:
        """A connection that asks for the session, and the first thing that it says."""
        query = {"session_id": self.session_id, "resume_token": self._resume_token or "", "last_event_id": str(self._last_event_id)}
        socket = await self._connect(address, query)
        try:
            fields = _fields(await asyncio.wait_for(socket.recv(), CLOSE_SECONDS))
        except BaseException:
            await socket.close()
            raise
        first = read_event(fields)
        if isinstance(first, Resumed):
            self._resume_token = fields["resume_token"]
        else:
            await socket.close()
        return socket, first

    async def _take(self, socket: ClientConnection, resumed: Resumed) -> None:
        """Goes on over a new connection: first what had not arrived, in its order."""
        self._retry_after_s = None
        async with self._sending:
            self._socket = socket
            try:
                for frame in self._journal.after(resumed.inputs):
                    await socket.send(frame)
            except ConnectionClosed:
                pass  # the reader notices too
        await self._events.put(resumed)

    def _tell(self, event: Event | None) -> None:
        """Puts an event where nobody may be reading any more."""
        try:
            self._events.put_nowait(event)
        except asyncio.QueueFull:
            pass

    async def _connect(self, address: str, query: Mapping[str, str]) -> ClientConnection:
        url = f"{address}?{urllib.parse.urlencode(query)}"
        secure: dict[str, Any] = {"ssl": self._ssl} if self._ssl is not None else {}
        return await connect(url, additional_headers=self._headers, max_size=None, compression=None, close_timeout=5, **secure)


def _websocket_address(url: str) -> str:
    parts = urllib.parse.urlsplit(url)
    schemes = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
    if parts.scheme not in schemes or not parts.netloc:
        raise ValueError(f"{url!r} is no address like http://127.0.0.1:8006")
    return urllib.parse.urlunsplit((schemes[parts.scheme], parts.netloc, parts.path.rstrip("/") or "/v1/realtime", "", ""))


def _fields(frame: str | bytes) -> dict[str, Any]:
    fields = json.loads(frame)
    assert isinstance(fields, dict)
    return fields


def _mapping(value: object) -> dict[str, object]:
    return dict(value) if isinstance(value, Mapping) else {}
