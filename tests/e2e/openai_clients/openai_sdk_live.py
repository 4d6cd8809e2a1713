"""openai (PyPI) against a GPT-Live server (full duplex): AsyncOpenAI(base_url=...).live.connect. See common.py.

Checks: start, spoken, barge_in (and how far ahead of the clock it speaks), speak_first, formats, context, errors, strict
"""
import asyncio
import base64
import json
import math
import array
import time

import openai

from common import Checks, Microphone, arguments, base, question, silence

SEEN_BAD = []


class Session:
    def __init__(self, client, rate=24000, format=None, **session):
        self.manager = client.live.connect()
        self.format = format or {"type": "audio/pcm", "rate": rate}
        self.session = {"model": "parley", "audio": {"format": self.format}} | session
        self.log = []

    async def __aenter__(self):
        self.c = await self.manager.enter()
        await self.c.send({"type": "session.start", "event_id": "begin", "session": self.session})
        self.started = await self.until("session.started")
        self.t0 = time.monotonic()
        return self

    async def __aexit__(self, *_):
        await self.c.close()

    async def next(self):
        raw = await self.c.recv_bytes()
        event = self.c.parse_event(raw)
        try:
            type(event).model_validate(json.loads(raw))
        except Exception as why:
            SEEN_BAD.append(f"{json.loads(raw).get('type')}: {why}"[:200])
        event_at = time.monotonic()
        self.log.append((event_at, event))
        return event

    async def until(self, *types, fail_on_error=True):
        while True:
            event = await self.next()
            if event.type in types:
                return event
            if event.type == "error" and fail_on_error:
                raise AssertionError(f"error event: {event.error}")

    async def read_for(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            try:
                await asyncio.wait_for(self.next(), left)
            except TimeoutError:
                return

    async def append(self, pcm):
        await self.c.send({"type": "session.input_audio.append", "audio": base64.b64encode(pcm).decode()})

    async def close(self):
        await self.c.send({"type": "session.close"})
        return await self.until("session.closed")

    def sound(self, since=0.0):
        """[(when, bytes)] of what is louder than silence."""
        out = []
        for at, e in self.log:
            if e.type == "session.output_audio.delta" and at >= since:
                raw = base64.b64decode(e.delta)
                samples = array.array("h", raw) if self.format["type"] == "audio/pcm" else None
                if samples is None or math.sqrt(sum(s * s for s in samples) / max(1, len(samples))) > 100:
                    out.append((at, raw))
        return out

    def words(self):
        return "".join(e.delta for _, e in self.log if e.type == "session.output_transcript.delta")


async def run(url, checks, wav="", key="none", wait=30.0):
    client = openai.AsyncOpenAI(base_url=base(url), api_key=key)

    async def loud(s):
        """Until there is sound."""
        while not s.sound():
            await s.next()

    async def quiet(s, seconds):
        """Until there has been none for so long."""
        while True:
            n = len(s.sound())
            await s.read_for(seconds)
            if len(s.sound()) == n:
                return

    async def start():
        async with Session(client, instructions="Be brief.", input=[
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}]) as s:
            made = s.started.session
            assert made.id.startswith("sess_") and made.expires_at > time.time() and made.status == "active"
            done = await s.close()
            assert done.reason == "close_requested" and done.usage.seconds >= 0 and done.session.id == made.id
            try:  # and the socket goes too
                await asyncio.wait_for(s.c.recv_bytes(), 5)
                raise AssertionError("something came after session.closed")
            except TimeoutError:
                raise AssertionError("the socket stays open after session.closed") from None
            except AssertionError:
                raise
            except Exception:
                pass
            return made.id

    async def spoken():
        rate = 24000
        async with Session(client, rate) as s:
            async with Microphone(rate, s.append) as mic:
                mic.say(silence(500, rate) + question(rate, wav))
                await loud(s)
                await quiet(s, 1.5)
            assert s.words(), "no transcript"
            spans = [(e.start_ms, e.end_ms) for _, e in s.log if e.type == "session.output_transcript.delta"]
            assert all(a <= b for a, b in spans) and spans == sorted(spans), spans
            return f"{s.words()!r}, {sum(len(r) for _, r in s.sound()) / 2 / rate:.1f} s"

    async def barge_in():
        rate = 24000
        speech = question(rate, wav)
        async with Session(client, rate) as s:
            async with Microphone(rate, s.append) as mic:
                mic.say(silence(300, rate) + speech)
                await loud(s)
                mic.say(speech)
                said_at = time.monotonic()
                await s.read_for(len(speech) / 2 / rate)
            # nobody can take back what was sent, so what was sent may not be far ahead of the clock
            sent = sum(len(r) for _, r in s.sound()) / 2 / rate
            began = s.sound()[0][0]
            ahead = max(sum(len(r) for at, r in s.sound() if at <= t) / 2 / rate - (t - began) for t, _ in s.sound())
            last = s.sound()[-1][0] - said_at
            assert last < 1.6, f"it talked on for {last:.1f} s"
            assert ahead < 0.6, f"{ahead:.1f} s ahead of the clock"
            return f"silent {max(0.0, last):.2f} s after it was spoken to; {ahead:.2f} s ahead of the clock at most"

    async def speak_first():
        async with Session(client) as s:
            await s.c.send({"type": "session.commentary.append", "event_id": "c1", "delegation_id": None,
                            "content": "Greet the caller now."})
            ack = await s.until("session.commentary.appended")
            assert ack.client_event_id == "c1" and ack.end_ms >= ack.start_ms >= 0
            async with Microphone(24000, s.append):
                await loud(s)
            return "it speaks without being spoken to"

    async def formats():
        for format in ({"type": "audio/pcm", "rate": 16000}, {"type": "audio/pcmu", "rate": 8000},
                       {"type": "audio/pcma", "rate": 8000}):
            async with Session(client, format=format) as s:
                assert s.started.session.audio.format.rate == format["rate"]
                await s.c.send({"type": "session.commentary.append", "delegation_id": None, "content": "Say hello."})
                while not any(e.type == "session.output_audio.delta" for _, e in s.log):
                    await s.next()
        return "pcm 16000, pcmu, pcma"

    async def context():
        async with Session(client) as s:
            for kind in ("instructions", "thinking"):
                await s.c.send({"type": f"session.{kind}.append", "event_id": kind, "delegation_id": None, "content": "Be kind."})
                assert (await s.until(f"session.{kind}.appended")).client_event_id == kind
            for kind in ("mute", "unmute"):
                await s.c.send({"type": f"session.input_audio.{kind}", "event_id": kind})
                assert (await s.until(f"session.input_audio.{kind}d")).client_event_id == kind
            return "instructions, thinking, mute, unmute"

    async def errors():
        async with Session(client) as s:
            await s.c.send({"type": "session.input_audio.append", "event_id": "odd", "audio": base64.b64encode(b"abc").decode()})
            e = await s.until("error", fail_on_error=False)
            assert e.error.code == "invalid_audio" and e.error.client_event_id == "odd", e.error
            await s.c.send({"type": "nonsense", "event_id": "n"})
            e = await s.until("error", fail_on_error=False)
            assert e.error.client_event_id == "n"
            await s.close()
            return "the session goes on"

    async def strict():
        assert not SEEN_BAD, SEEN_BAD[:3]
        return "every event validated by the SDK's models"

    for name, check in (("start", start), ("spoken", spoken), ("barge_in", barge_in), ("speak_first", speak_first),
                        ("formats", formats), ("context", context), ("errors", errors), ("strict", strict)):
        await checks.run(name, check, wait)


if __name__ == "__main__":
    a = arguments()
    c = Checks("openai-python live " + openai.__version__, a.only)
    asyncio.run(c.main(run(a.url, c, a.wav, a.key, a.wait)))
