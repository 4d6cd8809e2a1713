"""Runs the commands of README and docs/ as printed: every line that starts with `$ ` in a block marked `console`."""
import re
import shlex
import subprocess

import pytest

from conftest import BINARY, ROOT, Server

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [block for page in PAGES for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.S)]
COMMANDS = [line[2:] for block in BLOCKS for line in block.splitlines() if line.startswith("$ ")]
SKIPPED = ("./run", "./test")  # the commands that run this very test


def test_there_are_commands():
    assert len([c for c in COMMANDS if not c.startswith(SKIPPED)]) >= 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One scratch folder for all pages, since later commands read files that earlier ones made."""
    scratch = tmp_path_factory.mktemp("readme")
    for name in ("config", "models", "tests"):
        (scratch / name).symlink_to(ROOT / name)
    return scratch


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory):
    """The server that ./run starts, with the default model."""
    started = Server("--model", "", "--set", "engine.seed=7", "--set", "worker.max_sessions=4", log=tmp_path_factory.mktemp("newcomer") / "server.log")
    yield started
    assert started.stop() == 0, started.log.read_text()[-4000:]


@pytest.mark.parametrize("command", [c for c in COMMANDS if not c.startswith(SKIPPED)])
def test_command(command, newcomer, folder):
    """Runs a command as a reader would type it, except for the port and the path of the binary, in a scratch folder."""
    line = command.replace("http://127.0.0.1:8006", newcomer.http).replace("build/release/parley", shlex.quote(str(BINARY)))
    done = subprocess.run(["bash", "-o", "pipefail", "-ec", line], cwd=folder, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    if re.search("--(image|frames) ", command):
        assert "A red circle." in done.stdout, "what is printed beside it"
