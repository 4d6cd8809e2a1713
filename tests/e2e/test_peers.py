"""Two gateways that keep copies of each other's conversations: one is killed, or paused and woken; the client goes on at the other."""
import json
import signal
import socket
import subprocess

import pytest
from websockets.exceptions import ConnectionClosed

from conftest import BINARY
from nodes import wait_until
from paced import material
from realtime import SPOKEN, http
from resuming import Resuming
from test_durable import SEEDS, UNITS, come_back, undisturbed
from test_nodes import cluster  # noqa: F401 (a fixture)
from test_resume import answered, assert_same

SILENCE = ("--set", "nodes.silence_seconds=2", "--set", "nodes.rejoin_seconds=0.3")


def free_port() -> int:
    """A port below the range from which the system takes those of outgoing connections."""
    for port in range(21_000, 32_000):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                try:
                    probe.bind(("127.0.0.1", port))
                    return port
                except OSError:
                    continue
    raise AssertionError("no port is free")


def metric(server, name: str) -> float:
    return sum(float(line.split()[-1]) for line in http(server, "/metrics")[1].splitlines() if line.startswith(name + " "))


@pytest.fixture
def pair(cluster, tmp_path):  # noqa: F811
    """Two gateways, each the other's peer, which share a worker."""
    # The second one's port is free for the first one to dial: the first is told of it before it exists.
    port = free_port()
    flags = (*SILENCE, "--set", "limits.backlog_units=60")
    one = cluster.gateway(*flags, "--set", f"journal.dir={tmp_path / 'one'}", "--set", f"nodes.peers=127.0.0.1:{port}")
    # The same list everywhere: a gateway passes over itself.
    two = cluster.gateway(*flags, "--set", f"journal.dir={tmp_path / 'two'}", "--set", f"nodes.peers=127.0.0.1:{port} {one.nodes}", nodes_port=port)
    cluster.worker(f"{one.nodes} {two.nodes}", *SILENCE)
    for each in (one, two):
        each.wait_for_workers(1)
        each.logged("sessions are copied to another gateway")
    return one, two


def talk(client: Resuming, numbers):
    units = material(31, UNITS)
    for number in numbers:
        client.append(units[number])
        while answered(client) <= number:
            client.until("response.output.delta")


def copied(gateway):
    wait_until(lambda: metric(gateway, "parley_journal_copied_sessions") == 1 and metric(gateway, "parley_journal_queue_bytes") == 0, "the copy is complete")


def begun(gateway) -> Resuming:
    client = Resuming(gateway, "audio")
    client.init(config={"seed": SEEDS["audio"], "force_listen_count": 0})
    talk(client, range(5))
    return client


def test_one_is_killed(pair):
    one, two = pair
    calm = undisturbed(two, "audio")
    client = begun(one)
    copied(one)
    one.end(signal.SIGKILL)
    come_back(client, two)
    talk(client, range(5, UNITS))
    assert_same(client, calm)
    assert metric(two, "parley_journal_taken_up_total") == 1
    client.say_goodbye()
    two.wait_until_free()


def test_probe_and_load_go_on_at_the_other(pair, tmp_path):
    one, two = pair
    urls, figures = f"{one.http},{two.http}", tmp_path / "figures.json"
    voice = ("--url", urls, "--wav", str(SPOKEN))
    probe = subprocess.Popen([BINARY, "probe", "audio", *voice, "--listen", "8"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # A probe begins at the first address, people of a load test at any.
    load = subprocess.Popen([BINARY, "load", *voice, "--sessions", "2", "--seconds", "12", "--json", str(figures)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: metric(one, "parley_journal_copied_sessions") + metric(two, "parley_journal_copied_sessions") == 3, "all are under way")
    at_one = int(metric(one, "parley_journal_copied_sessions"))
    one.end(signal.SIGKILL)
    out, err = probe.communicate(timeout=60)
    assert probe.returncode == 0, err
    assert "connection lost" in out and "session.resumed" in out and "0 dropped" not in out, out
    out, err = load.communicate(timeout=60)
    assert load.returncode == 0, err
    told = json.loads(figures.read_text())
    assert told["sessions"]["completed"] == 2 and told["errors"] == {}, told
    assert told["milliseconds"]["return"]["count"] == at_one - 1, (told, at_one)
    two.wait_until_free()


def test_one_is_paused_and_wakes(pair, tmp_path):
    one, two = pair
    calm = undisturbed(two, "audio")
    client = begun(one)
    copied(one)
    old = client.socket
    one.send(signal.SIGSTOP)
    two.logged("the link to gateway .* is lost")
    come_back(client, two)
    talk(client, range(5, 9))
    one.send(signal.SIGCONT)

    last = {}
    with pytest.raises(ConnectionClosed):  # the old connection
        while True:
            last = json.loads(old.recv(timeout=60))
    assert last["type"] == "session.closed" and last["reason"] == "taken_up_elsewhere", last
    one.wait_until_free()

    talk(client, range(9, UNITS))
    assert_same(client, calm)
    client.say_goodbye()
    two.wait_until_free()
    wait_until(lambda: not [*(tmp_path / "one").glob("*.*"), *(tmp_path / "two").glob("*.*")], "nothing of it is left")
