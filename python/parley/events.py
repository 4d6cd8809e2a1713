"""What a server says, as types (docs/protocol.md 4). `Event` is their union; unknown types of events are left out, as the protocol asks of clients."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any, Literal, Mapping, TypeAlias

from parley.content import Samples, decode_samples

Fields: TypeAlias = "Mapping[str, Any]"
"""A JSON object as it came."""


@dataclass(frozen=True, slots=True)
class Queued:
    """The place in the queue: 1 is next."""

    position: int
    queue_length: int
    estimated_wait_s: float


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of an answer. In audio and video each second is answered by one `listen`, or by text and then 24 kHz sound."""

    kind: Literal["listen", "text", "audio"]
    text: str
    audio: Samples
    end_of_turn: bool
    """The model has said what it wanted to say; the sound that has arrived may be played to its end."""
    response_id: str
    input_id: str
    metrics: Fields
    """`wall_clock_ms` is in the last delta of a second and in no other."""
    fields: Fields = field(repr=False)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model calls a function; `arguments` is JSON text (docs/protocol.md 3.8)."""

    id: str
    name: str
    arguments: str
    input_id: str
    fields: Fields = field(repr=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of an answer in chat. `audio` has its sound, if sound was asked for."""

    text: str
    audio: Samples
    reason: str
    """`turn_end`, `length`, `cancelled` or `error`."""
    tool_calls: tuple[ToolCall, ...]
    usage: Fields
    response_id: str
    input_id: str
    fields: Fields = field(repr=False)


@dataclass(frozen=True, slots=True)
class Transcript:
    """What the user said, if the session asked for it (docs/protocol.md 16)."""

    text: str
    start_ms: int
    end_ms: int
    problem: str | None


@dataclass(frozen=True, slots=True)
class Resumed:
    """The connection broke, and the conversation goes on over another one. Nothing is missing or repeated."""

    inputs: int
    resent: int


@dataclass(frozen=True, slots=True)
class GoAway:
    """The session will end in `time_left_ms`."""

    reason: str
    time_left_ms: int
    retry_after_ms: int | None


@dataclass(frozen=True, slots=True)
class Problem:
    """The server refused an event or failed in a second; the session goes on."""

    code: str
    message: str
    type: str


@dataclass(frozen=True, slots=True)
class Closed:
    """The session is over: the last event."""

    reason: str
    usage: Fields


Event: TypeAlias = "Queued | Delta | ToolCall | Answer | Transcript | Resumed | GoAway | Problem | Closed"


def read_event(fields: Fields) -> Event | None:
    """One frame of the server as a type, or None if it is none of these."""
    match fields["type"]:
        case "session.queued" | "session.queue_update":
            return Queued(fields["position"], fields["queue_length"], fields["estimated_wait_s"])
        case "response.output.delta":
            return Delta(fields["kind"], fields.get("text", ""), _samples(fields), fields.get("end_of_turn", False), fields.get("response_id", ""), fields.get("input_id", ""),
                         fields.get("metrics", {}), fields)
        case "response.tool_call":
            return ToolCall(fields["id"], fields["name"], fields["arguments"], fields.get("input_id", ""), fields)
        case "response.done":
            return Answer(fields.get("text", ""), _samples(fields), fields["reason"], (), fields.get("usage", {}), fields.get("response_id", ""), fields.get("input_id", ""),
                          fields)
        case "input.transcript":
            return Transcript(fields["text"], fields["start_ms"], fields["end_ms"], fields.get("problem"))
        case "session.resumed":
            return Resumed(fields["inputs"], fields["resent"])
        case "session.go_away":
            return GoAway(fields["reason"], fields["time_left_ms"], fields.get("retry_after_ms"))
        case "error":
            error = fields["error"]
            return Problem(error["code"], error["message"], error["type"])
        case "session.closed":
            return Closed(fields["reason"], fields.get("usage", {}))
    return None


def _samples(fields: Fields) -> Samples:
    audio = fields.get("audio")
    return decode_samples(audio) if audio else array("f")
