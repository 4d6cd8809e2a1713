"""Functions and JSON, with the trained model: it has never learned any, so the answers are forced."""
import json
import urllib.error
import urllib.request

import pytest
from test_openai_clients import nano

TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}, "days": {"enum": [1, 3]}}, "required": ["city", "days"]}}}
OTHER = {"type": "function", "function": {"name": "hang_up"}}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = nano(tmp_path_factory.mktemp("tools"))
    yield server
    assert server.stop() == 0, server.log.read_text()[-4000:]


def ask(server, **fields):
    body = {"model": "any", "messages": [{"role": "user", "content": "What is the weather in Paris?"}], "seed": 3, **fields}
    request = urllib.request.Request(server.http + "/v1/chat/completions", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode()


def choice(server, **fields):
    return json.loads(ask(server, **fields))["choices"][0]


def check_call(call):
    assert call["function"]["name"] == "get_weather"
    arguments = json.loads(call["function"]["arguments"])
    assert isinstance(arguments["city"], str) and arguments["days"] in (1, 3)
    assert call["id"].startswith("call_") and len(call["id"]) <= 32


@pytest.mark.parametrize("most", [50, 120, 400])
def test_a_named_function_is_called_with_arguments_that_obey_its_schema(server, most):
    named = {"type": "function", "function": {"name": "get_weather"}}
    got = choice(server, tools=[TOOL, OTHER], tool_choice=named, max_tokens=most)
    assert got["finish_reason"] == "tool_calls" and got["message"]["content"] is None
    check_call(got["message"]["tool_calls"][0])


def test_some_function_is_called(server):
    got = choice(server, tools=[TOOL, OTHER], tool_choice="required", max_tokens=200)
    assert got["message"]["tool_calls"][0]["function"]["name"] in ("get_weather", "hang_up")


def test_a_call_is_streamed(server):
    lines = ask(server, tools=[TOOL], tool_choice="required", max_tokens=200, stream=True).split("\n\n")
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines if line and not line.endswith("[DONE]")]
    calls = [c["choices"][0]["delta"]["tool_calls"] for c in chunks if "tool_calls" in c["choices"][0]["delta"]]
    assert len(calls) > 5 and all(len(each) == 1 and each[0]["index"] == 0 for each in calls)
    first, rest = calls[0][0], [each[0]["function"] for each in calls[1:]]
    assert all(set(each) == {"arguments"} and each["arguments"] for each in rest)
    first["function"]["arguments"] += "".join(each["arguments"] for each in rest)
    check_call(first)
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_an_answer_after_a_result_is_text(server):
    call = {"id": "call_x", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris", "days": 1}'}}
    talk = [{"role": "user", "content": "Weather?"}, {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_x", "content": "sunny"}]
    got = choice(server, messages=talk, tools=[TOOL], tool_choice="none", max_tokens=20)
    assert got["finish_reason"] in ("stop", "length") and "tool_calls" not in got["message"]


@pytest.mark.parametrize("spoken", [False, True])
def test_no_mark_of_a_call_is_ever_said(server, spoken):
    more = {"modalities": ["text", "audio"]} if spoken else {}
    got = choice(server, tools=[TOOL], max_tokens=20, **more)
    said = got["message"]["audio"]["transcript"] if "audio" in got["message"] else got["message"]["content"] or ""
    assert "tool_call" not in said


CALL = {"id": "call_x", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris", "days": 1}'}}
AFTER_CALL = [{"role": "user", "content": "What is the weather in Paris?"}, {"role": "assistant", "content": None, "tool_calls": [CALL]},
              {"role": "tool", "tool_call_id": "call_x", "content": "sunny"}, {"role": "user", "content": "What is the weather in Rome?"}]


@pytest.mark.parametrize("more", [{"tools": [TOOL], "tool_choice": "none"}, {}, {"modalities": ["text", "audio"]}, {"response_format": {"type": "json_object"}},
                                  {"tools": [TOOL], "response_format": {"type": "json_object"}}], ids=["none", "no tools", "spoken", "json", "json and tools"])
def test_no_mark_is_said_where_calls_went_before(server, more):
    for seed in range(3):
        got = choice(server, messages=AFTER_CALL, max_tokens=60, **more | {"seed": seed})["message"]
        said = got["audio"]["transcript"] if "audio" in got else got["content"] or ""
        assert "tool_call" not in said and (said or got.get("tool_calls")), got


def test_results_find_their_calls_by_id(server):
    call = lambda id, city: {"id": id, "type": "function", "function": {"name": "get_weather", "arguments": json.dumps({"city": city})}}
    results = [{"role": "tool", "tool_call_id": "call_a", "content": "sunny, 18 degrees"}, {"role": "tool", "tool_call_id": "call_b", "content": "rainy, 9 degrees"}]
    talk = [{"role": "user", "content": "Weather?"}, {"role": "assistant", "content": None, "tool_calls": [call("call_a", "Paris"), call("call_b", "Rome")]}]
    said = [choice(server, messages=talk + order, temperature=0, max_tokens=40)["message"]["content"] for order in (results, results[::-1])]
    assert said[0] == said[1]
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask(server, messages=talk + results[:1])
    error = json.loads(refused.value.read())["error"]
    assert refused.value.code == 400 and error["param"] == "messages[1].tool_calls" and error["message"].endswith("call_b")


def test_a_required_call_is_not_spoken(server):
    got = choice(server, tools=[TOOL], tool_choice="required", max_tokens=200, modalities=["text", "audio"])
    assert "audio" not in got["message"]
    check_call(got["message"]["tool_calls"][0])


def test_an_answer_in_json(server):
    assert isinstance(json.loads(choice(server, response_format={"type": "json_object"}, max_tokens=60)["message"]["content"]), dict)
    schema = {"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"type": "array", "items": {"type": "integer"}}}, "required": ["a", "b"]}
    given = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    got = json.loads(choice(server, response_format=given, max_tokens=80)["message"]["content"])
    assert isinstance(got["a"], bool) and all(isinstance(x, int) for x in got["b"])


def test_with_tools_and_a_format_the_answer_is_a_call_or_obeys_the_format(server):
    schema = {"type": "object", "properties": {"sunny": {"type": "boolean"}}, "required": ["sunny"]}
    given = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    got = choice(server, tools=[TOOL], response_format=given, max_tokens=120)
    if got["finish_reason"] == "tool_calls":
        check_call(got["message"]["tool_calls"][0])
    else:
        assert isinstance(json.loads(got["message"]["content"])["sunny"], bool)
    forced = choice(server, tools=[TOOL], tool_choice="required", response_format=given, max_tokens=120)
    check_call(forced["message"]["tool_calls"][0])
    none = choice(server, tools=[TOOL], tool_choice="none", response_format=given, max_tokens=120)
    assert isinstance(json.loads(none["message"]["content"])["sunny"], bool)
