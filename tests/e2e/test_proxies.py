"""Parley behind nginx, HAProxy and Caddy, by the lines of docs/proxies.md. Each is started as the page says, but for ports and paths."""
import asyncio
import hashlib
import http.client
import json
import os
import re
import signal
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from websockets.asyncio.client import connect

from conftest import BINARY, ROOT, Server
from nodes import wait_until
from ports import free_port
from realtime import SPOKEN
from unpacked import ENVIRONMENT, program

PAGE = (ROOT / "docs/proxies.md").read_text()
SECRET = "k-4f1d0c5e9a7b"
WAIT_SECONDS = 30


def block(kind: str) -> str:
    found = re.findall(rf"```{kind}\n(.*?)```", PAGE, re.S)
    assert len(found) == 1, kind
    return found[0]


def replaced(text: str, by: dict[str, str]) -> str:
    for old, new in by.items():
        assert old in text, f"docs/proxies.md no longer has {old!r}"
        text = text.replace(old, new)
    return text


def nginx(folder: Path, port: int, upstream: int) -> list[str]:
    lines = replaced(block("nginx"), {"127.0.0.1:8006": f"127.0.0.1:{upstream}", "listen 443 ssl": f"listen 127.0.0.1:{port} ssl", "/etc/ssl": str(folder),
                                      "/var/log/nginx": str(folder)})
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (folder / "proxy.conf").write_text(f"daemon off;\npid {folder}/pid;\nevents {{}}\nhttp {{\n{temporary}{lines}}}\n")
    return [program("nginx"), "-p", str(folder), "-e", "stderr", "-c", str(folder / "proxy.conf")]


def haproxy(folder: Path, port: int, upstream: int) -> list[str]:
    lines = replaced(block("haproxy"), {"127.0.0.1:8006": f"127.0.0.1:{upstream}", "bind :443": f"bind 127.0.0.1:{port}", "/etc/ssl": str(folder)})
    lines = lines.replace("  mode http\n", "  mode http\n  log global\n")
    (folder / "proxy.conf").write_text(f"global\n  log stdout format raw local0\n\n{lines}")
    return [program("haproxy"), "-db", "-f", str(folder / "proxy.conf")]


def caddy(folder: Path, port: int, upstream: int) -> list[str]:
    lines = replaced(block("caddy"), {"127.0.0.1:8006": f"127.0.0.1:{upstream}", "/var/log/caddy": str(folder),
                                      "voice.example.com {": f"https://127.0.0.1:{port} {{\n\ttls {folder}/voice.pem {folder}/voice.key",
                                      "{\n\tlog {\n\t\tformat": "{\n\tadmin off\n\tauto_https disable_redirects\n\tlog {\n\t\tformat"})
    (folder / "Caddyfile").write_text(lines)
    return [program("caddy"), "run", "--config", str(folder / "Caddyfile")]


class Proxy:
    """One proxy in front of a port of this machine; ready once constructed."""

    def __init__(self, command, folder: Path, upstream: int):
        self.folder, self.port = folder, free_port()
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=voice", "-addext", "subjectAltName=IP:127.0.0.1",
                        "-addext", "basicConstraints=critical,CA:TRUE", "-keyout", folder / "voice.key", "-out", folder / "voice.pem"], check=True, capture_output=True)
        (folder / "voice.both.pem").write_text((folder / "voice.pem").read_text() + (folder / "voice.key").read_text())
        self.ca = str(folder / "voice.pem")
        self.tls = ssl.create_default_context(cafile=self.ca)
        self.url = f"https://127.0.0.1:{self.port}"
        home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
        with open(folder / "output", "w") as output:
            self.process = subprocess.Popen(command(folder, self.port, upstream), stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                            env=os.environ | home | ENVIRONMENT)
        wait_until(self.answers, f"{command.__name__} answers: {(folder / 'output').read_text()}")

    def answers(self) -> bool:
        assert self.process.poll() is None, (self.folder / "output").read_text()
        try:
            return self.ask("/health")[0] == 200
        except OSError:
            return False

    def ask(self, path: str, method: str = "GET", body: bytes | None = None, **headers: str) -> tuple[int, str]:
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.tls, timeout=WAIT_SECONDS)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def logs(self) -> str:
        return "".join((self.folder / name).read_text() for name in ("output", "voice.log", "voice.error.log") if (self.folder / name).exists())

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(WAIT_SECONDS)


KINDS = [nginx, haproxy, caddy]


@pytest.fixture(scope="module")
def parley(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    (folder / "keys").write_text(f"ann {hashlib.sha256(SECRET.encode()).hexdigest()}\n")
    server = Server("--set", f"auth.keys_file={folder / 'keys'}", "--set", "engine.seed=7", "--set", "worker.max_sessions=4", log=folder / "log")
    yield server
    assert server.stop() == 0, server.log.read_text()[-4000:]


@pytest.fixture(scope="module", params=KINDS, ids=[kind.__name__ for kind in KINDS])
def proxy(request, parley, tmp_path_factory):
    started = Proxy(request.param, tmp_path_factory.mktemp(request.param.__name__), parley.port)
    yield started
    started.stop()


def test_people_talk_through_it(proxy):
    talk = subprocess.run([BINARY, "probe", "audio", "--wav", SPOKEN, "--listen", "2", "--fast", "--url", proxy.url, "--ca", proxy.ca, "--key", SECRET],
                          capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    assert talk.returncode == 0, talk
    assert "units               6," in talk.stdout and "session.closed      user_stop" in talk.stdout, talk


def test_the_page_and_refusals_come_as_they_are(proxy):
    status, page = proxy.ask("/")
    assert status == 200 and "<title" in page
    status, refused = proxy.ask("/v1/chat/completions", "POST", b"{}")
    assert status == 401 and "error" in json.loads(refused)


def test_who_comes_through_it_is_not_the_machine_itself(parley, proxy):
    """Asked directly, the server shows its metrics to whoever sits at its machine."""
    direct = http.client.HTTPConnection("127.0.0.1", parley.port, timeout=WAIT_SECONDS)
    direct.request("GET", "/metrics")
    assert direct.getresponse().status == 200
    direct.close()
    assert proxy.ask("/metrics")[0] == 401 and proxy.ask("/metrics", Authorization=f"Bearer {SECRET}")[0] == 200


def test_large_bodies_pass(proxy):
    """Above nginx's own limit of 1 MiB. So much text is refused, but by the server."""
    body = json.dumps({"messages": [{"role": "user", "content": "a " * (1 << 20)}]}).encode()
    status, text = proxy.ask("/v1/chat/completions", "POST", body, Authorization=f"Bearer {SECRET}")
    assert status == 400 and "bytes of text in one append" in text, (status, text[:500])


async def open_and_close(url: str, tls):
    async with connect(url, ssl=tls, max_size=None, open_timeout=WAIT_SECONDS) as socket:

        async def until(wanted: str):
            while json.loads(await asyncio.wait_for(socket.recv(), WAIT_SECONDS))["type"] != wanted:
                pass

        await until("session.queue_done")
        await socket.send(json.dumps({"type": "session.init", "payload": {}}))
        await until("session.created")
        await socket.send(json.dumps({"type": "session.close", "reason": "user_stop"}))
        await until("session.closed")


def test_long_ephemeral_keys_pass_and_no_log_has_a_key(proxy):
    instructions = "Answer briefly. " * 380
    status, made = proxy.ask("/v1/realtime/client_secrets", "POST", json.dumps({"session": {"type": "realtime", "instructions": instructions}}).encode(),
                             **{"Authorization": f"Bearer {SECRET}", "Content-Type": "application/json"})
    assert status == 200, made
    key = json.loads(made)["value"]
    assert len(key) > 8 << 10, "longer than a proxy usually lets a header be"
    address = f"wss://127.0.0.1:{proxy.port}/v1/realtime"

    async def talk():
        async with connect(address + "?model=parley", ssl=proxy.tls, max_size=None, subprotocols=["realtime", f"openai-insecure-api-key.{key}"]) as socket:
            created = json.loads(await asyncio.wait_for(socket.recv(), WAIT_SECONDS))
            assert created["type"] == "session.created" and created["session"]["instructions"] == instructions
        await open_and_close(f"{address}?mode=audio&api_key={SECRET}", proxy.tls)

    asyncio.run(talk())
    wait_until(lambda: proxy.logs().count("/v1/realtime") >= 2, f"the access log: {proxy.logs()}")
    assert SECRET not in proxy.logs() and key[:40] not in proxy.logs()


class Upstream(BaseHTTPRequestHandler):
    """Answers a completion in two pieces: the second one only when the client has the first."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"d\r\ndata: first\n\n\r\n")
        self.wfile.flush()
        self.server.seen.wait(WAIT_SECONDS)
        self.wfile.write(b"e\r\ndata: second\n\n\r\n0\r\n\r\n")

    def log_message(self, *_):
        pass


@pytest.fixture
def upstream():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    server.seen = threading.Event()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.seen.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("kind", KINDS, ids=[kind.__name__ for kind in KINDS])
def test_streams_are_not_collected(kind, upstream, tmp_path):
    started = Proxy(kind, tmp_path, upstream.server_address[1])
    try:
        connection = http.client.HTTPSConnection("127.0.0.1", started.port, context=started.tls, timeout=10)
        connection.request("POST", "/v1/chat/completions", b"{}")
        answer = connection.getresponse()
        assert answer.readline() == b"data: first\n"
        upstream.seen.set()
        assert answer.read() == b"\ndata: second\n\n"
        connection.close()
    finally:
        started.stop()


@pytest.mark.parametrize("kind", KINDS, ids=[kind.__name__ for kind in KINDS])
def test_no_log_has_a_key_when_the_server_is_gone(kind, upstream, tmp_path):
    started = Proxy(kind, tmp_path, upstream.server_address[1])
    try:
        upstream.shutdown()
        upstream.server_close()
        assert started.ask(f"/v1/realtime?api_key={SECRET}")[0] in (502, 503)
    finally:
        started.stop()
    assert SECRET not in started.logs(), started.logs()
