"""instructor (PyPI): structured output by a tool and by a JSON schema. See common.py.
Checks: tools, output"""
import asyncio
from importlib.metadata import version

import instructor
from common import Checks, arguments, base
from openai import AsyncOpenAI
from pydantic import BaseModel

a = arguments()
checks = Checks("instructor " + version("instructor"), a.only)


class Answer(BaseModel):
    text: str
    sure: bool


async def made(mode):
    client = instructor.from_openai(AsyncOpenAI(base_url=base(a.url), api_key=a.key), mode=mode)
    got = await client.chat.completions.create(model="any", response_model=Answer, max_tokens=200, max_retries=0,
                                               messages=[{"role": "user", "content": "What is your name?"}])
    assert isinstance(got, Answer), got


async def main():
    for name, mode in (("tools", instructor.Mode.TOOLS), ("output", instructor.Mode.JSON_SCHEMA)):
        await checks.run(name, lambda mode=mode: made(mode), a.wait)


asyncio.run(checks.main(main()))
