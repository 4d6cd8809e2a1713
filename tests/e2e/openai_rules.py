"""What OpenAI's clients need of the server's events, by the tables of protocol/conformance/openai_events.json, checked for every event of a
connection; and a relay that looks at what passes between clients that know nothing of it and the server."""
import base64
import json
import select
import socket
import struct
import threading
from pathlib import Path

RULES = json.loads((Path(__file__).parents[2] / "protocol/conformance/openai_events.json").read_text())


def rules_for(upgrade: str):
    """By the request's first line, and the beta's header."""
    request, headers = upgrade.split("\r\n", 1)
    beta = "api-version" in request or "openai-beta: realtime=v1" in headers.lower()
    return Live() if "/live" in request else Beta() if beta else Realtime()


class Realtime:
    """One connection of the Realtime API: the fields of its events, and their order in each response."""

    def __init__(self):
        self.ids, self.steps, self.items = set(), {}, {}

    def check(self, event: dict):
        kind = event.get("type")
        assert kind in RULES["realtime"]["fields"], f"unknown event {kind}"
        wanted = {"type", "event_id", *RULES["realtime"]["fields"][kind]}
        assert set(event) == wanted, f"{kind} has {sorted(event)}"
        assert event["event_id"] not in self.ids, "event_id was used before"
        self.ids.add(event["event_id"])
        if kind == "response.created":
            self.steps[event["response"]["id"]] = kind
            return
        response = event.get("response_id") or event.get("response", {}).get("id")
        if kind.startswith("conversation.item.") and "item" in event:
            response = self.items.get(event["item"]["id"])
        if response is None or response not in self.steps:
            assert not kind.startswith("response."), f"{kind} of no response"
            return
        if kind == "response.output_item.added":
            self.items[event["item"]["id"]] = response
        before = self.steps[response]
        assert kind in RULES["realtime"]["next"].get(before, []), f"{kind} after {before}"
        self.steps[response] = kind
        if kind == "response.done":
            del self.steps[response]


class Beta(Realtime):
    """One connection of the Realtime API's beta: as above, by its older names."""

    def check(self, event: dict):
        rules, kind = RULES["beta"], event["type"]
        assert kind not in rules["names"] and kind != rules["absent"], f"{kind} is not of the beta"
        for name in ("session", "response"):
            assert name not in event or set(event[name]) == set(rules[name]), f"{kind} has {sorted(event.get(name, []))}"
        for part in event.get("item", {}).get("content", []):
            assert part["type"] in rules["content"], part["type"]
        ga = {beta: name for name, beta in rules["names"].items()}.get(kind, kind)
        super().check(event | {"type": ga})


class Live:
    """One connection of the Live API: the fields of its events, their order and their times."""

    def __init__(self):
        self.ids, self.started, self.closed, self.start_ms = set(), False, False, -1

    def check(self, event: dict):
        rules, kind = RULES["live"], event.get("type")
        assert kind in rules["events"], f"unknown event {kind}"
        self.members(kind, event, rules["events"][kind])
        for name, rule in rules["members"].items():
            if name in event:
                self.members(f"{kind}.{name}", event[name], rule)
        if "event_id" in event:
            assert event["event_id"] not in self.ids, "event_id was used before"
            self.ids.add(event["event_id"])
        assert not self.closed, f"{kind} after the end"
        assert self.started or kind in (rules["first"], rules["last"], *rules["before_first"]), f"{kind} before the start"
        assert not (self.started and kind == rules["first"]), "a second start"
        self.started = self.started or kind == rules["first"]
        self.closed = kind == rules["last"]
        assert not self.closed or event["reason"] in rules["reasons"], event["reason"]
        if kind == "session.output_transcript.delta":
            assert self.start_ms < event["start_ms"] <= event["end_ms"], f"words at {event['start_ms']} after {self.start_ms}"
            self.start_ms = event["start_ms"]
        if kind == "session.output_audio.delta":
            base64.b64decode(event["delta"], validate=True)

    @staticmethod
    def members(where: str, value: dict, rule: dict):
        names = set(value) - {"type"}
        assert {*rule["required"]} - {"type"} <= names, f"{where} has only {sorted(names)}"
        assert names <= {*rule["required"], *rule["optional"]}, f"{where} has {sorted(names)}"
        assert all(each is not None for each in value.values()), f"{where} has a null"


class Frames:
    """The text messages in what a server sends after its answer to the upgrade. No compression, no masks."""

    def __init__(self):
        self.bytes, self.upgraded, self.message = b"", False, b""

    def feed(self, more: bytes):
        self.bytes += more
        if not self.upgraded:
            head, found, rest = self.bytes.partition(b"\r\n\r\n")
            if not found or b" 101 " not in head.split(b"\r\n")[0]:
                return
            self.bytes, self.upgraded = rest, True
        while len(self.bytes) >= 2:
            first, size = self.bytes[0], self.bytes[1] & 127
            begin = {126: 4, 127: 10}.get(size, 2)
            if len(self.bytes) < begin:
                return
            if size >= 126:
                size = struct.unpack(">H" if size == 126 else ">Q", self.bytes[2:begin])[0]
            if len(self.bytes) < begin + size:
                return
            payload, self.bytes = self.bytes[begin:begin + size], self.bytes[begin + size:]
            if first & 15 in (0, 1):
                self.message += payload
                if first & 128:
                    yield self.message
                    self.message = b""


class Watched:
    """A relay at an address of its own; `events` counts what was checked, `broken` lists what was wrong."""

    def __init__(self, server):
        self.target = (server.host, server.port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.http = "http://%s:%d" % self.listener.getsockname()
        self.events, self.broken, self.lock = 0, [], threading.Lock()
        threading.Thread(target=self.accept, daemon=True).start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.relay, args=(client,), daemon=True).start()

    def relay(self, client: socket.socket):
        frames, rules = Frames(), None
        with client, socket.create_connection(self.target) as server:
            try:
                while True:
                    for end in select.select([client, server], [], [])[0]:
                        data = end.recv(1 << 16)
                        if not data:
                            return
                        (server if end is client else client).sendall(data)
                        if rules is None:
                            rules = rules_for(data.decode())
                        if end is server:
                            self.look(rules, frames, data)
            except OSError:
                return

    def look(self, rules, frames: Frames, data: bytes):
        for message in frames.feed(data):
            with self.lock:
                self.events += 1
                try:
                    rules.check(json.loads(message))
                except AssertionError as why:
                    self.broken.append(f"{why}: {message[:300].decode()}")
