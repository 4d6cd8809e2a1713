"""openai (PyPI) against a Realtime server: AsyncOpenAI(base_url=...).realtime.connect. See common.py for arguments.

Checks: connect, text, text_only, manual, spoken, interrupt, tools, image, out_of_band, items, errors, pcmu, strict (of the checks before it)
"""
import asyncio
import base64
import json

import openai

from common import Checks, Microphone, arguments, base, question, silence, stream

RATE = 24000
# every event the server sends has to be one of the SDK's models with all that they require
SEEN_BAD = []
TOOL = {"type": "function", "name": "get_weather", "description": "Weather in a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}
# a red square of 8 x 8
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEUlEQVR42mO4IyKCFTEMLQkAmD9BAeEqE6gAAAAASUVORK5CYII="


class Session:
    """A connection that was configured, and reads what comes until somebody is content."""

    def __init__(self, client, **session):
        self.manager = client.realtime.connect(model="parley")
        self.session = {"type": "realtime"} | session
        self.log = []

    async def __aenter__(self):
        self.c = await self.manager.enter()
        first = await self.next()
        assert first.type == "session.created", f"first event is {first.type}"
        await self.c.session.update(session=self.session)
        self.updated = await self.until("session.updated")
        return self

    async def __aexit__(self, *_):
        await self.c.close()

    async def next(self):
        raw = await self.c.recv_bytes()
        event = self.c.parse_event(raw)
        try:  # as strict as openai-agents is
            type(event).model_validate(json.loads(raw))
        except Exception as why:
            SEEN_BAD.append(f"{json.loads(raw).get('type')}: {why}"[:200])
        self.log.append(event)
        return event

    async def until(self, *types, fail_on_error=True):
        while True:
            event = await self.next()
            if event.type in types:
                return event
            if event.type == "error" and fail_on_error:
                raise AssertionError(f"error event: {event.error}")

    def types(self):
        return [e.type for e in self.log]

    async def ask(self, text, **response):
        await self.c.conversation.item.create(
            item={"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
        await self.c.response.create(response=response)


def audio_in(turn_detection, format=None):
    return {"input": {"format": format or {"type": "audio/pcm", "rate": RATE}, "turn_detection": turn_detection},
            "output": {"format": format or {"type": "audio/pcm", "rate": RATE}, "voice": "marin"}}


def heard(log):
    return sum(len(base64.b64decode(e.delta)) for e in log if e.type == "response.output_audio.delta")


def said(log):
    return "".join(e.delta for e in log if e.type == "response.output_audio_transcript.delta")


def order(log, *wanted):
    """The wanted types come in this order."""
    types = [e.type for e in log]
    at = -1
    for w in wanted:
        assert w in types[at + 1:], f"no {w} after {wanted[max(0, wanted.index(w) - 1)]}: {types}"
        at = types.index(w, at + 1)


FULL = ("response.created", "response.output_item.added", "conversation.item.added", "response.content_part.added",
        "response.output_audio_transcript.delta", "response.output_audio.delta", "response.output_audio.done",
        "response.output_audio_transcript.done", "response.content_part.done", "response.output_item.done", "response.done")


async def run(url, checks, wav="", key="none", wait=30.0):
    client = openai.AsyncOpenAI(base_url=base(url), api_key=key)
    speech = question(RATE, wav)

    async def connect():
        async with Session(client, instructions="Be brief.") as s:
            made = s.log[0].session
            assert made.type == "realtime" and made.id.startswith("sess_"), made
            new = s.updated.session
            assert new.instructions == "Be brief."
            assert new.audio.output.format.type == "audio/pcm" and new.audio.output.format.rate == 24000
            return made.id

    async def text():
        async with Session(client, audio=audio_in(None)) as s:
            await s.ask("What is your name?", metadata={"mark": "7"})
            done = await s.until("response.done")
            assert done.response.status == "completed", done.response.status_details
            assert (done.response.metadata or {}).get("mark") == "7", "metadata is not echoed"
            order(s.log, *FULL)
            u = done.response.usage
            assert u.total_tokens == u.input_tokens + u.output_tokens > 0
            assert done.response.output[0].content[0].transcript == said(s.log)
            n = heard(s.log)
            assert n > 4800, f"{n} bytes of sound"
            return f"{said(s.log)!r}, {n / 48000:.1f} s"

    async def text_only():
        async with Session(client, output_modalities=["text"], audio=audio_in(None)) as s:
            await s.ask("What is your name?")
            done = await s.until("response.done")
            order(s.log, "response.created", "response.content_part.added", "response.output_text.delta",
                  "response.output_text.done", "response.done")
            assert heard(s.log) == 0
            return repr(done.response.output[0].content[0].text)

    async def manual():
        async with Session(client, audio=audio_in(None)) as s:
            await s.c.input_audio_buffer.append(audio=base64.b64encode(speech).decode())  # all at once
            await s.c.input_audio_buffer.commit()
            order_ok = await s.until("conversation.item.done")
            assert order_ok.item.role == "user"
            assert not [t for t in s.types() if t.startswith("input_audio_buffer.speech")], "no VAD was asked for"
            await s.c.response.create()
            done = await s.until("response.done")
            assert done.response.status == "completed"
            return repr(said(s.log))

    async def spoken():
        async with Session(client, audio=audio_in({"type": "semantic_vad"})) as s:
            async def send(pcm):
                await s.c.input_audio_buffer.append(audio=base64.b64encode(pcm).decode())
            async with Microphone(RATE, send) as mic:
                mic.say(silence(500, RATE) + speech)
                done = await s.until("response.done")
            assert done.response.status == "completed", done.response.status_details
            order(s.log, "input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped",
                  "input_audio_buffer.committed", "conversation.item.added", *FULL)
            return f"{said(s.log)!r}, {heard(s.log) / 48000:.1f} s"

    async def interrupt():
        async with Session(client, audio=audio_in({"type": "server_vad", "silence_duration_ms": 300})) as s:
            async def send(pcm):
                await s.c.input_audio_buffer.append(audio=base64.b64encode(pcm).decode())
            async with Microphone(RATE, send) as mic:
                mic.say(silence(300, RATE) + speech)
                first = await s.until("response.output_audio.delta")
                mic.say(speech)
                done = await s.until("response.done")
                assert done.response.id == first.response_id
                assert done.response.status == "cancelled", f"{done.response.status}: it talked on"
                assert done.response.status_details.reason == "turn_detected"
                await s.c.conversation.item.truncate(item_id=first.item_id, content_index=0, audio_end_ms=100)
                cut = await s.until("conversation.item.truncated")
                assert cut.item_id == first.item_id and cut.audio_end_ms == 100
                again = await s.until("response.done")
            assert again.response.status == "completed"
        # the client's own way
        async with Session(client, audio=audio_in(None)) as s:
            await s.ask("Tell me a long story.")
            await s.until("response.output_audio.delta", "response.output_audio_transcript.delta")
            await s.c.response.cancel()
            done = await s.until("response.done")
            assert done.response.status in ("cancelled", "completed")
            return done.response.status

    async def tools():
        async with Session(client, tools=[TOOL], audio=audio_in(None)) as s:
            await s.ask("What is the weather in Paris?", tool_choice="required")
            done = await s.until("response.done")
            order(s.log, "response.created", "response.output_item.added", "conversation.item.added",
                  "response.function_call_arguments.delta", "response.function_call_arguments.done",
                  "response.output_item.done", "response.done")
            call = done.response.output[0]
            assert call.type == "function_call" and call.name == "get_weather", call
            arguments = json.loads(call.arguments)
            deltas = "".join(e.delta for e in s.log if e.type == "response.function_call_arguments.delta")
            assert json.loads(deltas) == arguments
            assert len(call.call_id) <= 32
            await s.c.conversation.item.create(
                item={"type": "function_call_output", "call_id": call.call_id, "output": '{"sky": "sunny"}'})
            await s.c.response.create(response={"tool_choice": "none"})
            done = await s.until("response.done")
            assert done.response.output[0].type == "message"
            return f"{call.name}({call.arguments}) then {said(s.log)!r}"

    async def image():
        async with Session(client, output_modalities=["text"], audio=audio_in(None)) as s:
            await s.c.conversation.item.create(item={"type": "message", "role": "user", "content": [
                {"type": "input_image", "image_url": "data:image/png;base64," + PNG},
                {"type": "input_text", "text": "What is this?"}]})
            await s.c.response.create()
            done = await s.until("response.done")
            assert done.response.status == "completed"
            return repr(done.response.output[0].content[0].text)

    async def out_of_band():
        async with Session(client, audio=audio_in(None)) as s:
            await s.c.response.create(response={
                "conversation": "none", "output_modalities": ["text"], "metadata": {"topic": "x"}, "instructions": "Classify.",
                "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]}]})
            done = await s.until("response.done")
            assert done.response.conversation_id is None and done.response.metadata == {"topic": "x"}
            assert "conversation.item.added" not in s.types(), "an out-of-band response leaves no item"
            return repr(done.response.output[0].content[0].text)

    async def items():
        async with Session(client, audio=audio_in(None)) as s:
            async def put(id, text, role="user", previous=None):
                kind = "output_text" if role == "assistant" else "input_text"
                event = {"type": "conversation.item.create", "item": {
                    "id": id, "type": "message", "role": role, "content": [{"type": kind, "text": text}]}}
                if previous:
                    event["previous_item_id"] = previous
                await s.c.send(event)
                return await s.until("conversation.item.added")
            await put("a", "Hello")
            assert (await put("b", "Hi", "assistant")).previous_item_id == "a"
            assert (await put("c", "Be kind.", "system", "root")).previous_item_id in (None, "")
            assert (await put("d", "between", previous="a")).previous_item_id == "a"
            await s.c.conversation.item.retrieve(item_id="b")
            got = await s.until("conversation.item.retrieved")
            assert got.item.content[0].text == "Hi"
            await s.c.conversation.item.delete(item_id="d")
            assert (await s.until("conversation.item.deleted")).item_id == "d"
            return "create, previous_item_id, root, retrieve, delete"

    async def errors():
        async with Session(client, audio=audio_in(None)) as s:
            async def refused(code, event):
                await s.c.send(event | {"event_id": "mine"})
                e = (await s.until("error", fail_on_error=False)).error
                assert e.code == code, f"{event['type']}: {e.code}, not {code}"
                assert e.event_id == "mine", "error.event_id is not the client's"
                assert e.type == "invalid_request_error" and e.message
                return e
            e = await refused("response_cancel_not_active", {"type": "response.cancel"})
            assert e.message.startswith("Cancellation failed"), e.message  # LiveKit looks at this
            await refused("input_audio_buffer_commit_empty", {"type": "input_audio_buffer.commit"})
            await refused("item_retrieve_invalid_item_id", {"type": "conversation.item.retrieve", "item_id": "nope"})
            await refused("item_delete_invalid_item_id", {"type": "conversation.item.delete", "item_id": "nope"})
            await refused("item_truncate_invalid_item_id", {"type": "conversation.item.truncate", "item_id": "nope",
                                                            "content_index": 0, "audio_end_ms": 1})
            await s.c.send({"type": "conversation.item.create", "item": {
                "id": "twice", "type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]}})
            await s.until("conversation.item.done")
            await refused("item_create_duplicate_item_id", {"type": "conversation.item.create", "item": {
                "id": "twice", "type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]}})
            await s.ask("Tell me a long story.")
            await s.until("response.created")
            await refused("conversation_already_has_active_response", {"type": "response.create"})
            done = await s.until("response.done")
            assert done.response.status == "completed", "an error ends nothing"
            return "7 codes, the session goes on"

    async def pcmu():
        law = {"type": "audio/pcmu"}
        async with Session(client, audio=audio_in(None, law)) as s:
            await s.c.input_audio_buffer.append(audio=base64.b64encode(bytes([0xFF, 0x00, 0x80]) * 4000).decode())
            await s.c.input_audio_buffer.commit()
            await s.c.response.create()
            await s.until("response.done")
            return f"{heard(s.log) / 8000:.1f} s of mu-law"

    async def strict():
        assert not SEEN_BAD, SEEN_BAD[:3]
        return "every event validated by the SDK's models"

    for name, check in (("connect", connect), ("text", text), ("text_only", text_only), ("manual", manual),
                        ("spoken", spoken), ("interrupt", interrupt), ("tools", tools), ("image", image),
                        ("out_of_band", out_of_band), ("items", items), ("errors", errors), ("pcmu", pcmu)):
        await checks.run(name, check, wait)
    await checks.run("strict", strict, wait)


if __name__ == "__main__":
    a = arguments()
    c = Checks("openai-python " + openai.__version__, a.only)
    asyncio.run(c.main(run(a.url, c, a.wav, a.key, a.wait)))
