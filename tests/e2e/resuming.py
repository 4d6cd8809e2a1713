"""A client whose connection breaks and which resumes over another one, as docs/protocol.md 14 describes."""
import json
import socket
import struct

from realtime import Client


class Resuming(Client):
    """Keeps what it sent and checks what it received: every numbered event must follow the one before."""

    def __init__(self, server, mode: str, **options):
        super().__init__(server, mode, **options)
        self._server, self._options = server, options
        self.sent: list[str] = []  # append events since session.created
        self.last_event_id = 0
        self.tokens: list[str] = []
        self.resumed: list[dict] = []

    def init(self, **payload) -> dict:
        created = super().init(resume=True, **payload)
        self.id = created["session_id"]
        self.tokens.append(created["resume_token"])
        return created

    def send(self, event):
        if isinstance(event, dict) and event["type"] == "input.append":
            self.sent.append(json.dumps(event))
        super().send(event)

    def receive(self, *seconds) -> dict:
        event = super().receive(*seconds)
        if "event_id" in event:
            assert event["event_id"] == self.last_event_id + 1, (self.last_event_id, event)
            self.last_event_id += 1
        return event

    def break_off(self):
        """Resets the connection without a closing handshake; whatever was under way is lost."""
        plain = self.socket.socket
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        plain.shutdown(socket.SHUT_RD)  # wakes the reading thread, which then closes
        self.socket.recv_events_thread.join(10)
        plain.close()

    def claim(self, token: str | None = None, last_event_id: int | None = None) -> Client:
        seen = self.last_event_id if last_event_id is None else last_event_id
        return Client(self._server, None, f"session_id={self.id}&resume_token={token or self.tokens[-1]}&last_event_id={seen}", **self._options)

    def use(self, server):
        """From now on, come back to this server."""
        self._server = server

    def try_to_come_back(self) -> dict | None:
        """The same as `come_back`, but None if the server says that it cannot take the session yet."""
        again = self.claim()
        first = again.receive()
        if first["type"] == "error" and first["error"]["code"] == "service_unavailable":
            assert again.closed() == 1013
            return None
        self.socket = again.socket
        return self._resumed(first)

    def come_back(self) -> dict:
        """Resumes over a new connection and resends what had not arrived."""
        self.socket = self.claim().socket
        return self._resumed(self.receive())

    def _resumed(self, resumed: dict) -> dict:
        assert resumed["type"] == "session.resumed" and resumed["session_id"] == self.id, resumed
        self.tokens.append(resumed["resume_token"])
        self.resumed.append(resumed)
        for event in self.sent[resumed["inputs"] :]:
            self.socket.send(event)
        return resumed
