"""The programs of docs/openai.md under "Quick starts", as printed there, against the real server with the trained model."""
import os
import re
import subprocess

import pytest

from conftest import ROOT
from test_openai_clients import packages, plain, secure  # noqa: F401 (fixtures)

PAGE = (ROOT / "docs/openai.md").read_text().split("## Quick starts\n")[1].split("\n## ")[0]
PROGRAMS = dict(re.findall(r"^\*\*(.+?)\*\*.*?```(?:python|javascript)\n(.*?)```", PAGE, re.S | re.M))
ENVIRONMENTS = {"LiveKit Agents": "livekit", "Pipecat": "pipecat", "OpenAI's agents SDK": "agents", "OpenAI's package for JavaScript": "node"}
SECONDS = 60


def test_each_package_has_a_quick_start():
    assert set(PROGRAMS) == set(ENVIRONMENTS)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_quick_start(name, packages, plain, secure, tmp_path):  # noqa: F811
    environment = ENVIRONMENTS[name]
    server = secure if environment == "node" else plain
    text, count = re.subn(r"127\.0\.0\.1:8006", f"{server.host}:{server.port}", PROGRAMS[name])
    assert count == 1
    file = tmp_path / ("start.mjs" if environment == "node" else "start.py")
    file.write_text(text)
    if environment == "node":
        (tmp_path / "node_modules").symlink_to(packages / "node/node_modules")
    with_what = "node" if environment == "node" else packages / environment / "bin/python"
    quiet = {"PYTHONWARNINGS": "ignore", "NODE_NO_WARNINGS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([with_what, file], capture_output=True, text=True, timeout=SECONDS, env=os.environ | quiet)
    assert done.returncode == 0 and "My name is Parley." in done.stdout, f"{done.stdout}\n{done.stderr[-2000:]}"
