"""Traces as a collector gets them: what it receives is decoded by OpenTelemetry's own messages."""
import asyncio
import base64
import json
import re
import ssl
import subprocess
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from websockets.asyncio.client import connect

from conftest import Server
from nodes import Gateway, wait_until, worker
from realtime import UNIT, Client, say, speech
from talking import RATE, Talk, voice
from test_openai_clients import NANO, nano
from test_operations import metrics

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"
HEADERS = {"traceparent": TRACEPARENT, "tracestate": "vendor=1"}


class Span:
    def __init__(self, span):
        self.trace, self.id, self.parent = span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()
        self.name, self.kind, self.state, self.flags = span.name, span.kind, span.trace_state, span.flags
        self.start, self.end = span.start_time_unix_nano, span.end_time_unix_nano
        self.events = {e.name: e.time_unix_nano for e in span.events}
        self.failed = span.status.code == span.status.STATUS_CODE_ERROR
        self.attributes = {a.key: self.value(a.value) for a in span.attributes}
        assert len(self.attributes) == len(span.attributes), "each key once"
        assert len(span.trace_id) == 16 and len(span.span_id) == 8 and 0 < self.start <= self.end

    @staticmethod
    def value(of):
        kind = of.WhichOneof("value")
        return [v.string_value for v in of.array_value.values] if kind == "array_value" else getattr(of, kind)


class Collector:
    """Keeps what it is sent. `answer`: called instead of saying that all is well."""

    def __init__(self, answer=None, tls=None):
        self.requests, self.paths, self.headers, self.text = [], [], [], ""

        class Handler(BaseHTTPRequestHandler):
            def do_POST(handler):
                body = handler.rfile.read(int(handler.headers["Content-Length"]))
                self.paths.append(handler.path)
                self.headers.append(dict(handler.headers))
                self.text += body.decode()
                self.requests.append(self.decoded(body))
                if answer:
                    return answer(handler)
                handler.send_response(200)
                handler.end_headers()
                handler.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        if tls:
            self.http.socket = tls.wrap_socket(self.http.socket, server_side=True)
        self.endpoint = f"{'https' if tls else 'http'}://{'localhost' if tls else '127.0.0.1'}:{self.http.server_port}/v1/traces"
        self.thread = threading.Thread(target=self.http.serve_forever)
        self.thread.start()

    @staticmethod
    def decoded(body: bytes) -> ExportTraceServiceRequest:
        """OTLP writes ids in hexadecimal, where protobuf's JSON has base64; all else is protobuf's. Unknown fields are errors."""
        hexadecimal = lambda found: f'"{found[1]}":"{base64.b64encode(bytes.fromhex(found[2])).decode()}"'
        return json_format.Parse(re.sub(r'"(traceId|spanId|parentSpanId)":"([0-9a-f]+)"', hexadecimal, body.decode()), ExportTraceServiceRequest())

    def spans(self) -> list[Span]:
        return [Span(s) for r in self.requests for rs in r.resource_spans for ss in rs.scope_spans for s in ss.spans]

    def resource(self) -> dict:
        return {a.key: a.value.string_value for a in self.requests[0].resource_spans[0].resource.attributes}

    def wait_for(self, name: str, trace: str = TRACE) -> list[Span]:
        """All spans of a trace once the one with this name, which ends last, has come."""
        return wait_until(lambda: any(s.name == name for s in self.of(trace)) and self.of(trace), f"the span {name}")

    def of(self, trace: str) -> list[Span]:
        return [s for s in self.spans() if s.trace == trace]

    def close(self):
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


@pytest.fixture
def collect():
    """A factory of collectors."""
    made = []

    def make(*args, **fields):
        made.append(Collector(*args, **fields))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    collector = Collector()
    folder = tmp_path_factory.mktemp("traced")
    (folder / "headers").write_text("X-Tenant: some secret\n")
    server = nano(folder, "--set", f"tracing.endpoint={collector.endpoint}", "--set", "nodes.name=here", "--set", f"tracing.headers_file={folder / 'headers'}", "--set", "log.format=json")
    yield server, collector
    assert server.stop() == 0, server.log.read_text()[-4000:]
    assert "some secret" not in server.log.read_text() and "some secret" not in collector.text
    collector.close()


def start(start_server, *flags: str) -> Server:
    return start_server("--model", str(NANO), "--set", "engine.seed=7", "--set", "worker.max_sessions=2", *flags)


def one(spans: list[Span], name: str) -> Span:
    found = [s for s in spans if s.name == name]
    assert len(found) == 1, [s.name for s in spans]
    return found[0]


def handed_back(header: str, trace: str = TRACE) -> str:
    """The id of the server's span."""
    assert re.fullmatch(f"00-{trace}-[0-9a-f]{{16}}-01", header), header
    return header.split("-")[2]


def test_a_session_in_full_duplex(traced):
    server, collector = traced
    with Client(server, "audio", additional_headers=HEADERS) as client:
        root_id = handed_back(client.socket.response.headers["traceparent"])
        created = client.init(system_prompt="A secret prompt.")
        sound = np.concatenate([say("What is your name?"), np.zeros(6 * UNIT, np.float32)])
        heard = []
        for at in range(0, len(sound) - UNIT, UNIT):
            heard += client.step(sound[at : at + UNIT])
        words = "".join(d.get("text", "") for d in heard)
        assert "Parley" in words
        client.say_goodbye()
    spans = collector.wait_for("session audio")
    root = one(spans, "session audio")
    assert (root.id, root.parent, root.kind, root.state) == (root_id, PARENT, 2, "vendor=1")
    assert root.flags & 0x3FF == 0x301, "sampled; the parent is known to be remote"
    assert root.attributes["gen_ai.conversation.id"] == created["session_id"] and root.attributes["parley.mode"] == "audio"
    assert root.attributes["parley.reason"] == "user_stop" and root.attributes["parley.dialect"] == "current" and not root.failed
    assert root.attributes["parley.units"] == sum("wall_clock_ms" in d.get("metrics", {}) for d in heard)
    assert root.attributes["gen_ai.usage.audio.input_tokens"] > 0
    queue, opening = one(spans, "queue"), one(spans, "open")
    assert root.start <= queue.start <= queue.end <= opening.start < opening.end <= root.end
    turns = [s for s in spans if s.name == "realtime_inference nano"]
    assert turns and {s.parent for s in spans if s is not root} == {root.id}
    first = min(turns, key=lambda s: s.start)
    assert opening.end < first.start < first.events["first_sound"] <= first.end <= root.end
    assert first.kind == 1 and first.attributes["gen_ai.operation.name"] == "realtime_inference"
    assert first.attributes["gen_ai.provider.name"] == "parley" and first.attributes["gen_ai.request.model"] == "nano"
    assert first.attributes["gen_ai.realtime_session.id"] == created["session_id"]
    assert first.attributes["gen_ai.output.type"] == "speech" and first.attributes["gen_ai.response.finish_reasons"] == ["stop"]
    waited = first.attributes["parley.time_to_first_sound"]
    assert abs(waited - (first.events["first_sound"] - first.start) / 1e9) < 1e-6 and 0 < first.attributes["gen_ai.response.time_to_first_chunk"] <= waited
    assert first.attributes["gen_ai.usage.output_tokens"] > 0
    # No words, of nobody.
    assert "secret prompt" not in collector.text and not any(w in collector.text for w in re.findall(r"\w{5,}", words) if w != "Parley")
    assert collector.resource() == {"service.name": "parley", "service.version": http_version(server), "service.instance.id": "here"}
    assert set(collector.paths) == {"/v1/traces"} and collector.headers[0]["X-Tenant"] == "some secret" and collector.headers[0]["Content-Type"] == "application/json"
    lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    assert all(line["trace"] == TRACE for line in lines if line.get("session") == created["session_id"] and "mode" in line)


def http_version(server) -> str:
    with urllib.request.urlopen(server.http + "/health", timeout=60) as answer:
        return json.load(answer)["version"]


def test_a_turn_of_the_realtime_api(traced):
    server, collector = traced
    trace = "0123456789abcdef0123456789abcdef"

    async def talk() -> tuple[str, float, float]:
        headers = {"traceparent": f"00-{trace}-{PARENT}-01"}
        async with connect(server.http.replace("http", "ws", 1) + "/v1/realtime?model=any", max_size=None, additional_headers=headers) as socket:
            person = Talk(socket)
            reader = asyncio.create_task(person.listen())
            await person.send(type="session.update", session={"type": "realtime", "audio": {"input": {"turn_detection": {"type": "server_vad"}}}})
            microphone = asyncio.create_task(person.microphone())
            await person.until("session.updated")
            person.pending = np.concatenate([np.zeros(RATE // 2, np.float32), voice("What is the capital of France?", "en-us")])
            stopped, _ = await person.until("input_audio_buffer.speech_stopped")
            sounded, _ = await person.until("response.output_audio.delta")
            await person.until("response.done")
            microphone.cancel()
            reader.cancel()
            return socket.response.headers["traceparent"], stopped, sounded

    header, stopped, sounded = asyncio.run(talk())
    spans = collector.wait_for("realtime", trace)
    root = one(spans, "realtime")
    assert (root.id, root.parent, root.kind) == (handed_back(header, trace), PARENT, 2)
    assert root.attributes["parley.turns"] == 1 and root.attributes["parley.dialect"] == "realtime"
    turn = one(spans, "turn")
    assert turn.parent == root.id and turn.attributes["parley.answer"] == "sound"
    # It begins when the speech ended, which the client is told half a second of silence later.
    assert abs((turn.end - turn.start) / 1e9 - (sounded - stopped) - 0.5) < 0.3
    session = one(spans, "session chat")
    assert session.parent == root.id and session.kind == 1 and session.attributes["parley.dialect"] == "realtime"
    children = {s.name: s for s in spans if s.parent == session.id}
    assert set(children) == {"queue", "open", "chat nano"}
    chat = children["chat nano"]
    assert turn.start < session.start <= children["open"].end <= chat.start < chat.events["first_sound"] <= turn.end
    assert chat.attributes["gen_ai.operation.name"] == "chat" and chat.attributes["gen_ai.conversation.id"] == session.attributes["gen_ai.conversation.id"]


def ask(server, headers: dict, **fields):
    body = {"model": "any", "messages": [{"role": "user", "content": "What is the weather in Paris?"}], "seed": 3, "max_tokens": 100, **fields}
    request = urllib.request.Request(server.http + "/v1/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer), answer.headers.get("traceparent")


def test_a_completion_that_calls_a_function(traced):
    server, collector = traced
    trace = "1123456789abcdef0123456789abcdef"
    tool = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}
    answer, header = ask(server, {"traceparent": f"00-{trace}-{PARENT}-01"}, tools=[tool], tool_choice="required")
    call = answer["choices"][0]["message"]["tool_calls"][0]
    spans = collector.wait_for("session chat", trace)
    root = one(spans, "session chat")
    assert (root.id, root.parent, root.kind) == (handed_back(header, trace), PARENT, 2)
    assert root.attributes["parley.dialect"] == "completions" and root.attributes["parley.transport"] == "http"
    chat = one(spans, "chat nano")
    assert chat.parent == root.id and chat.attributes["gen_ai.response.finish_reasons"] == ["tool_calls"]
    assert chat.attributes["gen_ai.usage.input_tokens"] == answer["usage"]["prompt_tokens"]
    assert chat.attributes["gen_ai.usage.output_tokens"] == answer["usage"]["completion_tokens"]
    called = one(spans, "tool_call get_weather")
    assert called.parent == chat.id and chat.start <= called.start <= called.end <= chat.end
    assert called.attributes == {"gen_ai.tool.name": "get_weather", "gen_ai.tool.type": "function", "gen_ai.tool.call.id": call["id"]}
    assert "weather in Paris" not in collector.text


def test_whose_trace_it_is(traced):
    """A client's that asks not to be sampled, and those of clients that write nonsense."""
    server, collector = traced
    unsampled = "2123456789abcdef0123456789abcdef"
    _, header = ask(server, {"traceparent": f"00-{unsampled}-{PARENT}-00"})
    assert re.fullmatch(f"00-{unsampled}-[0-9a-f]{{16}}-00", header)
    own = []
    for bad in ({"traceparent": "nonsense"}, {"traceparent": f"{TRACEPARENT},{TRACEPARENT}"}, {"traceparent": TRACEPARENT.upper()}, {"tracestate": "a=1"}):
        _, header = ask(server, bad)
        own.append(header.split("-")[1])
        root = one(collector.wait_for("session chat", own[-1]), "session chat")
        assert root.parent == "" and root.state == "" and root.kind == 2 and root.id == header.split("-")[2]
    assert len({*own, TRACE}) == 5
    long = "3123456789abcdef0123456789abcdef"
    ask(server, {"traceparent": f"00-{long}-{PARENT}-01", "tracestate": ",".join(f"k{i}={'v' * 60}" for i in range(10))})
    assert one(collector.wait_for("session chat", long), "session chat").state == ""
    assert not collector.of(unsampled)


def test_a_session_that_moves(tmp_path, collect):
    collector = collect()
    gateway = Gateway(tmp_path / "gateway.log", "--set", f"tracing.endpoint={collector.endpoint}")
    workers = [worker(tmp_path / f"worker{i}.log", gateway.nodes, "--model", str(NANO), "--set", "worker.max_sessions=1") for i in (1, 2)]
    try:
        gateway.wait_for_workers(2)
        with Client(gateway, "audio", additional_headers=HEADERS) as client:
            client.init()
            client.step(speech(1))
            busy = next(w["id"] for w in gateway.workers() if w["busy"])
            urllib.request.urlopen(urllib.request.Request(f"{gateway.http}/workers/{busy}/drain", method="POST"), timeout=60).close()
            wait_until(lambda: metrics(gateway)["parley_failovers_total"][()] == 1, "the session has moved")
            client.step(speech(1))
            client.say_goodbye()
        spans = collector.wait_for("session audio")
        root, move = one(spans, "session audio"), one(spans, "failover")
        assert move.parent == root.id and root.attributes["parley.moves"] == 1 and not move.failed
        assert move.attributes["parley.worker.lost"] == busy != move.attributes["parley.worker"] == root.attributes["parley.worker"]
        again = [s for s in spans if s.name == "queue" and s.parent == move.id]
        assert len(again) <= 1 and all(move.start <= s.start <= s.end <= move.end for s in again)
    finally:
        for each in workers:
            each.end()
        assert gateway.end() == 0, gateway.log.read_text()[-4000:]


def test_nothing_is_sent_unless_the_operator_says_so(start_server, collect):
    collector = collect()
    for flags in ([], ["--set", f"tracing.endpoint={collector.endpoint}", "--set", "tracing.sample=0"]):
        server = start(start_server, *flags)
        _, header = ask(server, HEADERS if not flags else {})
        assert (header is None) == (not flags)
        assert {k: v for k, v in metrics(server)["parley_trace_spans_total"].items() if v} == {}
        assert server.stop() == 0, server.log.read_text()[-4000:]
    assert collector.requests == []


def never(_):
    time.sleep(30)


def redirected(handler):
    handler.send_response(307)
    handler.send_header("Location", "/elsewhere")
    handler.end_headers()


def broken(handler):
    handler.send_error(500)


def huge(handler):
    handler.send_response(500)
    handler.send_header("Content-Length", str(1 << 40))
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(bytes(1 << 20))
    except OSError:
        pass


@pytest.mark.parametrize("how", ["unreachable", never, redirected, broken, huge], ids=lambda how: how if isinstance(how, str) else how.__name__)
def test_a_collector_that_is_of_no_use_delays_nothing(start_server, collect, how):
    if how == "unreachable":
        collector = collect()
        collector.close()
        collector.close = lambda: None
    else:
        collector = collect(how)
    server = start(start_server, "--set", f"tracing.endpoint={collector.endpoint}", "--set", "limits.drain_seconds=1")
    with Client(server, "audio") as client:
        client.init()
        sound = speech(3)
        for at in range(0, len(sound), UNIT):
            deltas = client.step(sound[at : at + UNIT])
            assert deltas[-1]["metrics"]["wall_clock_ms"] < 1000
        client.say_goodbye()
    if how != never:
        wait_until(lambda: metrics(server)["parley_trace_spans_total"][(("result", "failed"),)] > 0, "spans failed")
        assert metrics(server)["parley_trace_spans_total"][(("result", "sent"),)] == 0
    assert metrics(server)["parley_deadline_misses_total"].get((("worker", "1"),), 0) == 0
    began = time.monotonic()
    assert server.stop() == 0, server.log.read_text()[-4000:]
    assert time.monotonic() - began < 10
    assert "/elsewhere" not in collector.paths


def test_a_collector_is_only_trusted_by_its_certificate(tmp_path, start_server, collect, monkeypatch):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "3", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], cwd=tmp_path, check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    collector = collect(tls=tls)
    for trusted in (False, True):
        if trusted:
            monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
        server = start(start_server, "--set", f"tracing.endpoint={collector.endpoint}")
        ask(server, {})
        result = (("result", "sent" if trusted else "failed"),)
        wait_until(lambda: metrics(server)["parley_trace_spans_total"][result] >= 4, f"spans: {result}")
        assert server.stop() == 0, server.log.read_text()[-4000:]
        assert bool(collector.requests) == trusted


@pytest.mark.parametrize("bad", ["collector:4318", "http://user:secret@host/", "http://"])
def test_an_address_that_is_none_is_refused_at_the_start(tmp_path, bad):
    with pytest.raises(RuntimeError, match="tracing.endpoint"):
        Server("--model", str(NANO), "--set", f"tracing.endpoint={bad}", log=tmp_path / "server.log")
