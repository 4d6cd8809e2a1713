"""`parley serve` with several devices: a worker process for each, started, watched and ended by the server. Devices of one kind, as a machine
without a GPU has them, take the same path as several GPUs."""
import os
import re
import signal
import subprocess
from pathlib import Path

from conftest import BINARY, TINY
from nodes import wait_until
from realtime import SPOKEN, http

TWO = ("--device", "cpu,cpu", "--set", "worker.max_sessions=2", "--set", "engine.seed=7")


def up(server) -> list[dict]:
    return [worker for worker in http(server, "/status")[1]["workers"] if worker["state"] == "up"]


def both_up(server) -> list[dict]:
    return wait_until(lambda: len(found := up(server)) == 2 and found, f"two workers; {server.log.read_text()[-3000:]}")


def processes(server) -> list[int]:
    """All that were ever started."""
    return [int(number) for number in re.findall(r"the worker on cpu is process (\d+)", server.log.read_text())]


def alive(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def probe(server) -> subprocess.CompletedProcess:
    return subprocess.run([BINARY, "probe", "audio", "--url", server.http, "--wav", str(SPOKEN), "--fast"], capture_output=True, text=True, timeout=120)


def test_each_device_has_a_worker_that_is_started_again(start_server):
    server = start_server(*TWO)
    assert [worker["device"] for worker in both_up(server)] == ["cpu", "cpu"]
    assert probe(server).returncode == 0
    first = processes(server)
    assert len(first) == 2 and all(map(alive, first))
    os.kill(first[0], signal.SIGKILL)
    again = wait_until(lambda: len(found := processes(server)) == 3 and found, "a third process")
    both_up(server)
    assert "was killed by signal 9; it is started again in 1 s" in server.log.read_text()
    assert probe(server).returncode == 0
    assert server.stop() == 0
    assert not any(map(alive, again)), "they end with the server"


def test_workers_end_with_a_server_that_is_killed(start_server):
    server = start_server(*TWO)
    both_up(server)
    server.stop(signal.SIGKILL)
    wait_until(lambda: not any(map(alive, processes(server))), "the workers' end")


def test_no_other_program_of_the_machine_joins(start_server):
    server = start_server(*TWO)
    both_up(server)
    command = Path(f"/proc/{processes(server)[0]}/cmdline").read_text(encoding="utf-8").split("\0")
    address = command[command.index("--join") + 1]
    other = subprocess.run([BINARY, "worker", "--join", address, "--model", str(TINY)], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert other.returncode == 1 and "only processes that this one has started may join here" in other.stderr
    assert len(up(server)) == 2


def test_flags_reach_the_workers(start_server, tmp_path):
    (tmp_path / "own.toml").write_text("[engine]\ncontext_tokens = 1024\n", encoding="utf-8")
    server = start_server("--device", "cpu,cpu", "--config", str(tmp_path / "own.toml"), "--model", str(TINY), "--set", "worker.max_sessions=3")
    assert [worker["slots"] for worker in both_up(server)] == [3, 3]
    assert server.log.read_text().count("3 slots of 1024 tokens") == 2


def test_it_ends_when_no_worker_can_start():
    done = subprocess.run([BINARY, "serve", "--port", "0", "--device", "cpu,cpu", "--model", "nowhere"], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert done.returncode == 1 and done.stdout == "", done
    assert done.stderr.splitlines()[-1] == "parley: the model cannot be served: no worker could start" and "nowhere" in done.stderr


def test_devices_that_are_not_there_are_refused_in_one_line():
    for command, device, said in (
        ("serve", "cuda:all", "worker.device: cuda"),
        ("serve", "cpu,", "--device"),
        ("worker", "cpu,cpu", "one device is needed here"),
    ):
        join = ["--join", "127.0.0.1:1"] if command == "worker" else ["--port", "0"]
        done = subprocess.run([BINARY, command, *join, "--device", device], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        assert done.returncode != 0 and done.stdout == "" and said in done.stderr.splitlines()[-1], done
