"""openai (PyPI): chat completions with tools, structured output, and what was said as history. See common.py.
Checks: tools, results, stream, output, spoken_history"""
import asyncio
import json

import openai
from common import Checks, arguments, base
from pydantic import BaseModel

a = arguments()
checks = Checks("openai-python " + openai.__version__, a.only)
ai = openai.AsyncOpenAI(base_url=base(a.url), api_key=a.key)
QUESTION = {"role": "user", "content": "What is the weather in Paris?"}
WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "Weather of a city", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}


class Answer(BaseModel):
    text: str
    sure: bool


async def ask(**more):
    return await ai.chat.completions.create(model="any", temperature=0, **more)


async def tools():
    first = (await ask(messages=[QUESTION], tools=[WEATHER], tool_choice="required")).choices[0].message
    call = first.tool_calls[0]
    assert json.loads(call.function.arguments)["city"], call
    result = {"role": "tool", "tool_call_id": call.id, "content": "sunny, 18 degrees"}
    told = (await ask(messages=[QUESTION, first, result], tools=[WEATHER])).choices[0].message.content
    assert "sunny" in told, told
    return told


async def results():
    call = lambda id, city: {"id": id, "type": "function", "function": {"name": "get_weather", "arguments": json.dumps({"city": city})}}
    said = {"role": "assistant", "content": None, "tool_calls": [call("call_a", "Paris"), call("call_b", "Rome")]}
    out = [{"role": "tool", "tool_call_id": id, "content": content} for id, content in (("call_a", "sunny, 18 degrees"), ("call_b", "rainy, 9 degrees"))]
    both = [(await ask(messages=[QUESTION, said, *order])).choices[0].message.content for order in (out, out[::-1])]
    assert both[0] == both[1], both
    try:
        await ask(messages=[QUESTION, said, out[0]])
    except openai.BadRequestError as why:
        assert why.param == "messages[1].tool_calls" and "call_b" in why.message, why
    else:
        raise AssertionError("a call without a result was accepted")


async def stream():
    async with ai.chat.completions.stream(model="any", messages=[QUESTION], tools=[WEATHER], tool_choice="required", temperature=0) as events:
        async for _ in events:
            pass
        whole = await events.get_final_completion()
    assert json.loads(whole.choices[0].message.tool_calls[0].function.arguments)["city"]


async def output():
    got = await ai.chat.completions.parse(model="any", messages=[{"role": "user", "content": "What is your name?"}], response_format=Answer, max_tokens=200)
    assert isinstance(got.choices[0].message.parsed, Answer), got


async def spoken_history():
    more = {"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "wav"}}
    name = {"role": "user", "content": "What is your name?"}
    said = (await ask(messages=[name], **more)).choices[0].message
    assert said.audio.data and said.audio.transcript, said
    for history in (said, {"role": "assistant", "audio": {"id": said.audio.id}}):
        assert (await ask(messages=[name, history, QUESTION], max_tokens=60)).choices[0].message.content
    words = {"role": "assistant", "content": said.audio.transcript}
    counts = [(await ask(messages=[name, each, QUESTION], max_tokens=1)).usage.prompt_tokens for each in (words, {"role": "assistant", "audio": {"id": said.audio.id}})]
    assert counts[0] == counts[1], counts


async def main():
    for each in (tools, results, stream, output, spoken_history):
        await checks.run(each.__name__, each, a.wait)


asyncio.run(checks.main(main()))
