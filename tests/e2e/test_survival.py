"""Workers die, hang, leave and come back; conversations notice nothing but a pause."""
import signal
import threading

import numpy as np
import pytest

from conftest import Server
from draws import TRACE, draws, judge
from nodes import wait_until
from paced import Paced
from realtime import UNIT, Client, http
from test_nodes import SMALL, cluster  # noqa: F401 (a fixture)

# With a long backlog, so that a slow, busy machine does not matter here.
QUICK = ("--set", "nodes.silence_seconds=2", "--set", "nodes.rejoin_seconds=0.5", "--set", "limits.backlog_units=60")
ROOMY = (*QUICK, *TRACE, "--set", "worker.max_sessions=8")
UNITS, PACE = 24, 0.5
SEEDS = (11, 12, 13, 14)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The same conversations in one process, by seed, and what was sampled in them."""
    log = tmp_path_factory.mktemp("undisturbed") / "server.log"
    server = Server(*SMALL, *TRACE, log=log)
    runs = {seed: session.finish() for seed, session in [(seed, Paced(server, seed, UNITS, 0)) for seed in SEEDS]}
    assert server.stop() == 0
    return runs, draws([log])


def assert_undisturbed(sessions, undisturbed, cluster):
    """The same words, second by second, and the same sound, except after a close draw of speech, which is printed."""
    calm, calm_draws = undisturbed
    made = draws(cluster.logs())
    verdicts = []
    for session in sessions:
        assert session.problem is None and calm[session.seed].problem is None, (session.problem, calm[session.seed].problem)
        verdicts.append(judge(session, calm[session.seed], made[session.seed], calm_draws[session.seed]))
        print(f"session {session.seed}: {verdicts[-1]}; {verdicts[-1].compared} draws, whose margins moved by at most {verdicts[-1].moved:.2g}")
        assert verdicts[-1].compared > 0
        assert not verdicts[-1].errors, verdicts[-1].errors
    assert sum(v.alike for v in verdicts) >= len(verdicts) // 2  # else this shows little


def busy_workers(gateway) -> set[str]:
    return {w["node"] for w in gateway.workers() if w["busy"]}


def test_a_killed_worker_and_a_silent_one(cluster, undisturbed):  # noqa: F811
    gateway = cluster.gateway(*QUICK)
    workers = {name: cluster.worker(gateway, *ROOMY, "--set", f"nodes.name={name}") for name in "abc"}
    gateway.wait_for_workers(3)
    sessions = [Paced(gateway, seed, UNITS, PACE) for seed in SEEDS]
    wait_until(lambda: all(len(s.answered) >= 3 for s in sessions), "all have been answered")
    killed = sorted(busy_workers(gateway))[0]
    workers[killed].end(signal.SIGKILL)
    gateway.wait_for_workers(2)
    wait_until(lambda: all(len(s.answered) >= 8 or s.problem for s in sessions), "they go on")
    silent = sorted(busy_workers(gateway))[0]
    workers[silent].send(signal.SIGSTOP)
    gateway.wait_for_workers(1)
    workers[killed] = cluster.worker(gateway, *ROOMY, "--set", f"nodes.name={killed}")
    workers[silent].send(signal.SIGCONT)
    gateway.wait_for_workers(3)  # one is new, the other came back by itself
    for session in sessions:
        session.finish()
    assert_undisturbed(sessions, undisturbed, cluster)
    gateway.wait_until_free()


def test_rolling_restart_without_an_error(cluster, undisturbed):  # noqa: F811
    gateway = cluster.gateway(*QUICK)
    workers = {name: cluster.worker(gateway, *ROOMY, "--set", f"nodes.name={name}") for name in "ab"}
    gateway.wait_for_workers(2)
    sessions = [Paced(gateway, seed, UNITS, PACE) for seed in SEEDS]
    for name in workers:
        answered = max(len(s.answered) for s in sessions)
        wait_until(lambda: all(len(s.answered) > answered for s in sessions), "all are under way")
        assert workers[name].end() == 0
        workers[name] = cluster.worker(gateway, *ROOMY, "--set", f"nodes.name={name}")
        gateway.wait_for_workers(2)
    for session in sessions:
        session.finish()
    assert_undisturbed(sessions, undisturbed, cluster)
    gateway.wait_until_free()


def test_an_operator_moves_a_session(cluster, undisturbed):  # noqa: F811
    gateway = cluster.gateway(*QUICK)
    for name in "ab":
        cluster.worker(gateway, *ROOMY, "--set", f"nodes.name={name}")
    gateway.wait_for_workers(2)
    session = Paced(gateway, SEEDS[0], UNITS, 0.25)
    for answered in (4, 12):
        wait_until(lambda: len(session.answered) >= answered, "it is under way")
        [before] = busy_workers(gateway)
        [live] = http(gateway, "/sessions")[1]["sessions"]
        assert http(gateway, f"/sessions/{live['session_id']}/move", "POST")[0] == 200
        wait_until(lambda: busy_workers(gateway) == {"a", "b"} - {before}, "it has moved")
    session.finish()
    assert_undisturbed([session], undisturbed, cluster)


def test_a_chat_turn_goes_on_elsewhere(cluster, server):  # noqa: F811
    gateway = cluster.gateway(*QUICK)
    workers = {name: cluster.worker(gateway, *ROOMY, "--set", f"nodes.name={name}") for name in "ab"}
    gateway.wait_for_workers(2)
    fields = {"generation": {"max_new_tokens": 2000, "seed": 5, "temperature": 0.7}}
    with Client(server, "chat") as client:
        client.init()
        calm = client.ask("Tell me a long story.", **fields)
    with Client(gateway, "chat") as client:
        client.init()
        told = []
        asking = threading.Thread(target=lambda: told.append(client.ask("Tell me a long story.", **fields)))
        asking.start()
        wait_until(lambda: len(client.heard) > 5, "it is being told")
        [name] = busy_workers(gateway)
        workers[name].end(signal.SIGKILL)
        asking.join(120)
        assert told and told[0][1]["text"] == calm[1]["text"]
        assert "".join(d["text"] for d in told[0][0]) == calm[1]["text"]
        client.say_goodbye()
    gateway.wait_until_free()


def test_no_worker_comes_back(cluster):  # noqa: F811
    gateway = cluster.gateway(*QUICK, "--set", "limits.failover_seconds=1")
    worker = cluster.worker(gateway, *ROOMY)
    gateway.wait_for_workers(1)
    with Client(gateway) as client:
        client.init()
        client.step(np.zeros(UNIT, np.float32))
        worker.end(signal.SIGKILL)
        assert client.until("session.closed")["reason"] == "backend_error"
        assert client.closed() == 1011
    gateway.wait_until_free()
