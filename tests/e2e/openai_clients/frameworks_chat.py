"""pydantic-ai and langchain-openai (PyPI): tools and structured output over chat completions. See common.py.
Checks: pydantic_tools, pydantic_output, langchain_tools, langchain_output"""
import asyncio
from importlib.metadata import version

from common import Checks, arguments, base
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, Field
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

a = arguments()
checks = Checks(f"pydantic-ai {version('pydantic-ai-slim')}, langchain-openai {version('langchain-openai')}", a.only)
model = OpenAIChatModel("any", provider=OpenAIProvider(base_url=base(a.url), api_key=a.key))
chain = ChatOpenAI(base_url=base(a.url), api_key=a.key, model="any", max_tokens=200, temperature=0)
WEATHER = "What is the weather in Paris?"
NAME = "What is your name?"
asked = []


class Answer(BaseModel):
    """An answer"""
    text: str = Field(description="the answer")
    sure: bool


def get_weather(city: str) -> str:
    """Weather of a city"""
    asked.append(city)
    return "sunny, 18 degrees"


async def pydantic_tools():
    asked.clear()
    told = (await Agent(model, tools=[get_weather]).run(WEATHER, model_settings={"temperature": 0, "max_tokens": 200})).output
    assert asked == ["Paris"] and "sunny" in told, (asked, told)
    return told


async def pydantic_output():
    got = (await Agent(model, output_type=NativeOutput(Answer)).run(NAME, model_settings={"max_tokens": 200})).output
    assert isinstance(got, Answer), got


async def langchain_tools():
    bound = chain.bind_tools([tool(get_weather)])
    first = await bound.ainvoke([HumanMessage(WEATHER)])
    assert [call["args"] for call in first.tool_calls] == [{"city": "Paris"}], first
    results = [ToolMessage("sunny, 18 degrees", tool_call_id=call["id"]) for call in first.tool_calls]
    told = (await bound.ainvoke([HumanMessage(WEATHER), first, *results])).content
    assert "sunny" in told, told
    return told


async def langchain_output():
    for method in ("function_calling", "json_schema"):
        got = await chain.with_structured_output(Answer, method=method).ainvoke(NAME)
        assert isinstance(got, Answer), (method, got)


async def main():
    for each in (pydantic_tools, pydantic_output, langchain_tools, langchain_output):
        await checks.run(each.__name__, each, a.wait)


asyncio.run(checks.main(main()))
