"""The process that holds a conversation is killed or updated; another one with the same journal.dir goes on with it, in the same words."""
import random
import signal
import time

import pytest

from nodes import wait_until
from paced import material
from realtime import Client, Closed, http
from resuming import Resuming
from test_nodes import cluster  # noqa: F401 (a fixture)
from test_resume import answered, assert_same, story_begun, told
from test_video import FRAME

UNITS = 14
# Rebuilding moves the margins of draws by up to 5e-7 (draws.py); in these conversations none is below 2e-6.
SEEDS = {"audio": 31, "video": 131}
FLAGS = ("--set", "engine.seed=7", "--set", "worker.max_sessions=4", "--set", "limits.backlog_units=60")
ASKED = dict(generation={"max_new_tokens": 120, "seed": 5})


def append(client: Resuming, unit, number: int, frames: bool):
    client.append(unit, **({"video_frames": [FRAME]} if frames and number % 3 == 0 else {}))


def undisturbed(server, mode: str) -> Client:
    client = Client(server, mode)
    client.init(config={"seed": SEEDS[mode], "force_listen_count": 0})
    for number, unit in enumerate(material(31, UNITS)):
        append(client, unit, number, mode == "video")
        while answered(client) <= number:
            client.until("response.output.delta")
    client.say_goodbye()
    return client


def come_back(client: Resuming, server) -> dict:
    """As the documentation asks: again and again until the server takes it."""
    client.use(server)
    return wait_until(lambda: client.try_to_come_back(), "the session goes on")


@pytest.mark.parametrize("mode", ["audio", "video"])
def test_killed_again_and_again(start_server, tmp_path, mode):
    flags = (*FLAGS, "--set", f"journal.dir={tmp_path / 'journal'}")
    server = start_server(*flags)
    calm = undisturbed(server, mode)
    chance = random.Random(4)
    client = Resuming(server, mode)
    client.init(config={"seed": SEEDS[mode], "force_listen_count": 0})
    killed = 0
    for number, unit in enumerate(material(31, UNITS)):
        append(client, unit, number, mode == "video")
        if number in (0, 5, 6, 11):  # before, during or after the answer
            time.sleep(chance.random() * 0.2)
            assert server.stop(signal.SIGKILL) == -signal.SIGKILL
            server = start_server(*flags)
            come_back(client, server)
            killed += 1
        while answered(client) <= number:
            client.until("response.output.delta")
    assert killed == 4
    assert_same(client, calm)
    client.say_goodbye()
    wait_until(lambda: not list((tmp_path / "journal").glob("*.session")), "nothing of it is left")
    assert "parley_journal_taken_up_total 1" in http(server, "/metrics")[1]


def test_a_chat_goes_on_in_the_middle_of_an_answer(start_server, tmp_path):
    flags = (*FLAGS, "--set", f"journal.dir={tmp_path / 'journal'}")
    server = start_server(*flags)
    client, whole = story_begun(server, **ASKED)
    for _ in range(5):
        client.until("response.output.delta")
    assert server.stop(signal.SIGKILL) == -signal.SIGKILL
    server = start_server(*flags)
    come_back(client, server)
    done = client.until_done()
    assert done["text"] == whole == told(client)
    assert client.ask("And then?", **ASKED)[1]["reason"] in ("turn_end", "length")
    client.say_goodbye()


def test_an_update_is_announced(start_server, tmp_path):
    flags = (*FLAGS, "--set", f"journal.dir={tmp_path / 'journal'}", "--set", "limits.drain_seconds=20")
    server = start_server(*flags)
    calm = undisturbed(server, "audio")
    client = Resuming(server, "audio")
    client.init(config={"seed": SEEDS["audio"], "force_listen_count": 0})
    for number, unit in enumerate(material(31, UNITS)):
        client.append(unit)
        if number == 7:
            began = time.monotonic()
            assert server.stop() == 0
            assert time.monotonic() - began < 10, "it waits for nobody who can resume"
            with pytest.raises(Closed) as closed:
                while True:
                    client.receive()
            assert closed.value.code == 1012
            away = client.heard[-1]
            assert away["type"] == "session.go_away" and away["reason"] == "server_restart" and away["retry_after_ms"] > 0
            server = start_server(*flags)
            come_back(client, server)
        while answered(client) <= number:
            client.until("response.output.delta")
    assert_same(client, calm)
    client.say_goodbye()


def test_a_gateway_is_killed_and_its_workers_rejoin(cluster, tmp_path):  # noqa: F811
    flags = ("--set", f"journal.dir={tmp_path / 'journal'}", "--set", "nodes.silence_seconds=2", "--set", "limits.backlog_units=60")
    gateway = cluster.gateway(*flags)
    port = int(gateway.nodes.rsplit(":", 1)[1])
    cluster.worker(gateway, "--set", "nodes.silence_seconds=2", "--set", "nodes.rejoin_seconds=0.5")
    gateway.wait_for_workers(1)
    calm = undisturbed(gateway, "audio")
    client = Resuming(gateway, "audio")
    client.init(config={"seed": SEEDS["audio"], "force_listen_count": 0})
    for number, unit in enumerate(material(31, UNITS)):
        client.append(unit)
        if number in (3, 9):
            gateway.end(signal.SIGKILL)
            gateway = cluster.gateway(*flags, nodes_port=port)
            come_back(client, gateway)
        while answered(client) <= number:
            client.until("response.output.delta")
    assert_same(client, calm)
    client.say_goodbye()
    gateway.wait_until_free()
