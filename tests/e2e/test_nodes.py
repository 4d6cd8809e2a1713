"""A gateway and workers as separate processes: joining, being refused, and conversations across them."""
import os
import re
import resource
import signal
import socket
import subprocess
import threading
import time

import numpy as np
import pytest

from conftest import BINARY, ROOT
from nodes import Gateway, wait_until, worker
from realtime import UNIT, Client, b64, floats, http, speech

SMALL = ("--set", "worker.max_sessions=4", "--set", "engine.seed=7")


@pytest.fixture
def cluster(tmp_path):
    """Starts gateways and workers. At the end all are stopped, and those still running must exit cleanly."""
    started = []

    class Cluster:
        @staticmethod
        def gateway(*flags, **more):
            started.append(Gateway(tmp_path / f"gateway{len(started)}.log", *flags, **more))
            return started[-1]

        @staticmethod
        def worker(gateway, *flags):
            address = gateway if isinstance(gateway, str) else gateway.nodes
            started.append(worker(tmp_path / f"worker{len(started)}.log", address, *SMALL, *flags))
            return started[-1]

        @staticmethod
        def logs():
            return [one.log for one in started]

    yield Cluster
    for one in reversed(started):
        if one.process.poll() is None:
            assert one.end() == 0, one.log.read_text()[-3000:]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Flags for a gateway or a worker, with node certificates of two authorities, `ours` and `other`."""
    folder = tmp_path_factory.mktemp("certificates")

    def openssl(*command):
        subprocess.run(["openssl", *command], cwd=folder, check=True, capture_output=True)

    flags = {}
    for name in ("ours", "other"):
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "3", "-subj", f"/CN={name}")
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}_node.key", "-out", f"{name}_node.csr", "-subj", "/CN=node")
        openssl("x509", "-req", "-in", f"{name}_node.csr", "-CA", f"{name}.pem", "-CAkey", f"{name}.key", "-CAcreateserial", "-out", f"{name}_node.pem", "-days", "3")
        flags[name] = ("--set", f"nodes.cert={folder}/{name}_node.pem", "--set", f"nodes.key={folder}/{name}_node.key", "--set", f"nodes.ca={folder}/{name}.pem")
    flags["unknown"] = (*flags["other"][:4], *flags["ours"][4:])
    return flags


def transcript(server) -> tuple[list, np.ndarray]:
    """A short conversation: returns what was decided and said, and the sound."""
    with Client(server) as client:
        client.init(config={"seed": 3, "force_listen_count": 0})
        deltas = [d for unit in np.split(speech(4), 4) for d in client.step(unit)]
        client.say_goodbye()
    words = [(d["kind"], d.get("text")) for d in deltas]
    return words, np.concatenate([floats(d["audio"]) for d in deltas if d["kind"] == "audio"])


def test_same_words_as_in_one_process(cluster, server):
    gateway = cluster.gateway()
    cluster.worker(gateway)
    gateway.wait_for_workers(1)
    here, there = transcript(server), transcript(gateway)
    assert there[0] == here[0]
    assert np.max(np.abs(there[1] - here[1])) <= 1e-3
    with Client(gateway, "chat") as client:
        client.init()
        deltas, done = client.ask("Hello")
        assert "".join(d["text"] for d in deltas) == done["text"]
        client.say_goodbye()
    gateway.wait_until_free()


def test_two_workers_share_the_sessions(cluster):
    gateway = cluster.gateway()
    for name in ("one", "two"):
        cluster.worker(gateway, "--set", f"nodes.name={name}", "--set", "worker.max_sessions=1")
    gateway.wait_for_workers(2)
    with Client(gateway) as first, Client(gateway) as second:
        first.init()
        second.init()
        assert {w["node"]: w["busy"] for w in gateway.workers()} == {"one": 1, "two": 1}
        with Client(gateway) as third:
            assert third.receive()["type"] == "session.queued"
            first.say_goodbye()
            third.init()
            third.step(np.zeros(UNIT, np.float32))


def test_the_gateway_tells_of_its_workers(cluster):
    """The gateway's metrics include what a worker counts."""
    gateway = cluster.gateway()
    assert http(gateway, "/health")[0] == 200 and http(gateway, "/ready")[0] == 503, "it lives, and has nobody yet"
    assert http(gateway, "/v1/models")[1]["data"] == []
    cluster.worker(gateway)
    gateway.wait_for_workers(1)
    assert [model["id"] for model in http(gateway, "/v1/models")[1]["data"]] == [http(gateway, "/ready")[1]["model"]] == ["tiny-omni"]

    def figure(name: str, **labels) -> float:
        label = ",".join(f'{k}="{v}"' for k, v in sorted(labels.items()))
        found = re.search(rf"^{name}{{{label}}} (\S+)$", http(gateway, "/metrics")[1], re.M)
        return float(found[1]) if found else 0

    with Client(gateway) as first, Client(gateway) as second:
        for client in (first, second):
            client.init()
            client.step(speech(1))
        wait_until(lambda: figure("parley_prompt_cache_total", result="hit", worker=1) == 1, "the second shares the first's prompt")
        assert figure("parley_prompt_cache_total", result="miss", worker=1) == 1
        assert figure("parley_kv_pages", state="used", worker=1) > 0
        assert figure("parley_worker_slots", state="busy", worker=1) == 2
        assert figure("parley_worker_busy_seconds_total", worker=1) > 0
        first.say_goodbye()
        second.say_goodbye()
    gateway.wait_until_free()


def test_two_gateways_share_a_worker(cluster):
    """When one gateway fills the worker, the other cannot use it, and learns when it can."""
    one, other = cluster.gateway(), cluster.gateway()
    cluster.worker(f"{one.nodes} {other.nodes}", "--set", "worker.max_sessions=1")
    for gateway in (one, other):
        gateway.wait_for_workers(1)
    with Client(one) as first:
        first.init()
        wait_until(lambda: other.workers()[0]["slots"] == 0, "the other gateway knows")
        with Client(other) as second:
            assert second.receive()["type"] == "session.queued"
            first.say_goodbye()
            second.init()
            second.step(np.zeros(UNIT, np.float32))
            wait_until(lambda: one.workers()[0]["slots"] == 0, "the first gateway knows")


def test_tls_with_certificates_of_both_sides(cluster, certificates):
    gateway = cluster.gateway(*certificates["ours"])
    cluster.worker(gateway, *certificates["ours"])
    gateway.wait_for_workers(1)
    # Neither a connection that is not from a node nor a silent one gets in anybody's way.
    host, port = gateway.nodes.rsplit(":", 1)
    silent = socket.create_connection((host, int(port)))
    with socket.create_connection((host, int(port))) as stray:
        stray.sendall(b"GET / HTTP/1.1\r\n\r\n")
    refused = {
        (): ("speaks TLS", "plain text"),
        certificates["other"]: ("certificate verify failed", "unknown ca"),
        certificates["unknown"]: ("unknown ca", "certificate verify failed"),
    }
    for flags, (its_words, our_words) in refused.items():
        stranger = cluster.worker(gateway, *flags)
        assert stranger.end(None) == 1
        assert re.search("cannot join: .*" + its_words, stranger.log.read_text())
        gateway.logged("is refused: .*" + our_words)
    with Client(gateway) as client:
        client.init()
        client.step(np.zeros(UNIT, np.float32))
        client.say_goodbye()
    silent.close()


class SlowWire:
    """A relay between a worker and its gateway with limited bandwidth towards the worker only."""

    def __init__(self, nodes: str, bytes_a_second: float):
        host, port = nodes.rsplit(":", 1)
        self._gateway, self._rate = (host, int(port)), bytes_a_second
        self._door = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._door.getsockname()[1]}"
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._door.close()

    def _accept(self):
        while True:
            try:
                worker, _ = self._door.accept()
            except OSError:
                return
            self.connections += 1
            gateway = socket.create_connection(self._gateway)
            threading.Thread(target=self._carry, args=(worker, gateway, None), daemon=True).start()
            threading.Thread(target=self._carry, args=(gateway, worker, self._rate), daemon=True).start()

    @staticmethod
    def _carry(source, sink, rate):
        sink.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32768)
        try:
            while data := source.recv(16384):
                sink.sendall(data)
                if rate:
                    time.sleep(len(data) / rate)
        except OSError:
            pass
        for each in (source, sink):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def test_a_large_message_over_a_slow_wire_is_a_sign_of_life(cluster):
    """A message takes much longer than a peer may stay silent, and the link stays up."""
    gateway = cluster.gateway("--set", "nodes.silence_seconds=1")
    wire = SlowWire(gateway.nodes, 400_000)
    cluster.worker(wire.address, "--set", "nodes.silence_seconds=1", "--set", "nodes.rejoin_seconds=0.5")
    gateway.wait_for_workers(1)
    with Client(gateway, "chat") as client:
        client.init()
        # The first sound has 16-bit samples: 60 s are 1.9 MB on the wire, against 3.8 MB as floats. The second has one
        # sample that forces floats.
        for sound in (speech(60), np.append(speech(30), np.float32(0.1))):
            client.send({"type": "input.append", "input": {"messages": [{"role": "user", "content": [{"type": "audio", "data": b64(sound)}]}], "generation": {"max_new_tokens": 4}}})
            assert client.until_done()["type"] == "response.done"
        client.say_goodbye()
    assert wire.connections == 1 and len(gateway.workers()) == 1
    assert "is cut" not in gateway.log.read_text()
    wire.close()


def test_silent_connections_keep_no_worker_out(cluster):
    gateway = cluster.gateway()
    host, port = gateway.nodes.rsplit(":", 1)
    silent = [socket.create_connection((host, int(port))) for _ in range(80)]
    cluster.worker(gateway)
    gateway.wait_for_workers(1)
    gateway.logged("silent connections to the node port; dropped the oldest")
    for each in silent:
        each.close()


def test_a_node_that_joins_while_descriptors_are_short(cluster, certificates):
    """The gateway turns the node away but survives, and accepts it once there are descriptors again."""
    gateway = cluster.gateway(*certificates["ours"])
    folder = f"/proc/{gateway.process.pid}/fd"
    resource.prlimit(gateway.process.pid, resource.RLIMIT_NOFILE, (64, 64))
    host, port = gateway.http.removeprefix("http://").rsplit(":", 1)
    clients = []
    for left in (3, 2, 1, 0):
        while len(os.listdir(folder)) < 64 - left:
            clients.append(socket.create_connection((host, int(port))))
            clients[-1].sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            clients[-1].recv(1)  # the connection is accepted, or turned away
        visitor = cluster.worker(gateway, *certificates["ours"])
        wait_until(lambda: "trying again" in visitor.log.read_text() or "joined as" in visitor.log.read_text(), "it tried")
        assert gateway.process.poll() is None, gateway.log.read_text()[-3000:]
        visitor.end(signal.SIGKILL)
    for each in clients:
        each.close()
    cluster.worker(gateway, *certificates["ours"])
    gateway.wait_for_workers(1)


def test_a_worker_with_another_model_is_refused(cluster, tmp_path):
    gateway = cluster.gateway()
    cluster.worker(gateway)
    gateway.wait_for_workers(1)
    model = tmp_path / "other"
    subprocess.run([BINARY, "init-model", "--preset", "tiny", "--seed", "5", "--out", model], check=True, capture_output=True)
    stranger = cluster.worker(gateway, "--model", str(model))
    assert stranger.end(None) == 1
    assert "another model" in stranger.log.read_text()
    gateway.logged("refused: it serves another model")
    assert len(gateway.workers()) == 1


def test_a_port_that_is_not_parleys(cluster):
    gateway = cluster.gateway()
    address = gateway.http.removeprefix("http://")
    stranger = cluster.worker(address)
    assert stranger.end(None) == 1
    assert "a web server answers there" in stranger.log.read_text()


@pytest.mark.parametrize(
    "flags,words",
    [
        (("gateway", "--nodes-host", "0.0.0.0", "--nodes-port", "0", "--port", "0"), "nodes.cert"),
        (("gateway", "--set", "nodes.cert=a.pem"), "belong together"),
        (("worker",), "--join"),
        (("worker", "--join", "nowhere"), "HOST:PORT"),
    ],
)
def test_wrong_usage(flags, words):
    done = subprocess.run([BINARY, *flags], capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.returncode == 2 and words in done.stderr and done.stdout == "", done
