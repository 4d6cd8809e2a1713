"""The container image, run by the commands of docs/containers.md with podman in place of docker. scripts/image.sh builds it and starts this, in a network
namespace of its own, so that the page's ports are free; ctest does not."""
import json
import os
import re
import shlex
import signal
import ssl
import subprocess
import urllib.request
from types import SimpleNamespace

import pytest

from conftest import BINARY, ROOT
from nodes import wait_until
from realtime import http, say, write_wav

IMAGE = os.environ.get("PARLEY_IMAGE", "parley")
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", (ROOT / "docs/containers.md").read_text(), re.S) for line in block.splitlines()]
QUESTION = "Hello, what is your name?"
ANSWER = "My name is Parley."


def words(beginning: str) -> list[str]:
    """The page's first command that begins so, for podman and the image that is tested, without the file that its output goes to."""
    line = next(line for line in COMMANDS if line.startswith(beginning)).split(" > ")[0]
    line = line.replace("docker compose", "podman-compose").replace("docker", "podman")
    return [IMAGE if word == "parley" and not before.startswith("--") else word for before, word in zip(["", *shlex.split(line)], shlex.split(line))]


def run(*command, **options) -> subprocess.CompletedProcess:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL, **options)


def output(*command) -> str:
    done = run(*command)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def get(url: str, key: str, ca: str):
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"})
    with urllib.request.urlopen(request, timeout=30, context=ssl.create_default_context(cafile=ca)) as answer:
        return json.load(answer)


def answers(tmp_path, *where: str):
    """Chat says what it should, and so does speech, which is heard. With the sampling of the defaults one spoken question may be missed, not all of five."""
    said = output(BINARY, "probe", "chat", "What is the capital of France?", "--greedy", *where)
    assert "Paris" in said, said
    write_wav(tmp_path / "question.wav", say(QUESTION))
    for seed in range(5):
        said = output(BINARY, "probe", "audio", "--wav", str(tmp_path / "question.wav"), "--listen", "6", "--fast", "--seed", str(seed), "--save", str(tmp_path / "heard.wav"), *where)
        text = " ".join(re.findall(r"^ *\d+  speak +\S+ ms  (.*)$", said, re.M))
        if " ".join(text.split()) == ANSWER and float(re.search(r"^sound +(\S+) s heard", said, re.M)[1]) >= 1:
            return
    raise AssertionError(said)


@pytest.fixture(scope="module")
def container(tmp_path_factory):
    log = tmp_path_factory.mktemp("container") / "log"
    with open(log, "w") as to:
        process = subprocess.Popen(words("docker run"), stdout=subprocess.PIPE, stderr=to, stdin=subprocess.DEVNULL, text=True)
        line = process.stdout.readline().strip()
        assert line == "ready http://0.0.0.0:8006", (line, log.read_text())
        yield SimpleNamespace(http="http://127.0.0.1:8006", process=process, log=log)
        if process.poll() is None:
            run("podman", "rm", "--force", "parley")
            process.wait(60)


def test_it_answers(container, tmp_path):
    assert http(container, "/health")[0] == 200
    answers(tmp_path, "--url", container.http)


def test_it_holds_what_runs_and_no_more(container):
    inside = lambda *command: output("podman", "exec", "parley", *command)
    assert inside("id", "-un").strip() == "parley"
    assert run("podman", "exec", "parley", "sh", "-c", "command -v g++ cmake python3 || ls -d /src").returncode != 0
    loaded = inside("ldd", "/opt/parley/bin/parley")
    assert "not found" not in loaded and ("libtorch_cuda.so => /opt/parley/" in loaded or not IMAGE.endswith(":cuda")), loaded
    keys = inside("sh", "-c", "find / -xdev \\( -name '*.key' -o -name '*key*.txt' -o -name api-key \\) -not -path '/proc/*' -not -path '/usr/share/doc/*' 2>/dev/null; true")
    assert keys == "", "secrets are made where they are used"
    assert inside("touch", "written") == "" and run("podman", "exec", "parley", "touch", "/opt/parley/written").returncode != 0


def test_it_runs_as_any_user():
    """As OpenShift starts it: a user id that the image does not know, in group 0."""
    begun = ("podman", "run", "--rm", "--user", "1000690000:0", "--env", "PARLEY_TLS_MODE=auto", "--env", "PARLEY_SERVER_PORT=0", IMAGE)
    process = subprocess.Popen(begun, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)
    try:
        lines = []
        while not (lines and lines[-1].startswith("ready https://")):
            lines.append(process.stdout.readline())
            assert lines[-1], lines
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_it_drains_and_ends(container):
    ended = run("podman", "stop", "parley")
    assert ended.returncode == 0 and "SIGKILL" not in ended.stderr, ended.stderr
    assert container.process.wait(60) == 0 and "asked to stop" in container.log.read_text(), container.log.read_text()[-3000:]


def test_settings_and_commands_follow_the_name(container, tmp_path):
    """The volume of the first container is there for the next."""
    again = [*words("docker run"), "check-config", "/opt/parley/etc/parley/parley.toml"]
    again[again.index("--name") + 1] = "again"
    told = output(*again[:2], "-e", "PARLEY_LIMITS_AUDIO_SECONDS=300", *again[2:])
    assert re.search(r"^audio_seconds = 300$", told, re.M) and re.search(r'^host = "0.0.0.0"$', told, re.M), told
    assert output(*again[:-2], "--version").strip(), "its flags, too"
    volume = again[:-2]
    volume[volume.index(IMAGE):] = ["--entrypoint", "ls", IMAGE]
    assert "written" in output(*volume)


def pem(text: str) -> str:
    """The certificate in it: podman-compose prints words of its own, too."""
    return re.search("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n", text, re.S)[0]


@pytest.fixture(scope="module")
def composed(tmp_path_factory):
    """compose.yaml as it stands, with the image that is tested in place of its own name."""
    if IMAGE != "parley":
        output("podman", "tag", IMAGE, "parley")
    folder = tmp_path_factory.mktemp("composed")
    try:
        output(*words("docker compose -f packaging/compose.yaml up"), "--no-build")
        names = {service: f"packaging_{service}_1" for service in ("secrets", "gateway", "worker")}
        logs = lambda: "\n".join(done.stdout + done.stderr for done in (run("podman", "logs", name) for name in names.values()))[-6000:]
        certificate = words("docker compose -f packaging/compose.yaml exec")
        (folder / "tls.pem").write_text(pem(wait_until(lambda: (done := run(*certificate)).returncode == 0 and "BEGIN" in done.stdout and done.stdout, "a certificate")))
        key = re.search("^[0-9a-f]{48}$", output(*words("docker compose -f packaging/compose.yaml run")), re.M)[0]
        where = ("--url", "https://127.0.0.1:8006", "--key", key, "--ca", str(folder / "tls.pem"))

        def workers():
            try:
                return [w for w in get("https://127.0.0.1:8006/status", key, str(folder / "tls.pem"))["workers"] if w["state"] == "up"]
            except OSError:
                return []

        wait_until(workers, f"a worker that has joined; {logs()}")
        yield SimpleNamespace(where=where, key=key, names=names, workers=workers, logs=logs, folder=folder)
    finally:
        run(*words("docker compose -f packaging/compose.yaml down"), "-v")
    assert output("podman", "ps", "--all", "--quiet") == ""


def test_gateway_and_worker_answer(composed, tmp_path):
    answers(tmp_path, *composed.where)


def test_the_page_s_probe_answers(composed):
    line = next(line for line in COMMANDS if line.startswith("build/release/parley probe")).replace("build/release/parley", shlex.quote(str(BINARY)))
    (composed.folder / "api-key").write_text(composed.key + "\n")
    done = subprocess.run(["bash", "-ec", line], cwd=composed.folder, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert done.returncode == 0 and ANSWER in done.stdout, (done.stdout, done.stderr)


def test_nobody_gets_in_without_a_key_or_a_certificate(composed):
    url, _, ca = composed.where[1], composed.where[3], composed.where[4:]
    refused = run(BINARY, "probe", "chat", "hi", "--url", url, *ca)
    assert refused.returncode == 1 and "401" in refused.stderr, refused.stderr
    unknown = run(BINARY, "probe", "chat", "hi", "--url", url, "--key", composed.key)
    assert unknown.returncode == 1 and "certificate" in unknown.stderr, unknown.stderr
    # A worker beside it, with a certificate that another authority signed.
    network = output("podman", "inspect", "--format", "{{range $name, $_ := .NetworkSettings.Networks}}{{$name}}{{end}}", composed.names["gateway"]).strip()
    own = [word for key in ("cert=worker/node.pem", "key=worker/node.key", "ca=worker/ca.pem") for word in ("--set", f"nodes.{key}")]
    script = "parley-secrets >/dev/null 2>&1 && exec parley worker --join gateway:8007 \"$@\""
    other = run("podman", "run", "--rm", "--network", network, "--entrypoint", "sh", IMAGE, "-c", script, "other", *own)
    assert other.returncode == 1 and "cannot join" in other.stderr and len(composed.workers()) == 1, other.stderr


def test_each_sees_its_own_secrets(composed):
    inside = lambda name, *command: run("podman", "exec", composed.names[name], *command)
    assert inside("gateway", "ls", "authority", "worker").stdout.split() == ["authority:", "worker:"]
    assert inside("worker", "ls", "authority", "gateway").stdout.split() == ["authority:", "gateway:"]
    files = inside("worker", "stat", "-c", "%n %a %U", "worker/node.key", "worker/node.pem", "worker/ca.pem").stdout.splitlines()
    assert files == [f"worker/{name} 600 parley" for name in ("node.key", "node.pem", "ca.pem")], files
    assert composed.key not in output("podman", "inspect", *composed.names.values()), "nothing of them is in the containers' settings"
    assert composed.key not in composed.logs()


def test_secrets_are_made_once(composed):
    before = output("podman", "exec", composed.names["gateway"], "sha256sum", "gateway/node.pem", "gateway/keys.txt")
    assert output("podman", "start", "--attach", composed.names["secrets"]) == ""
    assert output("podman", "exec", composed.names["gateway"], "sha256sum", "gateway/node.pem", "gateway/keys.txt") == before


def test_a_worker_that_dies_comes_back(composed, tmp_path):
    killed = int(output("podman", "inspect", "--format", "{{.State.Pid}}", composed.names["worker"]))
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: composed.workers() and int(output("podman", "inspect", "--format", "{{.State.Pid}}", composed.names["worker"])) not in (0, killed), f"the worker again; {composed.logs()}")
    assert "Paris" in output(BINARY, "probe", "chat", "What is the capital of France?", "--greedy", *composed.where)


def test_both_end_well(composed):
    for name in ("worker", "gateway"):
        output("podman", "stop", "--time", "60", composed.names[name])
        assert output("podman", "inspect", "--format", "{{.State.ExitCode}}", composed.names[name]).strip() == "0", composed.logs()


def test_the_second_file_changes_the_worker(monkeypatch):
    """What Docker's own reader makes of both files; nobody can run the second one here."""
    config = ("docker-compose", "-f", "packaging/compose.yaml", "-f", "packaging/compose.cuda.yaml", "config")
    monkeypatch.delenv("MODEL", raising=False)
    lost = run(*config)
    assert lost.returncode != 0 and "the folder of the weights" in lost.stderr, lost
    monkeypatch.setenv("MODEL", "/somewhere")
    services = dict(re.findall(r"^  (\w+):\n((?:   .*\n)+)", output(*config), re.M))
    assert set(services) == {"secrets", "gateway", "worker"}
    for wanted in ("image: parley:cuda", "TORCH: cuda", "- gpu", "PARLEY_WORKER_DEVICE: cuda:0", "/somewhere:/model:ro", "PARLEY_NODES_CERT: worker/node.pem", "- gateway:8007"):
        assert wanted in services["worker"] and wanted not in services["gateway"], services
