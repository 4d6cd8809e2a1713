"""Calls over WebRTC in OpenAI's dialect, by aiortc: a stack that has nothing in common with the server's. On loopback."""
import asyncio
import fractions
import hashlib
import http.server as http_server
import json
import random
import shutil
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

import aioice.ice
import av
import numpy as np
import openai
import pytest
import websockets
from aiortc import MediaStreamTrack, RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError

from chromium import Browser, write_camera
from conftest import ROOT
from realtime import UNIT, http, say, write_wav

OWNER, OTHER = "k-71c2be90d4aa", "k-2b90e1771c5f"
FRAME = 960  # samples at 48 kHz: 20 ms
WAIT_SECONDS = 60


class Microphone(MediaStreamTrack):
    """Says what is put into it, at the pace of time, and is silent otherwise."""

    kind = "audio"

    def __init__(self):
        super().__init__()
        self._says = np.zeros(0, np.int16)
        self._sent = 0
        self._began = None

    def say(self, samples: np.ndarray):
        at = np.arange(0, len(samples), UNIT / 48000)
        self._says = np.append(self._says, (np.interp(at, np.arange(len(samples)), samples) * 32767).astype(np.int16))

    async def recv(self):
        self._began = self._began or time.monotonic()
        await asyncio.sleep(max(0, self._began + self._sent / 48000 - time.monotonic()))
        piece, self._says = self._says[:FRAME], self._says[FRAME:]
        frame = av.AudioFrame.from_ndarray(np.pad(piece, (0, FRAME - len(piece)))[None, :], format="s16", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = 48000, self._sent, fractions.Fraction(1, 48000)
        self._sent += FRAME
        return frame


class BadNetwork(asyncio.DatagramProtocol):
    """Stands between one client and the server's port: loses a share of the packets, and lets others wait for up to so many seconds, which changes
    their order."""

    def __init__(self, port: int, loss: float, jitter: float):
        self._random, self._loss, self._jitter, self._client = random.Random(7), loss, jitter, None
        self._server = ("127.0.0.1", port)
        self.lost = 0

    def connection_made(self, transport):
        self._transport = transport

    def datagram_received(self, data, address):
        if address != self._server:
            self._client = address
        to = self._client if address == self._server else self._server
        if self._random.random() < self._loss:
            self.lost += 1
        elif to:
            asyncio.get_running_loop().call_later(self._random.uniform(0, self._jitter), self._transport.sendto, data, to)


class Call:
    """A client's call: what it hears, at 48 kHz, and the events that it gets."""

    def __init__(self):
        self.peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self.microphone = Microphone()
        self.heard: list[np.ndarray] = []
        self.heard_at: list[float] = []
        self.events: list[dict] = []
        self._news = asyncio.Event()
        self.closed = asyncio.Event()
        self.channel = self.peer.createDataChannel("oai-events")
        self.channel.on("message", self._take)
        self.channel.on("close", self.closed.set)
        self.peer.addTrack(self.microphone)
        self.peer.on("track", lambda track: asyncio.ensure_future(self._listen(track)))

    def _take(self, text: str):
        self.events.append(json.loads(text))
        self._news.set()

    async def _listen(self, track):
        try:
            while True:
                frame = await track.recv()
                samples = frame.to_ndarray().reshape(-1, len(frame.layout.channels))[:, 0]
                self.heard.append(samples.astype(np.float32) / 32768)
                self.heard_at.append(time.monotonic())
                self._news.set()
        except MediaStreamError:
            pass

    async def dial(self, server, key: str, network=None) -> str:
        """Calls the server, through `network`: (loss, jitter), if given; returns where the call is."""
        await self.peer.setLocalDescription(await self.peer.createOffer())
        request = urllib.request.Request(server.http + "/v1/realtime/calls", self.peer.localDescription.sdp.encode(), method="POST",
                                         headers={"Authorization": f"Bearer {key}", "Content-Type": "application/sdp"})
        response = await asyncio.to_thread(urllib.request.urlopen, request)
        assert response.status == 201 and response.headers["Content-Type"] == "application/sdp"
        answer = response.read().decode()
        if network:
            port = answer.split(" typ host")[0].rsplit(" ", 1)[1]
            transport, self.network = await asyncio.get_running_loop().create_datagram_endpoint(lambda: BadNetwork(int(port), *network), ("127.0.0.1", 0))
            answer = answer.replace(f" {port} typ host", f" {transport.get_extra_info('sockname')[1]} typ host")
        await self.peer.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        return response.headers["Location"]

    def send(self, **event):
        self.channel.send(json.dumps(event))

    async def until(self, kind: str, after: int = 0) -> dict:
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                for event in self.events[after:]:
                    assert event["type"] != "error", event
                    if event["type"] == kind:
                        return event
                self._news.clear()
                await self._news.wait()

    async def hears(self, seconds: float):
        """Until so much was heard that is no silence: the last packets may come after the event that tells their end."""
        async with asyncio.timeout(WAIT_SECONDS):
            while self.loud_seconds() <= seconds:
                self._news.clear()
                await self._news.wait()

    def loud_seconds(self) -> float:
        """How much of what was heard is no silence."""
        if not self.heard:
            return 0
        samples = np.concatenate(self.heard)
        pieces = samples[: len(samples) // FRAME * FRAME].reshape(-1, FRAME)
        return float(np.count_nonzero(np.sqrt((pieces**2).mean(1)) > 0.01)) * FRAME / 48000


@pytest.fixture(autouse=True)
def loopback(monkeypatch):
    """aioice leaves loopback out, which is all that a test may need."""
    monkeypatch.setattr(aioice.ice, "get_host_addresses", lambda use_ipv4, use_ipv6: ["127.0.0.1"])


@pytest.fixture
def nano_for(start_server, tmp_path):
    path = tmp_path / "keys"
    path.write_text("".join(f"{name} {hashlib.sha256(key.encode()).hexdigest()}\n" for name, key in (("shop", OWNER), ("stall", OTHER))))
    return lambda *flags: start_server("--model", str(ROOT / "models/nano"), "--set", f"auth.keys_file={path}", "--set", "engine.seed=7", *flags)


@pytest.fixture
def nano(nano_for):
    return nano_for()


async def ephemeral_key(server, **session) -> str:
    sdk = openai.AsyncOpenAI(base_url=server.http + "/v1", api_key=OWNER, max_retries=0)
    made = await sdk.realtime.client_secrets.create(session={"type": "realtime", **session})
    return made.value


def test_a_call(nano):
    """With an ephemeral key: a greeting, a spoken question and its answer, the end."""

    async def talk():
        call = Call()
        where = await call.dial(nano, await ephemeral_key(nano, instructions="Be brief."))
        assert (await call.until("session.created"))["session"]["instructions"] == "Be brief."

        call.send(type="conversation.item.create", item={"type": "message", "role": "user", "content": [{"type": "input_text", "text": "What is your name?"}]})
        call.send(type="response.create")
        greeting = await call.until("response.output_audio_transcript.done")
        assert greeting["transcript"] == "My name is Parley."
        await call.until("output_audio_buffer.stopped")
        kinds = [event["type"] for event in call.events]
        assert "response.output_audio.delta" not in kinds and "response.output_audio.done" in kinds
        assert kinds.index("output_audio_buffer.started") < kinds.index("response.done") < kinds.index("output_audio_buffer.stopped")
        await call.hears(0.5)

        before, heard = len(call.events), call.loud_seconds()
        call.microphone.say(say("Hello, what is your name?"))
        await call.until("input_audio_buffer.speech_started", before)
        answer = await call.until("response.output_audio_transcript.done", before)
        assert answer["transcript"] == "My name is Parley."
        await call.until("output_audio_buffer.stopped", before)
        await call.hears(heard + 0.5)

        assert http(nano, where + "/hangup", "POST")[0] == 401, "others may not end it"
        request = urllib.request.Request(nano.http + where + "/hangup", b"", method="POST", headers={"Authorization": f"Bearer {OWNER}"})
        assert (await asyncio.to_thread(urllib.request.urlopen, request)).status == 200
        async with asyncio.timeout(WAIT_SECONDS):
            await call.closed.wait()
        await call.peer.close()

    asyncio.run(talk())


def test_a_call_over_a_bad_network(nano):
    """5 % of the packets are lost, and come up to 60 ms late, each way: a spoken question is understood, and the answer is heard."""

    async def talk():
        call = Call()
        await call.dial(nano, await ephemeral_key(nano), network=(0.05, 0.06))
        await call.until("session.created")
        call.microphone.say(say("Hello, what is your name?"))
        answer = await call.until("response.output_audio_transcript.done")
        assert answer["transcript"] == "My name is Parley."
        await call.until("output_audio_buffer.stopped")
        await call.hears(0.35)  # less than without loss: aiortc plays nothing that comes later than it waits for
        assert call.network.lost > 10
        await call.peer.close()

    asyncio.run(talk())


def test_a_server_follows_a_call(nano_for):
    """By OpenAI's own package: from before media flow, it hears the call's events, speaks in its session, and ends with it."""
    server = nano_for()

    async def talk():
        call = Call()
        key = await ephemeral_key(server, instructions="Be brief.")
        where = await call.dial(server, key)
        for refused, status, which in ((OWNER, "404", "rtc_none"), (key, "401", where.rsplit("/", 1)[1]), (OTHER, "403", where.rsplit("/", 1)[1])):
            with pytest.raises(websockets.InvalidStatus, match=status):
                await websockets.connect(server.http.replace("http", "ws") + f"/v1/realtime?call_id={which}", additional_headers={"Authorization": f"Bearer {refused}"})
        sdk = openai.AsyncOpenAI(api_key=OWNER, base_url=server.http + "/v1", websocket_base_url=server.http.replace("http", "ws") + "/v1", max_retries=0)
        async with sdk.realtime.connect(call_id=where.rsplit("/", 1)[1]) as follower:
            first = await follower.recv()
            assert first.type == "session.created" and first.session.id == (await call.until("session.created"))["session"]["id"]
            await follower.response.create(response={"instructions": "What is your name?", "output_modalities": ["audio"]})
            said = await call.until("response.output_audio_transcript.done")
            heard = [first]
            async with asyncio.timeout(WAIT_SECONDS):
                while heard[-1].type != "output_audio_buffer.stopped":
                    heard.append(await follower.recv())
            assert [each.transcript for each in heard if each.type == "response.output_audio_transcript.done"] == [said["transcript"]]
            await call.hears(0.5)  # what the server asked for
            await sdk.realtime.calls.hangup(where.rsplit("/", 1)[1])
            with pytest.raises(websockets.ConnectionClosedOK):
                async with asyncio.timeout(WAIT_SECONDS):
                    while True:
                        await follower.recv_bytes()
        await call.peer.close()

    asyncio.run(talk())


PAGE = """<!doctype html><meta charset="utf-8"><body data-mode="call"><script type="module">
import { RealtimeAgent, RealtimeSession, tool } from "./openai-realtime-agents.mjs";
window.events = [];
window.asked = [];
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false };
const weather = tool({ name: "get_weather", description: "Weather in a city", parameters, execute: async ({ city }) => asked.push(city) && "sunny" });
window.call = async (url, apiKey) => {
  window.session = new RealtimeSession(new RealtimeAgent({ name: "Parley", instructions: "Be brief.", tools: [weather] }));
  session.on("transport_event", (event) => events.push(event));
  session.on("error", (error) => events.push({ type: "error", error: String(error?.error?.message ?? JSON.stringify(error)) }));
  await session.connect({ url, apiKey });
};
window.ask = (words, tool_choice) => {
  session.transport.sendMessage(words, {}, { triggerResponse: false });
  session.transport.requestResponse({ tool_choice });
};
window.count = (type) => events.filter((event) => event.type === type).length;
window.said = () => events.filter((event) => event.type === "response.output_audio_transcript.done").map((event) => event.transcript);
window.energy = async () => {
  const report = await session.transport.connectionState.peerConnection.getStats();
  return [...report.values()].filter((each) => each.type === "inbound-rtp").reduce((sum, each) => sum + (each.totalAudioEnergy ?? 0), 0);
};
</script>
"""


@pytest.fixture
def elsewhere(tmp_path):
    """The origin of a page that this server has never heard of, which uses OpenAI's own package for browsers."""
    folder = Path(subprocess.run(["bash", ROOT / "scripts/openai_clients.sh"], check=True, capture_output=True, text=True).stdout.strip())
    site = tmp_path / "site"
    shutil.copytree(folder / "node/node_modules/@openai/agents-realtime/dist/bundle", site)
    (site / "index.html").write_text(PAGE)

    class Quiet(http_server.SimpleHTTPRequestHandler):
        extensions_map = http_server.SimpleHTTPRequestHandler.extensions_map | {".mjs": "text/javascript"}

        def log_message(self, *_):
            pass

    pages = http_server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *args: Quiet(*args, directory=str(site)))
    threading.Thread(target=pages.serve_forever).start()
    yield f"http://127.0.0.1:{pages.server_port}"
    pages.shutdown()
    pages.server_close()


def test_a_page_of_another_origin(nano_for, elsewhere, tmp_path):
    """OpenAI's agents SDK in Chromium, with its default transport and an ephemeral key: a spoken question, an answer that is heard, a function, an interruption, the end."""
    server = nano_for("--set", f"auth.allowed_origins={elsewhere}")
    sound = np.concatenate([np.zeros(5 * UNIT, np.float32), say("Hello, what is your name?"), np.zeros(60 * UNIT, np.float32)])
    write_wav(tmp_path / "microphone.wav", sound)
    write_camera(tmp_path / "camera.y4m")
    key = asyncio.run(ephemeral_key(server))
    browser = Browser(tmp_path / "profile", Path(f"{tmp_path / 'microphone.wav'}%noloop"), tmp_path / "camera.y4m", tmp_path / "chromium.log")
    try:
        page = browser.open(elsewhere + "/index.html")
        page.evaluate(f"call({json.dumps(server.http + '/v1/realtime/calls')}, {json.dumps(key)})")
        assert page.until("said().length && said()[0]") == "My name is Parley."
        page.until("count('output_audio_buffer.stopped') === 1")
        assert page.evaluate("energy()") > 0.001, "the answer is heard"

        page.evaluate("ask('What is the weather in Paris?', { type: 'function', name: 'get_weather' })")
        page.until("asked.length === 1")
        page.until("count('output_audio_buffer.stopped') === 2")
        assert page.evaluate("said().length") == 2, "what the function said is told"

        page.evaluate("ask('What is your name?', 'none')")
        page.until("count('output_audio_buffer.started') === 3")
        page.evaluate("session.interrupt()")
        page.until("count('output_audio_buffer.cleared') === 1 && count('conversation.item.truncated') === 1")
        assert page.evaluate("count('output_audio_buffer.stopped')") == 2, "it is not heard to its end"
        assert page.evaluate("events.filter((event) => event.type === 'error').map((event) => JSON.stringify(event.error))") == []
        assert page.evaluate("session.transport.callId").startswith("rtc_")
        page.evaluate("session.close()")
        page.close()
    finally:
        browser.close()
