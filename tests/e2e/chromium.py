"""A headless Chromium, driven over its DevTools protocol: real page, real device code, devices fed from files."""
import base64
import json
import subprocess
import time
import urllib.request
from pathlib import Path

import numpy as np
from websockets.sync.client import connect

FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --disable-dev-shm-usage --no-first-run --no-default-browser-check --disable-background-networking "
    "--disable-component-update --ignore-certificate-errors --disable-sync --disable-extensions --hide-scrollbars --mute-audio --remote-debugging-port=0 "
    "--use-fake-ui-for-media-stream --use-fake-device-for-media-stream"
).split()
WAIT_SECONDS = 60
# What the browser says of a question to a document that was left before it was answered.
LEFT = ("Inspected target navigated or closed", "Execution context was destroyed.", "Cannot find default execution context")


class Browser:
    """One process with its own profile. `microphone` is a WAV file (played in a loop), `camera` a Y4M file."""

    def __init__(self, profile: Path, microphone: Path, camera: Path, log: Path):
        self._log = open(log, "w")
        flags = [*FLAGS, f"--user-data-dir={profile}", f"--use-file-for-fake-audio-capture={microphone}", f"--use-file-for-fake-video-capture={camera}"]
        self.process = subprocess.Popen(["chromium", *flags, "about:blank"], stdout=self._log, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        for line in self.process.stderr:
            self._log.write(line)
            if "DevTools listening on ws://" in line:
                self._port = int(line.split("ws://", 1)[1].split("/", 1)[0].rsplit(":", 1)[1])
                return
        raise RuntimeError(f"Chromium did not start, see {log}")

    def open(self, url: str, **screen) -> "Page":
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}/json/new?about:blank", method="PUT")
        with urllib.request.urlopen(request, timeout=WAIT_SECONDS) as answer:
            return Page(json.load(answer)["webSocketDebuggerUrl"], url, **screen)

    def close(self):
        self.process.terminate()
        try:
            self.process.communicate(timeout=20)  # also drains what is left on stderr
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._log.close()


class Page:
    """A tab. `faults` holds every uncaught exception and every error in the browser's console, `asked` every URL that it requested,
    `sent` every event that it sent to the server."""

    def __init__(self, devtools: str, url: str, width: int = 1280, height: int = 860, mobile: bool = False, dark: bool = True):
        self._socket = connect(devtools, max_size=None, open_timeout=WAIT_SECONDS)
        self._last = 0
        self._events: list[tuple[str, dict]] = []  # of the browser, not yet waited for
        self.faults: list[str] = []
        self.asked: list[str] = []
        self.sent: list[dict] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if mobile else 1, mobile=mobile)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.go(url)
        self.until("document.body.dataset.mode")

    def go(self, url: str):
        """Loads another document and waits until it is complete."""
        self._leave("Page.navigate", url=url)

    def reload(self):
        """Loads the document anew and waits until it is complete."""
        self._leave("Page.reload")

    def _leave(self, method: str, **params):
        """The browser answers before the old document is gone, which would answer the next question."""
        self.evaluate("window.isOld = true")
        self.call(method, **params)
        self.until("!window.isOld && document.readyState === 'complete'")

    def call(self, method: str, **params) -> dict:
        return self._answer(method, params, lost_is_error=True)

    def _answer(self, method: str, params: dict, lost_is_error: bool) -> dict | None:
        """None if the document was left meanwhile, unless that is an error."""
        self._last += 1
        self._socket.send(json.dumps({"id": self._last, "method": method, "params": params}))
        end = time.monotonic() + WAIT_SECONDS + 10
        while True:
            message = self._receive(end, method)
            if message.get("id") == self._last:
                if not lost_is_error and message.get("error", {}).get("message") in LEFT:
                    return None
                assert "error" not in message, (method, message["error"])
                return message["result"]

    def until_event(self, method: str, **fields) -> dict:
        """Waits for an event of the browser's with these fields. It may have come since the last such event, while something else was waited for."""
        end = time.monotonic() + WAIT_SECONDS
        while True:
            while self._events:
                name, params = self._events.pop(0)
                if name == method and fields.items() <= params.items():
                    return params
            self._receive(end, method)

    def _receive(self, end: float, wanted: str) -> dict:
        """The next message. The page asks its server every few seconds, so that there always is one: it is the whole wait that ends."""
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"never came: {wanted}")
        message = json.loads(self._socket.recv(timeout=left))
        if "method" in message:
            self._note(message["method"], message["params"])
        return message

    def _note(self, method: str, params: dict):
        if method.startswith("Browser."):
            self._events.append((method, params))
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.faults.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.faults.append(json.dumps(params["entry"]))
        elif method == "Network.requestWillBeSent":
            self.asked.append(params["request"]["url"])
        elif method == "Network.webSocketCreated":
            self.asked.append(params["url"])
        elif method == "Network.webSocketFrameSent":
            self.sent.append(json.loads(params["response"]["payloadData"]))

    def evaluate(self, expression: str):
        """The value of a JavaScript expression, awaited if it is a promise. The browser treats it as a user action."""
        return self._value(self.call("Runtime.evaluate", **self._asked_for(expression)))

    @staticmethod
    def _asked_for(expression: str) -> dict:
        return {"expression": expression, "awaitPromise": True, "returnByValue": True, "userGesture": True}

    @staticmethod
    def _value(result: dict):
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def until(self, condition: str, seconds: float = WAIT_SECONDS):
        """Waits in the page until the expression is true and returns its value. If the page is left meanwhile, in the next one."""
        end = time.monotonic() + seconds
        while True:
            expression = f"""new Promise((done, fail) => {{
                const end = performance.now() + {max(0, end - time.monotonic()) * 1000};
                const look = () => {{
                    const value = ({condition});
                    if (value) return done(value);
                    if (performance.now() > end) return fail(new Error("never true: " + {json.dumps(condition)}));
                    setTimeout(look, 30);
                }};
                look();
            }})"""
            result = self._answer("Runtime.evaluate", self._asked_for(expression), lost_is_error=False)
            if result is not None:
                return self._value(result)

    def click(self, selector: str):
        """A mouse click in the middle of an element."""
        box = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center'}}); const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] }})()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def press(self, key: str, code: int):
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code)

    def type(self, text: str):
        self.call("Input.insertText", text=text)

    def give_file(self, selector: str, path: Path):
        """Gives the file to an input, as if the user had chosen it in the dialog."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        self.call("DOM.setFileInputFiles", files=[str(path)], nodeId=self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"])

    def text(self, selector: str) -> str:
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).textContent")

    def screenshot(self, path: Path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def close(self):
        self._socket.close()


def write_camera(path: Path, width: int = 320, height: int = 240, frames: int = 20):
    """A Y4M film for the fake camera: a bright disc that wanders over a coloured background."""
    y, x = np.mgrid[0:height, 0:width]
    with open(path, "wb") as film:
        film.write(f"YUV4MPEG2 W{width} H{height} F10:1 Ip A1:1 C420jpeg\n".encode())
        for n in range(frames):
            disc = (x - width * (0.3 + 0.4 * n / frames)) ** 2 + (y - height / 2) ** 2 < (height / 5) ** 2
            luma = np.where(disc, 220, 60 + 60 * y / height).astype(np.uint8)
            blue = np.full((height // 2, width // 2), 150, np.uint8)
            red = np.full((height // 2, width // 2), 110, np.uint8)
            film.write(b"FRAME\n" + luma.tobytes() + blue.tobytes() + red.tobytes())
