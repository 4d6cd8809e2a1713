"""Pipecat's OpenAIRealtimeLLMService while the server behind it loses processes. See common.py.

Checks: between, within
At each line `stop` on standard output a process may die; the program waits for a line on standard input.
"""
import asyncio
import importlib.metadata

from pipecat.frames.frames import LLMFullResponseEndFrame, TTSAudioRawFrame
from pipecat.services.openai.realtime import events

from common import Checks, Microphone, arguments, question, silence
from pipecat_realtime import RATE, Talk
from stops import stop


async def run(url, checks, wav="", key="none", wait=60.0):
    speech = question(RATE, wav)

    async def conversation(within):
        async with Talk(url, key, turn_detection=events.SemanticTurnDetection()) as t:
            await t.run_llm()
            at = await t.tap.until(LLMFullResponseEndFrame)
            said = []
            async with Microphone(RATE, t.ear.hear, 50) as mic:
                for turn in range(3):
                    mic.say(silence(500, RATE) + speech)
                    since = at
                    at = await t.tap.until(TTSAudioRawFrame, at)
                    if within and turn == 1:
                        await stop()
                    at = await t.tap.until(LLMFullResponseEndFrame, at)
                    said.append(t.tap.words(since))
                    if not within and turn < 2:
                        await stop()
        assert said[0] and said == [said[0]] * 3, said
        return f"{said[0]!r} three times"

    await checks.run("between", lambda: conversation(False), wait)
    await checks.run("within", lambda: conversation(True), wait)


if __name__ == "__main__":
    a = arguments()
    c = Checks("pipecat-ai " + importlib.metadata.version("pipecat-ai"), a.only)
    asyncio.run(c.main(run(a.url, c, a.wav, a.key, a.wait)))
