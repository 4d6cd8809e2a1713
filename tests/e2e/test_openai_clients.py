"""Other people's programs for OpenAI's Realtime and Live APIs and chat completions, unchanged, against the real server with the trained model.

Each script in openai_clients/ prints a line for each of its checks. Their packages come from the registries and are installed once
(scripts/openai_clients.sh); without the registries these tests are skipped."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import ROOT, Server
from openai_rules import Watched

SCRIPTS = Path(__file__).parent / "openai_clients"
NANO = ROOT / "models/nano"
SECONDS = 120
CHECKS = {
    "sdk/openai_sdk_realtime.py": "connect text text_only manual spoken interrupt tools image out_of_band items errors pcmu strict",
    "livekit/livekit_realtime.py": "text instructions spoken interrupt tools chat_ctx video manual azure_beta agent",
    "pipecat/pipecat_realtime.py": "greeting spoken interrupt tools manual text_only video",
    "node/openai_js_realtime.mjs": "text manual spoken tools browser_style",
    "agents/openai_agents_realtime.py": "connect text spoken interrupt tools handoff bare_url",
    "node/agents_js_realtime.mjs": "text spoken interrupt tools strict",
    "node/beta_js_realtime.mjs": "text manual spoken interrupt tools",
    "sdk/openai_sdk_live.py": "start spoken barge_in speak_first formats context errors strict",
    "livekit/livekit_live.py": "greeting spoken barge_in",
    "pipecat/pipecat_live.py": "open spoken speak_first",
    "sdk/openai_sdk_chat.py": "tools results stream output spoken_history",
    "frameworks/frameworks_chat.py": "pydantic_tools pydantic_output langchain_tools langchain_output",
    "instructor/instructor_chat.py": "tools output",
    "vercel/ai_sdk_chat.mjs": "openai_tools openai_output compatible_tools compatible_output compatible_stream",
    "livekit_node/livekit_node.mjs": "tools chosen realtime_tools",
}
# Where each turn of the user is judged by functions, which takes a slot that is idle.
FUNCTIONS = {"livekit/livekit_live.py": "tools,delegation", "livekit/livekit_realtime.py": "duplex_tools", "livekit_node/livekit_node.mjs": "live_tools",
             "vercel/ai_sdk_realtime.mjs": "live"}
SECURE = "node/openai_js_realtime.mjs"
QUIET = {"PYTHONWARNINGS": "ignore", "NODE_NO_WARNINGS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
WRITTEN = ["livekit/livekit_realtime.py", "livekit/livekit_live.py"]  # their check `transcript`


@pytest.fixture(scope="module")
def packages() -> Path:
    made = subprocess.run([ROOT / "scripts/openai_clients.sh"], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"NOT TESTED: the packages of OpenAI's clients cannot be installed here:\n{made.stderr[-1000:]}")
    return Path(made.stdout.strip())


def nano(folder: Path, *flags: str) -> Server:
    return Server("--model", str(NANO), "--set", "engine.seed=7", "--set", "worker.max_sessions=12", *flags, log=folder / "server.log")


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    server = nano(tmp_path_factory.mktemp("plain"))
    yield server
    assert server.stop() == 0, server.log.read_text()[-4000:]


@pytest.fixture(scope="module")
def watched(plain):
    relay = Watched(plain)
    yield relay
    relay.close()


@pytest.fixture(scope="module")
def secure(tmp_path_factory):
    """OpenAI's package for JavaScript speaks wss:// only."""
    server = nano(tmp_path_factory.mktemp("secure"), "--set", "tls.mode=auto")
    yield server
    assert server.stop() == 0, server.log.read_text()[-4000:]


def command(script: str, packages: Path, folder: Path) -> list:
    environment, name = script.split("/")
    if not name.endswith(".mjs"):
        return [packages / environment / "bin/python", SCRIPTS / name]
    for file in SCRIPTS.glob("*.mjs"):  # node looks for packages beside the script
        shutil.copy(file, folder)
    (folder / "node_modules").symlink_to(packages / environment / "node_modules")
    return ["node", "--experimental-websocket", folder / name] if name == "ai_sdk_realtime.mjs" else ["node", folder / name]


@pytest.fixture(scope="module")
def started(packages, watched, secure, tmp_path_factory):
    """All scripts at once: most of their time is speech, which takes its time."""
    running = {}
    for script, checks in CHECKS.items():
        server = secure if script == SECURE else watched
        what = [*command(script, packages, tmp_path_factory.mktemp("client")), server.http + "/v1", "--only", checks.replace(" ", ",")]
        running[script] = subprocess.Popen(what, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=os.environ | QUIET)
    yield running
    for process in running.values():
        process.kill()
        process.wait()


@pytest.mark.parametrize("script", CHECKS)
def test_a_stock_client(script, started):
    out, _ = started[script].communicate(timeout=SECONDS)
    told = [line for line in out.splitlines() if line.startswith(("ok  ", "FAIL"))]
    right = started[script].returncode == 0 and len(told) == len(CHECKS[script].split()) and all(line.startswith("ok  ") for line in told)
    assert right, out


def test_every_event_obeys_the_rules(watched, started):
    for process in started.values():
        process.wait(SECONDS)
    assert watched.events > 100
    assert not watched.broken, f"{len(watched.broken)} of {watched.events}: " + "\n".join(watched.broken[:5])


def run_check(script: str, packages: Path, folder: Path, check: str, *flags: str):
    """What the script says of one of its checks, with a server of its own."""
    server = nano(folder, *flags)
    relay = Watched(server)
    try:
        what = [*command(script, packages, folder), relay.http + "/v1", "--only", check]
        done = subprocess.run(what, capture_output=True, text=True, timeout=SECONDS, env=os.environ | QUIET)
        assert done.returncode == 0 and done.stdout.startswith("ok  "), done.stdout
        assert relay.events and not relay.broken, relay.broken[:5]
    finally:
        relay.close()
        assert server.stop() == 0, server.log.read_text()[-4000:]


@pytest.mark.parametrize("script", WRITTEN)
def test_what_users_say_reaches_the_application(script, packages, tmp_path):
    """What it says is not looked at: this model cannot transcribe."""
    run_check(script, packages, tmp_path, "transcript", "--set", "openai.transcribe=chat")


@pytest.mark.parametrize("script", FUNCTIONS)
def test_functions_are_called_in_full_duplex(script, packages, tmp_path):
    run_check(script, packages, tmp_path, FUNCTIONS[script], "--set", "openai.duplex_tools=true")
