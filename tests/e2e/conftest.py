"""Starts the real server on a free loopback port. Its clients follow the protocol's documentation alone."""
import os
import signal
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ.get("PARLEY_BINARY", ROOT / "build/release/parley"))
TINY = ROOT / "models/tiny-omni"  # random weights, but every part of the architecture; used for tests of the protocol
START_SECONDS = 120  # long enough for a sanitized binary on a busy machine


class Server:
    """One `parley serve` process, with tiny-omni unless the flags name another model. Ready once constructed."""

    def __init__(self, *flags: str, log: Path):
        self.log = log
        self._log_file = open(log, "w")
        model = [] if {"--model", "--config"} & set(flags) else ["--model", str(TINY)]
        self.process = subprocess.Popen([BINARY, "serve", "--port", "0", *model, *flags], stdout=subprocess.PIPE, stderr=self._log_file, stdin=subprocess.DEVNULL, text=True)
        line = self.process.stdout.readline().strip()
        if not line.startswith(("ready http://", "ready https://")):
            self.process.kill()
            self.process.wait()
            raise RuntimeError(f"the server said {line!r}; its log:\n{log.read_text()}")
        self.http = line.removeprefix("ready ")
        self.host, port = self.http.split("://")[1].rsplit(":", 1)
        self.port = int(port)
        self.realtime = f"{'wss' if self.http.startswith('https') else 'ws'}://{self.host}:{self.port}/v1/realtime"

    def stop(self, how: int = signal.SIGTERM, seconds: float = 60) -> int:
        """Signals the process, waits for its end and returns the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self._log_file.close()
        assert self.process.stdout.read() == "", "only the ready line belongs on standard output"
        return status


@pytest.fixture
def start_server(tmp_path):
    """A factory of servers with flags chosen by the test. After the test all must exit cleanly."""
    servers = []

    def start(*flags: str) -> Server:
        server = Server(*flags, log=tmp_path / f"server{len(servers)}.log")
        servers.append(server)
        return server

    yield start
    for server in servers:
        if server.process.poll() is None:
            assert server.stop() == 0, server.log.read_text()[-4000:]


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """The server that most tests share: default settings except for a fixed seed and a few slots."""
    shared = Server("--set", "engine.seed=7", "--set", "worker.max_sessions=4", log=tmp_path_factory.mktemp("server") / "server.log")
    yield shared
    assert shared.stop() == 0, shared.log.read_text()[-4000:]
