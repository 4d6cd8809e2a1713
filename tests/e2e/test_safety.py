"""Keys, certificates, origins and crowds, against the real server."""
import asyncio
import hashlib
import json
import ssl
import subprocess
import urllib.error
import urllib.request

import numpy as np
import pytest
from websockets.asyncio.client import connect as connect_async
from websockets.exceptions import InvalidStatus

from conftest import BINARY
from realtime import UNIT, Client, b64, http

SECRET = "k-4f1d0c5e9a7b"  # ann's key
ADMIN = "k-9c2e77aa01d3"
SILENCE = np.zeros(UNIT, np.float32)


@pytest.fixture
def keys_file(tmp_path):
    lines = [f"ann {hashlib.sha256(SECRET.encode()).hexdigest()}", f"bob {hashlib.sha256(ADMIN.encode()).hexdigest()} admin"]
    path = tmp_path / "keys"
    path.write_text("# API keys\n" + "\n".join(lines) + "\n")
    return path


def probe(server, *flags: str) -> subprocess.CompletedProcess:
    command = [BINARY, "probe", "chat", "hi", "--url", server.http, "--max-new-tokens", "2", *flags]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)


def status_of(server, path: str, method: str = "GET", key: str | None = None) -> int:
    request = urllib.request.Request(server.http + path, method=method, headers={"Authorization": f"Bearer {key}"} if key else {})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status
    except urllib.error.HTTPError as refusal:
        return refusal.code


def test_keys_in_three_places(start_server, keys_file):
    server = start_server("--set", f"auth.keys_file={keys_file}", "--set", "log.level=debug")
    ways = (
        {"additional_headers": {"Authorization": f"Bearer {SECRET}"}},
        {"subprotocols": ["realtime", f"map-api-key.{SECRET}"]},
        {"subprotocols": ["realtime", f"openai-insecure-api-key.{SECRET}"]},
        {"query": f"&api_key={SECRET}"},
    )
    for way in ways:
        with Client(server, **way) as client:
            client.init()
            client.step(SILENCE)
            client.say_goodbye()
    for way in ({}, {"query": "&api_key=wrong"}, {"additional_headers": {"Authorization": "Bearer wrong"}}, {"subprotocols": ["map-api-key.wrong"]}):
        with pytest.raises(InvalidStatus) as refusal:
            Client(server, **way)
        assert refusal.value.response.status_code == 401
    assert probe(server, "--key", SECRET).returncode == 0
    refused = probe(server, "--key", "wrong")
    assert refused.returncode == 1 and "401" in refused.stderr
    log = server.log.read_text()
    assert "ann" in log and SECRET not in log and "wrong" not in log, "names are logged, keys are not"


def test_a_session_is_its_own_keys(start_server, keys_file):
    server = start_server("--set", f"auth.keys_file={keys_file}")
    with Client(server, query=f"&api_key={SECRET}") as client:
        path = f"/sessions/{client.init()['session_id']}/close"
        assert status_of(server, path, "POST") == 401
        assert status_of(server, "/sessions", key=SECRET) == 200
        assert status_of(server, "/workers/1/drain", "POST", SECRET) == 403
        assert status_of(server, path, "POST", SECRET) == 200
        client.until("session.closed")
        assert status_of(server, path, "POST", SECRET) == 200, "closing a closed one is fine"
        assert status_of(server, path, "POST", ADMIN) == 200
    assert status_of(server, "/health") == 200
    assert http(server, "/ready") == (200, {"status": "ready", "recording": False, "key_required": True, "name_allowed": True, "model": "tiny-omni"})


def test_a_broken_keys_file_is_told(tmp_path):
    path = tmp_path / "keys"
    path.write_text("ann not-a-hash\n")
    result = subprocess.run([BINARY, "serve", "--port", "0", "--set", f"auth.keys_file={path}"], capture_output=True, text=True, timeout=60)
    assert result.returncode == 2 and f"{path}:1" in result.stderr and len(result.stderr.strip().splitlines()) == 1


def test_tls_with_a_certificate_of_its_own_making(start_server, tmp_path):
    cert, key = tmp_path / "state/tls.pem", tmp_path / "state/tls.key"
    flags = ("--tls", "auto", "--set", f"tls.cert={cert}", "--set", f"tls.key={key}")
    server = start_server(*flags)
    assert server.http.startswith("https://")
    trusting = ssl.create_default_context(cafile=cert)

    async def talk():
        # All in one thread: in Python 3.11 two threads cannot safely use one TLS connection, as the synchronous client
        # does.
        async with connect_async(server.realtime + "?mode=audio", ssl=trusting, open_timeout=60, max_size=None) as socket:
            assert json.loads(await socket.recv())["type"] == "session.queue_done"
            await socket.send('{"type":"session.init","payload":{}}')
            assert json.loads(await socket.recv())["type"] == "session.created"
            await socket.send(json.dumps({"type": "input.append", "input": {"audio": b64(SILENCE)}}))
            assert json.loads(await socket.recv())["kind"] == "listen"

    asyncio.run(asyncio.wait_for(talk(), 120))
    with urllib.request.urlopen(server.http + "/ready", timeout=60, context=trusting) as answer:
        assert answer.status == 200
    assert probe(server, "--ca", str(cert)).returncode == 0
    stranger = probe(server)
    assert stranger.returncode == 1 and "certificate" in stranger.stderr
    server.stop()
    before = cert.read_bytes()
    start_server(*flags)
    assert cert.read_bytes() == before, "it is made once"


CA = """
[ca]
default_ca = own
[own]
database = index
serial = serial
new_certs_dir = .
default_md = sha256
policy = any
x509_extensions = names
[any]
commonName = supplied
[names]
subjectAltName = IP:127.0.0.1,DNS:localhost
"""


def test_the_probe_refuses_an_expired_certificate(start_server, tmp_path):
    (tmp_path / "ca.conf").write_text(CA)
    (tmp_path / "index").touch()
    (tmp_path / "serial").write_text("01\n")
    for command in (
        "openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=expired -keyout old.key -out old.csr",
        "openssl ca -config ca.conf -batch -selfsign -keyfile old.key -in old.csr -startdate 20200101000000Z -enddate 20210101000000Z -out old.pem -notext",
    ):
        subprocess.run(command.split(), cwd=tmp_path, check=True, capture_output=True)
    cert, key = tmp_path / "old.pem", tmp_path / "old.key"
    server = start_server("--tls", "file", "--set", f"tls.cert={cert}", "--set", f"tls.key={key}")
    refused = probe(server, "--ca", str(cert))
    assert refused.returncode == 1 and "expired" in refused.stderr, refused.stderr


def test_tls_without_files_is_wrong_usage():
    result = subprocess.run([BINARY, "serve", "--port", "0", "--tls", "file"], capture_output=True, text=True, timeout=60)
    assert result.returncode == 2 and "tls.cert" in result.stderr
    result = subprocess.run([BINARY, "serve", "--port", "0", "--tls", "on"], capture_output=True, text=True, timeout=60)
    assert result.returncode == 2 and "--tls" in result.stderr


def test_pages_of_other_origins_stay_out(server):
    for origin in ("https://evil.example", "null"):
        with pytest.raises(InvalidStatus) as refusal:
            Client(server, origin=origin)
        assert refusal.value.response.status_code == 403
    with Client(server, origin="http://localhost:3000") as client:
        client.until("session.queue_done", "session.queued")


def test_fifty_connections_with_a_limit_of_ten(start_server):
    server = start_server("--set", "limits.sessions_per_address=10")
    clients, refused = [], 0
    for _ in range(50):
        try:
            clients.append(Client(server))
        except InvalidStatus as refusal:
            assert refusal.response.status_code == 429
            refused += 1
    assert (len(clients), refused) == (10, 40)
    for client in clients:
        client.say_goodbye()


def test_the_1001st_place_in_line(start_server):
    """The queue holds a thousand clients. The next one is refused, and the queue moves on."""
    server = start_server("--set", "worker.max_sessions=1")

    async def crowd():
        url = server.realtime + "?mode=audio"
        holder = await connect_async(url, open_timeout=60)
        assert json.loads(await holder.recv())["type"] == "session.queue_done"
        waiting = []
        for place in range(1, 1001):
            waiting.append(await connect_async(url, open_timeout=60, max_queue=None, ping_interval=None))
            event = json.loads(await waiting[-1].recv())
            assert event["type"] == "session.queued" and event["position"] == place
        late = await connect_async(url, open_timeout=60)
        event = json.loads(await late.recv())
        assert event["type"] == "error" and event["error"]["code"] == "queue_full"
        await late.wait_closed()
        assert late.close_code == 1013
        await holder.close()
        while json.loads(await waiting[0].recv())["type"] != "session.queue_done":
            pass
        for client in waiting:
            client.transport.abort()

    asyncio.run(asyncio.wait_for(crowd(), 240))
