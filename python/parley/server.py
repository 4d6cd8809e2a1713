"""A server of one's own, for tests, notebooks and conversations on one machine."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import tempfile
import time
from typing import IO, Iterator

from parley.program import program, program_environment


class Server:
    """A running `parley serve`."""

    def __init__(self, url: str, process: subprocess.Popen[str]):
        self.url = url
        """Its address, such as http://127.0.0.1:8006."""
        self.process = process


@contextlib.contextmanager
def serve(*flags: str, model: str | os.PathLike[str] | None = None, port: int = 0, binary: str | os.PathLike[str] | None = None, log: str | os.PathLike[str] | None = None,
          start_seconds: float = 120, stop_seconds: float = 60) -> Iterator[Server]:
    """Starts `parley serve` with the default model or the folder `model`, on a free port unless one is named, and stops it at the end. `flags` are further ones of the
    command. `log` is a file that its log goes to. Raises RuntimeError with the end of that log if the server does not start within `start_seconds`."""
    command = [str(binary or program()), "serve", "--port", str(port), *(["--model", os.fspath(model)] if model is not None else []), *flags]
    with contextlib.ExitStack() as stack:
        lines: IO[str] = stack.enter_context(open(log, "w+", encoding="utf-8") if log is not None else tempfile.TemporaryFile("w+", encoding="utf-8"))
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=lines, text=True, env=program_environment())
        try:
            yield Server(_address(process, lines, start_seconds), process)
        finally:
            process.terminate()
            try:
                process.wait(stop_seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            assert process.stdout is not None
            process.stdout.close()


def _address(process: subprocess.Popen[str], lines: IO[str], seconds: float) -> str:
    """What the server prints when it accepts connections: one line, `ready URL`."""
    assert process.stdout is not None
    deadline = time.monotonic() + seconds
    ready, _, _ = select.select([process.stdout], [], [], seconds)
    line = process.stdout.readline().strip() if ready else ""
    if not line.startswith("ready "):
        process.kill()
        process.wait()
        lines.seek(0)
        why = "".join(lines.readlines()[-10:]).strip()
        late = f" within {seconds:g} s" if time.monotonic() >= deadline else ""
        raise RuntimeError(f"parley serve did not start{late}: {why or 'it said nothing'}")
    return line.removeprefix("ready ")
