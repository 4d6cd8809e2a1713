#!/usr/bin/env python3
"""Renders conversations with tools by the chat template of models/nano, as Hugging Face's apply_chat_template does: writes prompts.json.

make.py — needs jinja2."""
import json
from pathlib import Path

from jinja2.sandbox import ImmutableSandboxedEnvironment

HERE = Path(__file__).parent
CONFIG = HERE.parents[3] / "models/nano/tokenizer_config.json"
WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "The weather in a city. \"Now\", é.",
           "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}
TIME = {"type": "function", "function": {"name": "get_time"}}


def call(name, arguments):
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


ASKED = {"role": "user", "content": "Weather and time?"}
CASES = {
    "no system": [ASKED],
    "system": [{"role": "system", "content": "Be brief."}, ASKED],
    "call and result": [ASKED, {"role": "assistant", "content": "", "tool_calls": [call("get_weather", '{"city": "Paris"}')]},
                        {"role": "tool", "content": '{"sky": "clear"}'}],
    "text, two calls, two results": [
        {"role": "system", "content": "S"}, ASKED,
        {"role": "assistant", "content": "Let me look.", "tool_calls": [call("get_weather", '{"city": "Oslo"}'), call("get_time", "{}")]},
        {"role": "tool", "content": "rain"}, {"role": "tool", "content": "noon"}],
    "after the results": [
        ASKED, {"role": "assistant", "content": "", "tool_calls": [call("get_time", "{}")]}, {"role": "tool", "content": "noon"},
        {"role": "assistant", "content": "It is noon."}, {"role": "user", "content": "Thanks"}],
    "a later system message": [ASKED, {"role": "system", "content": "Now in French."}, {"role": "user", "content": "Go on"}],
    "a result alone": [{"role": "tool", "content": "x"}],
}


def main():
    jinja = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    jinja.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    template = jinja.from_string(json.loads(CONFIG.read_text())["chat_template"])
    cases = []
    for name, messages in CASES.items():
        for tools in ([WEATHER, TIME], []):
            prompt = template.render(messages=messages, tools=tools, add_generation_prompt=True, enable_thinking=False)
            cases.append({"name": name, "messages": messages, "tools": [json.dumps(t, ensure_ascii=False) for t in tools], "prompt": prompt})
    (HERE / "prompts.json").write_text(json.dumps(cases, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
