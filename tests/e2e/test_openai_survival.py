"""Workers die under the stock clients of LiveKit and Pipecat, which notice nothing: the conversation goes on, and the answer that was being
spoken is spoken to its end."""
import os
import signal
import subprocess

import pytest

from nodes import wait_until
from test_nodes import cluster  # noqa: F401 (a fixture)
from test_openai_clients import NANO, SCRIPTS, packages  # noqa: F401 (a fixture)
from test_survival import QUICK, busy_workers

SECONDS = 120


@pytest.mark.parametrize("client", ["livekit", "pipecat"])
def test_a_worker_dies(client, cluster, packages, tmp_path):  # noqa: F811
    gateway = cluster.gateway(*QUICK)
    names = iter(f"w{i}" for i in range(20))

    def one_more():
        name = next(names)
        workers[name] = cluster.worker(gateway, "--model", str(NANO), "--set", f"nodes.name={name}")

    workers = {}
    one_more()
    one_more()
    gateway.wait_for_workers(2)
    what = [packages / client / "bin/python", SCRIPTS / f"{client}_survival.py", gateway.http + "/v1"]
    talk = subprocess.Popen(what, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"})
    told, killed = [], 0
    try:
        for line in talk.stdout:
            if line != "stop\n":
                told.append(line)
                continue
            (holder,) = wait_until(lambda: busy_workers(gateway), "a worker holds the conversation")
            workers.pop(holder).end(signal.SIGKILL)
            killed += 1
            one_more()
            talk.stdin.write("\n")
            talk.stdin.flush()
        assert talk.wait(SECONDS) == 0 and len(told) == 2, told
    finally:
        talk.kill()
        talk.wait()
    assert killed == 3
    gateway.wait_until_free()
