"""SIGHUP: API keys and certificates are read again while people talk."""
import hashlib
import json
import os
import pty
import re
import signal
import socket
import ssl
import subprocess
import threading

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from conftest import BINARY, TINY
from nodes import Gateway, wait_until, worker
from realtime import UNIT, Client, Closed, http

SILENCE = np.zeros(UNIT, np.float32)


class Keys:
    """A keys file; the key of NAME is `key-of-NAME`, or what follows a colon."""

    def __init__(self, path, *names: str):
        self.path = path
        self.write(*names)

    def write(self, *names: str):
        lines = [f"{name.split(':')[0]} {hashlib.sha256(self.of(name).encode()).hexdigest()}\n" for name in names]
        new = self.path.with_suffix(".new")
        new.write_text("".join(lines))
        os.replace(new, self.path)

    @staticmethod
    def of(name: str) -> str:
        return name.split(":")[1] if ":" in name else f"key-of-{name}"


@pytest.fixture
def keys(tmp_path):
    return Keys(tmp_path / "keys.txt", "ann", "bob", "carl")


def logged(server, pattern: str):
    return wait_until(lambda: re.search(pattern, server.log.read_text()), f"{pattern!r} in the log: {server.log.read_text()[-3000:]}")


def hang_up(server, pattern: str):
    server.process.send_signal(signal.SIGHUP)
    return logged(server, pattern)


def as_(name: str) -> dict:
    return {"additional_headers": {"Authorization": f"Bearer {Keys.of(name)}"}}


def test_keys_are_read_again(start_server, keys):
    server = start_server("--set", f"auth.keys_file={keys.path}", "--set", "worker.max_sessions=4")
    with Client(server, **as_("ann")) as ann, Client(server, **as_("bob")) as bob, Client(server, "chat", **as_("ann")) as resumable:
        ann.init()
        bob.init()
        resumable.init(resume=True)
        keys.write("bob", "carl", "dora")
        hang_up(server, r"keys: 3 \(1 new, 1 gone\)")
        assert ann.until("session.closed")["reason"] == "key_removed"
        assert resumable.until("session.closed")["reason"] == "key_removed"
        bob.step(SILENCE)
        with pytest.raises(InvalidStatus) as refused:
            Client(server, **as_("ann"))
        assert refused.value.response.status_code == 401
        with Client(server, **as_("dora")) as dora:
            dora.init()
            dora.say_goodbye()
        bob.say_goodbye()
    assert "key-of" not in server.log.read_text()


def test_another_key_of_the_same_name_ends_what_the_old_one_began(start_server, keys):
    server = start_server("--set", f"auth.keys_file={keys.path}")
    with Client(server, **as_("ann")) as ann:
        ann.init()
        keys.write("ann:another", "bob", "carl")
        hang_up(server, r"keys: 3 \(1 new, 1 gone\)")
        assert ann.until("session.closed")["reason"] == "key_removed"


def test_files_that_change_are_read_without_a_signal(start_server, keys):
    server = start_server("--set", f"auth.keys_file={keys.path}", "--set", "auth.reload_seconds=0.2")
    with Client(server, **as_("ann")) as ann:
        ann.init()
        keys.write("bob")
        assert ann.until("session.closed")["reason"] == "key_removed"
    logged(server, r"keys: 1 \(0 new, 2 gone\)")
    keys.path.write_text("nonsense\n")
    logged(server, r"keys and certificates stay as they were")
    with Client(server, **as_("bob")) as bob:
        bob.init()
        bob.say_goodbye()
    assert server.log.read_text().count("keys: ") == 1


@pytest.mark.parametrize("broken", ["ann not-a-hash\n", None])
def test_a_broken_file_changes_nothing(start_server, keys, broken):
    server = start_server("--set", f"auth.keys_file={keys.path}")
    with Client(server, **as_("ann")) as ann:
        ann.init()
        keys.path.unlink()
        if broken is not None:
            keys.path.write_text(broken)
        hang_up(server, r"keys and certificates stay as they were: .*keys\.txt")
        ann.step(SILENCE)
        with Client(server, **as_("bob")) as bob:
            bob.init()
            bob.say_goodbye()
        ann.say_goodbye()


def test_connections_of_other_dialects_end_too(start_server, keys):
    server = start_server("--set", f"auth.keys_file={keys.path}")
    with connect(server.realtime + "?model=parley", max_size=None, **as_("ann")) as socket_, connect(server.realtime + "?model=parley", max_size=None, **as_("bob")) as other:
        assert json.loads(socket_.recv(timeout=60))["type"] == json.loads(other.recv(timeout=60))["type"] == "session.created"
        keys.write("bob")
        hang_up(server, r"keys: 1 \(0 new, 2 gone\)")
        with pytest.raises(ConnectionClosed) as ended:
            while True:
                socket_.recv(timeout=60)
        assert ended.value.rcvd.code == 1008 and ended.value.rcvd.reason == "key_removed"
        other.send(json.dumps({"type": "session.update", "session": {"type": "realtime", "instructions": "hi"}}))
        assert json.loads(other.recv(timeout=60))["type"] == "session.updated"


def test_keys_rotate_under_load(start_server, tmp_path):
    """Twenty times the two keys of a service change places; whoever uses the one that stays notices nothing, and none that was removed goes on."""
    keys = Keys(tmp_path / "keys.txt", "stays", "first")
    server = start_server("--set", f"auth.keys_file={keys.path}", "--set", "worker.max_sessions=8", "--set", "log.actors_level=warn")
    with Client(server, **as_("stays")) as steady:
        steady.init()
        for turn in range(20):
            old, new = ("first", "second") if turn % 2 == 0 else ("second", "first")
            clients, stop = [], threading.Event()

            def come():
                while not stop.is_set():
                    try:
                        clients.append(Client(server, "chat", **as_(old)))
                    except InvalidStatus:
                        return

            crowd = [threading.Thread(target=come) for _ in range(3)]
            for each in crowd:
                each.start()
            wait_until(lambda: len(clients) >= 5, "a crowd")
            keys.write("stays", new)
            server.process.send_signal(signal.SIGHUP)
            for each in crowd:
                each.join(60)
            stop.set()
            for client in clients:
                with pytest.raises(Closed):  # admitted just before or just after: all end
                    while True:
                        client.receive()
            steady.step(SILENCE)
        steady.say_goodbye()


def certificate(folder, name: str, *more: str):
    """A self-signed certificate for localhost, or one of `ca`."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", folder / "key.new", "-out", folder / "cert.new", *more], check=True, capture_output=True)
    os.replace(folder / "key.new", folder / "key.pem")
    os.replace(folder / "cert.new", folder / "cert.pem")


def name_at(server) -> str:
    """Whose certificate a new connection gets."""
    with socket.create_connection((server.host, server.port), timeout=60) as plain:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with context.wrap_socket(plain) as secured:
            shown = subprocess.run(["openssl", "x509", "-inform", "der", "-noout", "-subject"], input=secured.getpeercert(True), capture_output=True, check=True)
            return shown.stdout.decode().rpartition("= ")[2].strip()


def test_certificates_are_read_again(start_server, tmp_path):
    certificate(tmp_path, "old")
    server = start_server("--tls", "file", "--set", f"tls.cert={tmp_path / 'cert.pem'}", "--set", f"tls.key={tmp_path / 'key.pem'}")
    assert name_at(server) == "old"
    context = ssl.create_default_context(cafile=tmp_path / "cert.pem")
    with socket.create_connection((server.host, server.port), timeout=60) as plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as begun:
        certificate(tmp_path, "new")
        hang_up(server, "the certificate was read again")
        assert name_at(server) == "new"
        begun.sendall(b"GET /health HTTP/1.0\r\n\r\n")
        assert begun.recv(100).startswith(b"HTTP/1.1 200")
    (tmp_path / "key.pem").write_text("no key")
    hang_up(server, r"keys and certificates stay as they were: tls\.key")
    assert name_at(server) == "new"


def authority(folder, name: str):
    """A new authority of nodes, and a node's certificate of it, in files of fixed names."""
    subprocess.run(f"""openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={name} -keyout ca.key -out ca.pem &&
        openssl req -newkey rsa:2048 -nodes -subj /CN=node -keyout node.key -out node.csr &&
        openssl x509 -req -in node.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out node.pem""", shell=True, check=True, capture_output=True, cwd=folder)


def certified(folder) -> list[str]:
    return [word for key, file in (("cert", "node.pem"), ("key", "node.key"), ("ca", "ca.pem")) for word in ("--set", f"nodes.{key}={folder / file}")]


def test_certificates_of_nodes_are_read_again(tmp_path):
    """Gateway and worker keep their link; a worker that comes later needs a certificate of the new authority. A worker reads its own again as well."""
    authority(tmp_path, "old")
    gateway = Gateway(tmp_path / "gateway.log", *certified(tmp_path))
    first = worker(tmp_path / "first.log", gateway.nodes, *certified(tmp_path), "--set", "worker.max_sessions=1")
    started = [gateway, first]
    try:
        gateway.wait_for_workers(1)
        old = tmp_path / "old"
        old.mkdir()
        for file in ("node.pem", "node.key", "ca.pem"):
            (old / file).write_bytes((tmp_path / file).read_bytes())
        authority(tmp_path, "new")
        gateway.send(signal.SIGHUP)
        gateway.logged("the certificates of nodes were read again")
        late = worker(tmp_path / "late.log", gateway.nodes, *certified(old), "--set", "worker.max_sessions=1")
        started.append(late)
        gateway.logged("a node from 127.0.0.1 is refused")
        late.send(signal.SIGHUP)  # nothing to read but the old ones
        second = worker(tmp_path / "second.log", gateway.nodes, *certified(tmp_path), "--set", "worker.max_sessions=1")
        started.append(second)
        gateway.wait_for_workers(2)
        first.send(signal.SIGHUP)
        first.logged("the certificates of nodes were read again")
        assert first.process.poll() is None
    finally:
        for each in reversed(started):
            each.end()


def test_a_worker_survives_the_signal(tmp_path):
    gateway = Gateway(tmp_path / "gateway.log")
    only = worker(tmp_path / "worker.log", gateway.nodes, "--set", "worker.max_sessions=1")
    try:
        before = gateway.wait_for_workers(1)
        only.send(signal.SIGHUP)
        gateway.send(signal.SIGHUP)
        only.send(signal.SIGHUP)
        assert http(gateway, "/health")[0] == 200 and gateway.workers() == before
    finally:
        assert only.end() == 0 and gateway.end() == 0


def test_a_closed_terminal_ends_it(tmp_path):
    """It drains, as after SIGTERM, and says why."""
    child, terminal = pty.fork()
    if child == 0:
        log = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(log, 2)
        os.execv(BINARY, [str(BINARY), "serve", "--port", "0", "--model", str(TINY)])
    said = b""
    while b"ready http" not in said:
        said += os.read(terminal, 1000)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert "the terminal was closed" in (tmp_path / "log").read_text()
