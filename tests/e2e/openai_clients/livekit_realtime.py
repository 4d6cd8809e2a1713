"""livekit-plugins-openai (PyPI): openai.realtime.RealtimeModel(base_url=...), without a LiveKit room. See common.py.

Checks: text, instructions, spoken, interrupt, tools, chat_ctx, video, manual, azure_beta, agent; transcript, for a server that writes down what
users say; and duplex_tools, for one with openai.duplex_tools
`agent` is a whole AgentSession with a microphone and a loudspeaker of our own: what an application sees.
"""
import asyncio
import importlib.metadata
import logging
import time

import aiohttp
from livekit import rtc
from livekit.agents import Agent, AgentSession, RunContext, function_tool, llm
from livekit.agents.voice import io
from livekit.plugins import openai
from openai.types.realtime.realtime_audio_input_turn_detection import SemanticVad, ServerVad

from common import Checks, Microphone, arguments, base, question, silence

RATE = 24000
asked = []
logged = []


class Catch(logging.Handler):
    def emit(self, record):
        text = record.getMessage()
        if record.exc_info:
            text += f" ({record.exc_info[1]!r})"
        logged.append(text)


log = logging.getLogger("livekit.agents")
log.addHandler(Catch())
log.setLevel(logging.WARNING)
log.propagate = False


@function_tool
async def get_weather(city: str) -> str:
    """Weather in a city.

    Args:
        city: its name
    """
    asked.append(city)
    return "sunny"


def frame(pcm):
    return rtc.AudioFrame(pcm, RATE, 1, len(pcm) // 2)


class Ear(io.AudioInput):
    def __init__(self):
        super().__init__(label="ear")
        self.queue = asyncio.Queue()

    async def __anext__(self):
        return await self.queue.get()


class Talk:
    """A RealtimeSession and what it tells."""

    def __init__(self, http, url, key, **options):
        options.setdefault("turn_detection", None)
        self.model = openai.realtime.RealtimeModel(base_url=base(url), api_key=key, model="parley", http_session=http, **options)
        self.generations = asyncio.Queue()
        self.errors, self.raw, self.told = [], [], []
        self.wake = asyncio.Event()

    async def __aenter__(self):
        logged.clear()
        s = self.s = self.model.session()
        s.on("generation_created", self.generations.put_nowait)
        s.on("error", lambda e: self.errors.append(e))
        s.on("openai_server_event_received", self.on_raw)
        for name in ("input_speech_started", "input_speech_stopped"):
            s.on(name, lambda e, name=name: self.told.append(name))
        return self

    def on_raw(self, event):
        self.raw.append(event)
        self.wake.set()

    async def until(self, type, since=0):
        while True:
            for i in range(since, len(self.raw)):
                if self.raw[i]["type"] == type:
                    return i
            self.wake.clear()
            await self.wake.wait()

    async def __aexit__(self, kind, *_):
        await self.s.aclose()
        if kind is None:
            assert not self.errors, self.errors[0].error
            bad = [t for t in logged if "failed to handle event" in t or "exception" in t.lower()]
            assert not bad, bad[0][:300]

    async def answer(self, generation):
        """The whole generation: (text, seconds of sound, function calls, modalities)."""
        words, sound, modalities = "", 0.0, None

        async def read(stream, take):
            async for x in stream:
                take(x)

        async def functions():
            return [f async for f in generation.function_stream]
        calls = asyncio.create_task(functions())
        async for m in generation.message_stream:
            got_text, got_audio = [], []
            await asyncio.gather(read(m.text_stream, got_text.append), read(m.audio_stream, got_audio.append))
            words += "".join(got_text)
            sound += sum(f.duration for f in got_audio)
            modalities = await m.modalities
        return words, sound, await calls, modalities


async def run(url, checks, wav="", key="none", wait=30.0):
    speech = question(RATE, wav)
    async with aiohttp.ClientSession() as http:

        async def text():
            async with Talk(http, url, key) as t:
                ctx = llm.ChatContext.empty()
                ctx.add_message(role="user", content="What is your name?")
                await t.s.update_chat_ctx(ctx)  # waits for conversation.item.added
                g = await t.s.generate_reply()
                words, sound, _, modalities = await t.answer(g)
                assert g.user_initiated and sound > 0.1 and words, (words, sound)
                assert modalities == ["audio", "text"], modalities
                return f"{words!r}, {sound:.1f} s"

        async def instructions():
            async with Talk(http, url, key) as t:
                await t.s.update_instructions("You are Parley.")
                await t.s.update_tools([get_weather])
                g = await t.s.generate_reply(instructions="Greet the user.", tool_choice="none")
                words, _, _, _ = await t.answer(g)
                assert g.user_initiated, "response.metadata.client_event_id is not echoed"
                return f"greeting {words!r}"

        async def spoken():
            async with Talk(http, url, key, turn_detection=SemanticVad(type="semantic_vad", create_response=True,
                                                                       interrupt_response=True)) as t:
                async def send(pcm):
                    t.s.push_audio(frame(pcm))
                async with Microphone(RATE, send, 50) as mic:
                    mic.say(silence(500, RATE) + speech)
                    g = await t.generations.get()
                    words, sound, _, _ = await t.answer(g)
                assert not g.user_initiated and sound > 0.1
                assert t.told[:2] == ["input_speech_started", "input_speech_stopped"], t.told
                roles = [i.role for i in t.s.chat_ctx.items]
                assert roles[:2] == ["user", "assistant"], f"remote chat context: {roles}"
                return f"{words!r}, {sound:.1f} s"

        async def transcript():
            async with Talk(http, url, key, turn_detection=ServerVad(type="server_vad", silence_duration_ms=300)) as t:
                written = asyncio.Queue()
                t.s.on("input_audio_transcription_completed", written.put_nowait)

                async def send(pcm):
                    t.s.push_audio(frame(pcm))
                async with Microphone(RATE, send, 50) as mic:
                    mic.say(silence(300, RATE) + speech)
                    await t.answer(await t.generations.get())
                    while not (heard := await written.get()).is_final:
                        pass
                assert heard.transcript, heard
                kept = t.s.chat_ctx.get_by_id(heard.item_id)
                assert kept.role == "user" and kept.text_content == heard.transcript, kept
                return repr(heard.transcript)

        async def interrupt():
            async with Talk(http, url, key, turn_detection=ServerVad(type="server_vad", silence_duration_ms=300,
                                                                     interrupt_response=True)) as t:
                async def send(pcm):
                    t.s.push_audio(frame(pcm))
                async with Microphone(RATE, send, 50) as mic:
                    mic.say(silence(300, RATE) + speech)
                    g = await t.generations.get()
                    await t.until("response.output_audio.delta")
                    mic.say(speech)
                    await t.answer(g)  # ends early
                    at = await t.until("response.done")
                    done = t.raw[at]["response"]
                    assert done["status"] == "cancelled" and done["status_details"]["reason"] == "turn_detected", done
                    t.s.truncate(message_id=done["output"][0]["id"], modalities=["audio", "text"], audio_end_ms=100)
                    await t.until("conversation.item.truncated", at)
                    await t.answer(await t.generations.get())
                assert t.told.count("input_speech_started") >= 2
            async with Talk(http, url, key) as t:  # by the application
                fut = t.s.generate_reply(instructions="Tell me a long story.")
                g = await fut
                await t.until("response.output_audio.delta")
                t.s.interrupt()
                await t.answer(g)
                at = await t.until("response.done")
                return "turn_detected; interrupt(): " + t.raw[at]["response"]["status"]

        async def tools():
            async with Talk(http, url, key) as t:
                await t.s.update_tools([get_weather])
                ctx = llm.ChatContext.empty()
                ctx.add_message(role="user", content="What is the weather in Paris?")
                await t.s.update_chat_ctx(ctx)
                g = await t.s.generate_reply(tool_choice="required")
                _, _, calls, _ = await t.answer(g)
                assert len(calls) == 1 and calls[0].name == "get_weather", calls
                assert t.s.chat_ctx.items[-1].type == "function_call"
                ctx = t.s.chat_ctx.copy()
                ctx.items.append(llm.FunctionCallOutput(call_id=calls[0].call_id, name="get_weather", output="sunny",
                                                        is_error=False))
                await t.s.update_chat_ctx(ctx)
                words, _, _, _ = await t.answer(await t.s.generate_reply(tool_choice="none"))
                return f"get_weather({calls[0].arguments}) then {words!r}"

        async def duplex_tools():
            """Asked by voice in full duplex; a second question is answered while the function is at work, and its result is told."""
            asked, known, items, problems = asyncio.Event(), asyncio.Event(), [], []

            @function_tool
            async def get_time() -> str:
                """Get the current time."""
                asked.set()
                await known.wait()
                return "14:30"

            model = openai.realtime.RealtimeModel(base_url=base(url), api_key=key, model="parley", http_session=http,
                                                  turn_detection=SemanticVad(type="semantic_vad", create_response=True,
                                                                             interrupt_response=True))
            session = AgentSession(llm=model)
            ear = Ear()
            session.input.audio = ear
            session.on("conversation_item_added", lambda e: items.append(e.item))
            session.on("error", lambda e: problems.append(e.error))

            async def until_said(words):
                while words not in " ".join(i.text_content or "" for i in items if getattr(i, "role", "") == "assistant"):
                    await asyncio.sleep(0.05)

            await session.start(agent=Agent(instructions="Be brief.", tools=[get_time]), record=False)
            try:
                async def send(pcm):
                    ear.queue.put_nowait(frame(pcm))
                async with Microphone(RATE, send, 50) as mic:
                    mic.say(silence(3000, RATE) + question(RATE, text="What time is it?"))
                    await asked.wait()
                    mic.say(silence(500, RATE) + speech)
                    await until_said("My name is Parley.")
                    known.set()
                    await until_said("fourteen thirty")
            finally:
                await session.aclose()
            assert not problems, problems[0]
            return [i.text_content for i in items if getattr(i, "role", "") == "assistant"]

        async def chat_ctx():
            async with Talk(http, url, key) as t:
                ctx = llm.ChatContext.empty()
                for role, words in (("system", "Be kind."), ("user", "Hello"), ("assistant", "Hi"), ("user", "Bye")):
                    ctx.add_message(role=role, content=words)
                await t.s.update_chat_ctx(ctx)
                assert [i.text_content for i in t.s.chat_ctx.items] == ["Be kind.", "Hello", "Hi", "Bye"]
                ctx.items.pop(1)
                await t.s.update_chat_ctx(ctx)  # waits for conversation.item.deleted
                assert len(t.s.chat_ctx.items) == 3
                return "4 items in, 1 deleted"

        async def video():
            async with Talk(http, url, key) as t:
                t.s.push_video(rtc.VideoFrame(16, 16, rtc.VideoBufferType.RGBA, bytes(16 * 16 * 4)))
                await t.until("conversation.item.added")
                return "push_video is an item with input_image"

        async def manual():
            async with Talk(http, url, key) as t:
                t.s.push_audio(frame(speech))
                t.s.commit_audio()
                await t.until("input_audio_buffer.committed")
                words, _, _, _ = await t.answer(await t.s.generate_reply())
                return repr(words)

        async def azure_beta():
            # RealtimeModel(azure_deployment=..., api_version=...): flat session, old event names, api-key header
            root = base(url).removesuffix("/v1") + "/openai"
            model = openai.realtime.RealtimeModel(azure_deployment="parley", api_version="2024-10-01-preview", api_key=key,
                                                  base_url=root, http_session=http, turn_detection=None)
            s = model.session()
            problems = []
            s.on("error", problems.append)
            ctx = llm.ChatContext.empty()
            ctx.add_message(role="user", content="What is your name?")
            await s.update_chat_ctx(ctx)
            t = Talk(http, url, key)
            words, sound, _, _ = await t.answer(await s.generate_reply())
            await s.aclose()
            assert not problems, problems[0].error
            assert sound > 0.1
            return f"{words!r}, {sound:.1f} s"

        async def agent():
            ear, played = Ear(), []

            class Mouth(io.AudioOutput):
                """Plays at the pace of a clock."""

                def __init__(self):
                    super().__init__(label="mouth", capabilities=io.AudioOutputCapabilities(pause=False), sample_rate=RATE)
                    self.pushed, self.started, self.task, self.cleared = 0.0, None, None, asyncio.Event()
                    self.interruptions = 0

                async def capture_frame(self, f):
                    await super().capture_frame(f)
                    if self.started is None:
                        self.started = time.time()
                        self.cleared.clear()
                    self.pushed += f.duration
                    played.append(f)

                def flush(self):
                    super().flush()
                    if self.started is not None:
                        self.task = asyncio.create_task(self.finish())

                async def finish(self):
                    left = self.started + self.pushed - time.time()
                    try:
                        await asyncio.wait_for(self.cleared.wait(), max(0.0, left))
                        cut, position = True, time.time() - self.started
                    except TimeoutError:
                        cut, position = False, self.pushed
                    self.interruptions += cut
                    self.started, self.pushed = None, 0.0
                    self.on_playback_finished(playback_position=position, interrupted=cut)

                def clear_buffer(self):
                    self.cleared.set()

            asked.clear()

            class Assistant(Agent):
                def __init__(self):
                    super().__init__(instructions="Be brief.")

                async def on_enter(self):
                    self.session.generate_reply(instructions="Greet the user.")

            model = openai.realtime.RealtimeModel(
                base_url=base(url), api_key=key, model="parley", http_session=http,
                turn_detection=ServerVad(type="server_vad", silence_duration_ms=300, interrupt_response=True,
                                         create_response=True))
            session = AgentSession(llm=model)
            mouth = Mouth()
            session.input.audio, session.output.audio = ear, mouth
            items, states, problems = [], [], []
            session.on("conversation_item_added", lambda e: items.append(e.item))
            session.on("agent_state_changed", lambda e: states.append(e.new_state))
            session.on("error", lambda e: problems.append(e.error))

            async def said(n):
                while len([i for i in items if getattr(i, "role", "") == "assistant"]) < n:
                    await asyncio.sleep(0.05)

            await session.start(agent=Assistant(), record=False)
            try:
                async def send(pcm):
                    ear.queue.put_nowait(frame(pcm))
                async with Microphone(RATE, send, 50) as mic:
                    await said(1)  # the greeting, played to its end
                    before = len(played)
                    mic.say(speech)
                    while len(played) == before:
                        await asyncio.sleep(0.02)
                    mic.say(speech)  # in the middle of the answer
                    while not mouth.interruptions:
                        await asyncio.sleep(0.02)
                    await said(3)
            finally:
                await session.aclose()
            assert not problems, problems[0]
            assistants = [i for i in items if getattr(i, "role", "") == "assistant"]
            assert any(i.interrupted for i in assistants), "no item says that it was interrupted"
            return f"greeting, question, barge-in, answer; states {' '.join(dict.fromkeys(states))}"

        for name, check in (("text", text), ("instructions", instructions), ("spoken", spoken), ("transcript", transcript), ("interrupt", interrupt),
                            ("tools", tools), ("duplex_tools", duplex_tools), ("chat_ctx", chat_ctx), ("video", video), ("manual", manual),
                            ("azure_beta", azure_beta), ("agent", agent)):
            await checks.run(name, check, wait)


if __name__ == "__main__":
    a = arguments()
    c = Checks("livekit-plugins-openai " + importlib.metadata.version("livekit-plugins-openai"), a.only)
    asyncio.run(c.main(run(a.url, c, a.wav, a.key, a.wait)))
