"""LiveKit's RealtimeModel while the server behind it loses processes. See common.py.

Checks: between, within
At each line `stop` on standard output a process may die; the program waits for a line on standard input.
"""
import asyncio
import importlib.metadata

import aiohttp
from openai.types.realtime.realtime_audio_input_turn_detection import SemanticVad

from common import Checks, Microphone, arguments, question, silence
from livekit_realtime import RATE, Talk, frame
from stops import stop


async def run(url, checks, wav="", key="none", wait=60.0):
    speech = question(RATE, wav)
    async with aiohttp.ClientSession() as http:

        async def conversation(within):
            vad = SemanticVad(type="semantic_vad", create_response=True, interrupt_response=True)
            async with Talk(http, url, key, turn_detection=vad) as t:
                async def send(pcm):
                    t.s.push_audio(frame(pcm))
                said = []
                async with Microphone(RATE, send, 50) as mic:
                    for turn in range(3):
                        mic.say(silence(500, RATE) + speech)
                        since = len(t.raw)
                        answer = asyncio.create_task(t.answer(await t.generations.get()))
                        if within and turn == 1:
                            await t.until("response.output_audio.delta", since)
                            await stop()
                        said.append((await answer)[0])
                        if not within and turn < 2:
                            await stop()
                roles = [i.role for i in t.s.chat_ctx.items]
                assert roles == ["user", "assistant"] * 3, f"remote chat context: {roles}"
            assert said[0] and said == [said[0]] * 3, said
            return f"{said[0]!r} three times"

        await checks.run("between", lambda: conversation(False), wait)
        await checks.run("within", lambda: conversation(True), wait)


if __name__ == "__main__":
    a = arguments()
    c = Checks("livekit-plugins-openai " + importlib.metadata.version("livekit-plugins-openai"), a.only)
    asyncio.run(c.main(run(a.url, c, a.wav, a.key, a.wait)))
