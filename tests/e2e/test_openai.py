"""The API for OpenAI clients, tested with OpenAI's own Python package."""
import base64
import hashlib
import io
import json
import re
import socket
import wave

import numpy as np
import openai
import pytest

from conftest import ROOT
from realtime import SPOKEN, Client, http
from test_recording import wait_for

PICTURE = "data:image/jpeg;base64," + base64.b64encode((ROOT / "tests/data/pictures/frame.jpg").read_bytes()).decode()
SPEAKS = (ROOT / "models/tiny-omni/assets").is_dir()
HELLO = [{"role": "user", "content": "Hello, who are you?"}]


def sdk(server, key: str = "none") -> openai.OpenAI:
    return openai.OpenAI(base_url=server.http + "/v1", api_key=key, max_retries=0, timeout=120)


@pytest.fixture(scope="module")
def ai(server):
    return sdk(server)


def free(server) -> bool:
    status = http(server, "/status")[1]
    return sum(worker["busy"] for worker in status["workers"]) == 0


def test_a_chat(ai):
    said = ai.chat.completions.create(model="any-name", messages=[{"role": "system", "content": "Be brief."}, *HELLO], max_tokens=12, seed=3, temperature=0.5)
    assert said.object == "chat.completion" and said.model == "any-name" and said.id.startswith("chatcmpl-")
    (choice,) = said.choices
    assert choice.message.role == "assistant" and choice.message.content and choice.finish_reason in ("stop", "length")
    assert said.usage.prompt_tokens > 10 and 1 <= said.usage.completion_tokens <= 13
    assert said.usage.total_tokens == said.usage.prompt_tokens + said.usage.completion_tokens


def test_a_stream_says_the_same(ai):
    wanted = {"model": "m", "messages": HELLO, "max_completion_tokens": 16, "seed": 5}
    whole = ai.chat.completions.create(**wanted)
    *chunks, last = ai.chat.completions.create(**wanted, stream=True, stream_options={"include_usage": True})
    assert all(chunk.object == "chat.completion.chunk" for chunk in chunks)
    assert chunks[0].choices[0].delta.role == "assistant" and len(chunks) > 2
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == whole.choices[0].message.content
    assert [c.choices[0].finish_reason for c in chunks][-2:] == [None, whole.choices[0].finish_reason]
    assert last.choices == [] and last.usage == whole.usage


def test_an_answer_stops_before_a_stop_string(ai):
    wanted = {"model": "m", "messages": HELLO, "max_tokens": 24, "seed": 5}
    whole = ai.chat.completions.create(**wanted).choices[0].message.content
    stop = whole[len(whole) // 2 :][:3]
    before = whole[: whole.index(stop)]
    cut = ai.chat.completions.create(**wanted, stop=["not there", stop])
    assert cut.choices[0].message.content == before and cut.choices[0].finish_reason == "stop"
    chunks = list(ai.chat.completions.create(**wanted, stop=stop, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == before
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert ai.chat.completions.create(**wanted, stop="\x00").choices[0].message.content == whole


@pytest.mark.skipif(not SPEAKS, reason="the model has no voice")
@pytest.mark.parametrize("stream", (False, True))
def test_words_behind_a_stop_string_are_not_spoken(ai, stream):
    def spoken(**more):
        wanted = {"model": "m", "messages": HELLO, "max_tokens": 40, "seed": 5, "modalities": ["text", "audio"], "stream": stream}
        said = ai.chat.completions.create(**wanted, audio={"voice": "a", "format": "pcm16"}, **more)
        pieces = [chunk.choices[0].delta.audio for chunk in said] if stream else [said.choices[0].message.audio]
        pieces = [piece for piece in pieces if piece]
        return "".join(p.transcript or "" for p in pieces), sum(len(base64.b64decode(p.data or "")) for p in pieces)

    words, sound = spoken()
    stop = words[len(words) // 4 :][:3]
    fewer, less = spoken(stop=stop)
    assert fewer == words[: words.index(stop)]
    assert 0 < less
    if stream:  # of a text that is spoken at once, this untrained model makes as much sound as it likes
        assert less < 0.7 * sound


def test_several_answers(ai):
    wanted = {"model": "m", "messages": HELLO, "max_tokens": 12}
    alone = [ai.chat.completions.create(**wanted, seed=seed) for seed in (5, 6, 7)]
    together = ai.chat.completions.create(**wanted, seed=5, n=3)
    assert [choice.index for choice in together.choices] == [0, 1, 2]
    assert [choice.message.content for choice in together.choices] == [one.choices[0].message.content for one in alone]
    assert together.usage.prompt_tokens == alone[0].usage.prompt_tokens
    assert together.usage.completion_tokens == sum(one.usage.completion_tokens for one in alone)
    words = ["", "", ""]
    for chunk in ai.chat.completions.create(**wanted, seed=5, n=3, stream=True):
        words[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
    assert words == [choice.message.content for choice in together.choices]
    assert len({choice.message.content for choice in ai.chat.completions.create(**wanted, n=4).choices}) > 1


def test_how_likely_the_tokens_were(ai):
    wanted = {"model": "m", "messages": HELLO, "max_tokens": 16, "seed": 5, "temperature": 0.7}
    plain = ai.chat.completions.create(**wanted)
    assert plain.choices[0].logprobs is None
    whole = ai.chat.completions.create(**wanted, logprobs=True, top_logprobs=20)
    text = whole.choices[0].message.content
    assert text == plain.choices[0].message.content and whole.usage == plain.usage
    tokens = whole.choices[0].logprobs.content
    assert b"".join(bytes(t.bytes) for t in tokens).decode(errors="replace") == text
    for token in tokens:
        best = [t.logprob for t in token.top_logprobs]
        assert len(best) == 20 and best == sorted(best, reverse=True) and token.logprob <= best[0] <= 0
        assert 0 < sum(np.exp(best)) <= 1.00001
        assert token.token in [t.token for t in token.top_logprobs] or token.logprob <= best[-1]
    streamed = []
    for chunk in ai.chat.completions.create(**wanted, logprobs=True, top_logprobs=2, stream=True):
        (choice,) = chunk.choices
        streamed += choice.logprobs.content if choice.logprobs else []
    assert [t.bytes for t in streamed] == [t.bytes for t in tokens] and [t.logprob for t in streamed] == pytest.approx([t.logprob for t in tokens], abs=1e-4)
    assert all(len(t.top_logprobs) == 2 for t in streamed)
    bare = ai.chat.completions.create(**wanted, logprobs=True).choices[0].logprobs.content
    assert [t.bytes for t in bare] == [t.bytes for t in tokens] and not any(t.top_logprobs for t in bare)
    for bad in ({"logprobs": True, "top_logprobs": 21}, {"top_logprobs": 2}):
        with pytest.raises(openai.BadRequestError, match="top_logprobs"):
            ai.chat.completions.create(**wanted, **bad)


def test_length_ends_it(ai):
    reasons = {ai.chat.completions.create(model="m", messages=HELLO, max_tokens=1, seed=seed).choices[0].finish_reason for seed in range(4)}
    assert "length" in reasons


def test_a_picture_and_a_sound_are_taken_in(ai):
    def tokens(*parts):
        said = ai.chat.completions.create(model="m", messages=[{"role": "user", "content": [*parts, {"type": "text", "text": "What is this?"}]}], max_tokens=4)
        return said.usage.prompt_tokens, said.usage.prompt_tokens_details.audio_tokens

    picture = {"type": "image_url", "image_url": {"url": PICTURE, "detail": "low"}}
    sound = {"type": "input_audio", "input_audio": {"data": base64.b64encode(SPOKEN.read_bytes()).decode(), "format": "wav"}}
    words, seen, heard = tokens(), tokens(picture), tokens(sound)
    assert seen[0] >= words[0] + 64, "a picture is 64 tokens"
    assert heard[1] >= 30 and words[1] == 0, "ten tokens for each of 3.7 s"


def test_a_large_picture_is_sent(ai):
    """A chat request may be larger than other requests."""
    noise = np.random.default_rng(1).integers(0, 255, (700, 700, 3), np.uint8)
    import struct
    import zlib

    rows = b"".join(b"\0" + row.tobytes() for row in noise)
    part = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    png = b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", 700, 700, 8, 2, 0, 0, 0)) + part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b"")
    assert len(png) > 1_000_000
    url = "data:image/png;base64," + base64.b64encode(png).decode()
    said = ai.chat.completions.create(model="m", messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}], max_tokens=2)
    assert said.usage.prompt_tokens > 64


@pytest.mark.skipif(not SPEAKS, reason="the embedded model has no voice")
def test_the_answer_is_heard(ai):
    wanted = {"model": "m", "messages": HELLO, "max_tokens": 12, "seed": 5, "modalities": ["text", "audio"]}
    sound = ai.chat.completions.create(**wanted, audio={"voice": "alloy", "format": "wav"}).choices[0].message
    assert sound.content is None and sound.audio.transcript
    with wave.open(io.BytesIO(base64.b64decode(sound.audio.data))) as f:
        assert (f.getframerate(), f.getnchannels(), f.getsampwidth()) == (24000, 1, 2)
        samples = np.frombuffer(f.readframes(f.getnframes()), "<i2")
    assert len(samples) > 2400 and np.abs(samples).max() > 100
    pcm, words = b"", ""
    for chunk in ai.chat.completions.create(**wanted, audio={"voice": "alloy", "format": "pcm16"}, stream=True):
        if piece := chunk.choices[0].delta.audio:
            pcm += base64.b64decode(piece.data or "")
            words += piece.transcript or ""
    assert words == sound.audio.transcript and len(pcm) % 2 == 0 and len(pcm) > 4800


def test_models(ai):
    (model,) = ai.models.list()
    assert model.id and model.object == "model" and model.created > 0


def strict_format(properties):
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return {"type": "json_schema", "json_schema": {"name": "s", "strict": True, "schema": schema}}


def test_a_strict_schema_is_obeyed(ai):
    given = strict_format({"rooms": {"type": "integer", "minimum": 3, "maximum": 7}, "plate": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"},
                           "fuel": {"anyOf": [{"enum": ["gas", "wood"]}, {"type": "null"}]}, "floors": {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 3}})
    for seed in range(6):
        said = ai.chat.completions.create(model="m", messages=HELLO, max_tokens=200, temperature=2, seed=seed, response_format=given).choices[0].message.content
        value = json.loads(said)
        assert 3 <= value["rooms"] <= 7 and re.fullmatch("[A-Z]{2}-[0-9]{3}", value["plate"]), said
        assert value["fuel"] in ("gas", "wood", None) and len(value["floors"]) in (2, 3), said


def test_what_is_not_there_is_refused(ai):
    for more, word in (
        ({"n": 0}, "n:"),
        ({"n": 9}, "n:"),
        ({"stop": ["1", "2", "3", "4", "5"]}, "stop"),
        ({"stop": ""}, "stop"),
        ({"tools": [{"type": "function", "function": {"name": "two words"}}]}, "tools"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "string"}}}}, "response_format"),
        ({"response_format": strict_format({"tags": {"type": "array", "uniqueItems": True}})}, "response_format.json_schema.schema.properties.tags.uniqueItems"),
        ({"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "mp3"}}, "audio.format"),
        ({"temperature": 3}, "temperature"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.org/a.jpg"}}]}]}, "data URL"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,AAAA"}}]}]}, "content"),
        ({"messages": []}, "messages"),
    ):
        with pytest.raises(openai.BadRequestError) as refusal:
            ai.chat.completions.create(**{"model": "m", "messages": HELLO, "max_tokens": 4} | more)
        assert word in refusal.value.message and refusal.value.type == "invalid_request_error", refusal.value.message
    ai.chat.completions.create(model="m", messages=HELLO, max_tokens=2, tools=[], stop=None, n=1, response_format={"type": "text"})


def test_keys(start_server, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text(f"ann {hashlib.sha256(b'k-right').hexdigest()}\n")
    server = start_server("--set", f"auth.keys_file={keys}")
    with pytest.raises(openai.AuthenticationError) as refusal:
        sdk(server, "k-wrong").chat.completions.create(model="m", messages=HELLO)
    assert refusal.value.code == "invalid_api_key"
    assert sdk(server, "k-right").chat.completions.create(model="m", messages=HELLO, max_tokens=4).usage.total_tokens > 0
    page = http(server, "/health")  # keep the server's own answers as they were
    assert page[0] == 200
    # The tokens of an answer are counted for its key.
    import urllib.request

    request = urllib.request.Request(server.http + "/metrics", headers={"Authorization": "Bearer k-right"})
    counted = lambda: 'parley_key_tokens_total{direction="input",key="ann"}' in urllib.request.urlopen(request, timeout=60).read().decode()
    wait_for(counted)


def test_a_full_house_is_429(start_server):
    server = start_server("--set", "worker.max_sessions=1", "--set", "queue.capacity=0")
    with Client(server, mode="chat") as holder:
        holder.init()
        with pytest.raises(openai.RateLimitError) as refusal:
            sdk(server).chat.completions.create(model="m", messages=HELLO)
        assert refusal.value.code == "worker_busy"
        http(server, "/workers/1/drain", "POST")
        holder.say_goodbye()


def test_one_waits_in_line_like_others(start_server):
    server = start_server("--set", "worker.max_sessions=1")
    with Client(server, mode="chat") as holder:
        holder.init()
        import concurrent.futures

        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            answer = pool.submit(sdk(server).chat.completions.create, model="m", messages=HELLO, max_tokens=4)
            wait_for(lambda: http(server, "/status")[1]["queue"]["length"] == 1)
            holder.say_goodbye()
            assert answer.result(120).choices[0].message.content is not None


def test_who_leaves_frees_the_slot(start_server):
    server = start_server("--set", "worker.max_sessions=1")
    # With this seed the answer has 726 tokens: it is not over before its slot is looked at.
    body = json.dumps({"model": "m", "messages": HELLO, "max_tokens": 4096, "temperature": 1.0, "seed": 9, "stream": True}).encode()
    with socket.create_connection((server.host, server.port), timeout=60) as wire:
        wire.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        first = wire.recv(65536)
        assert first.startswith(b"HTTP/1.1 200 OK\r\n") and b"text/event-stream" in first
        assert not free(server)
    wait_for(lambda: free(server))
    ended = 'parley_sessions_ended_total{mode="chat",reason="client_closed"} 1'
    wait_for(lambda: ended in http(server, "/metrics")[1])


def test_other_methods_and_nonsense(server):
    assert http(server, "/v1/chat/completions")[0] == 405
    status, body = http(server, "/v1/chat/completions", "POST", {"messages": 1})
    assert status == 400 and body["error"]["type"] == "invalid_request_error" and "messages" in body["error"]["message"]
