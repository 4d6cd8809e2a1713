"""A duplex session over /v1/realtime that times its own units."""
import base64
import json
import time

import numpy as np
from websockets.sync.client import connect

UNIT = 16000


def b64(samples: np.ndarray) -> str:
    return base64.b64encode(np.asarray(samples, "<f4").tobytes()).decode()


class TimedSession:
    """`url` has no path and is http or ws. `created_ms` is how long `session.init` took."""

    def __init__(self, url: str, payload: dict):
        self._socket = connect(url.replace("http", "ws", 1) + "/v1/realtime?mode=audio", max_size=None, compression=None)
        self._until("session.queue_done")
        begin = time.perf_counter()
        self._send({"type": "session.init", "payload": payload})
        self._until("session.created")
        self.created_ms = (time.perf_counter() - begin) * 1e3

    def unit_ms(self, audio: str, **more) -> float:
        """Sends one second in base64, with more fields, and returns the time until its answer is complete."""
        begin = time.perf_counter()
        self._send({"type": "input.append", "input": {"audio": audio, **more}})
        while "wall_clock_ms" not in self._until("response.output.delta")["metrics"]:
            pass
        return (time.perf_counter() - begin) * 1e3

    def close(self):
        self._send({"type": "session.close", "reason": "user_stop"})
        self._until("session.closed")
        self._socket.close()

    def _send(self, event: dict):
        self._socket.send(json.dumps(event))

    def _until(self, kind: str) -> dict:
        while True:
            event = json.loads(self._socket.recv())
            if event["type"] == "error":
                raise RuntimeError(event)
            if event["type"] == kind:
                return event
