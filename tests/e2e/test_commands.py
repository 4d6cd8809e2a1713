"""The commands that scripts rely on: exit statuses, the ready line, probes, verify."""
import fcntl
import os
import re
import shutil
import subprocess
import urllib.request
from pathlib import Path

from conftest import BINARY, ROOT
from realtime import SPOKEN


def parley(*arguments: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL, **options)


def test_probe_audio(server):
    first = parley("probe", "audio", "--url", server.http, "--wav", str(SPOKEN), "--listen", "2", "--fast", "--seed", "5")
    assert first.returncode == 0, first.stderr
    assert "session.created" in first.stdout and "session.closed" in first.stdout
    decisions = [line for line in first.stdout.splitlines() if " ms" in line and ("listen" in line or "speak" in line)]
    assert len(decisions) >= 3 and "units               6," in first.stdout, first.stdout  # four of speech, two of silence


def test_probe_audio_resamples_any_wav(server, tmp_path):
    other = tmp_path / "44k.wav"
    subprocess.run(["espeak-ng", "-w", str(other), "Good morning."], check=True)
    assert parley("probe", "audio", "--url", server.realtime, "--wav", str(other), "--fast", "--legacy").returncode == 0


def test_probe_chat(server):
    run = [parley("probe", "chat", "Reply with exactly: test", "--url", server.http, "--seed", "3", "--max-new-tokens", "16") for _ in range(2)]
    assert run[0].returncode == 0, run[0].stderr
    assert "response.done" in run[0].stdout
    said = [r.stdout.split("response.done")[0] for r in run]
    assert said[0] == said[1], "same seed, same answer"


def test_load_without_a_session_fails_with_one(tmp_path):
    figures = tmp_path / "figures.json"
    result = parley("load", "--url", "http://127.0.0.1:1", "--mode", "chat", "--sessions", "3", "--seconds", "0.1", "--json", str(figures))
    assert result.returncode == 1 and figures.is_file()
    assert result.stderr.splitlines()[-1] == "parley load: none of 3 sessions was created, 3 connection_failed"


def test_probe_without_a_server_fails_with_one():
    result = parley("probe", "chat", "hi", "--url", "http://127.0.0.1:1")
    assert result.returncode == 1 and len(result.stderr.strip().splitlines()) == 1


def test_wrong_usage_is_two_and_names_the_flag():
    for arguments, name in (
        (["serve", "--prot", "1"], "--prot"),
        (["serve", "--port", "70000"], "--port"),
        (["serve", "--set", "server.prot=1"], "server.prot"),
        (["serve", "--tls", ""], "--tls"),
        (["serve", "--port", ""], "--port"),
        (["serve", "--set", "limits.audio_seconds=soon"], "limits.audio_seconds"),
        (["probe", "audio", "--url", "ftp://x"], "--url"),
        (["fly"], "fly"),
    ):
        result = parley(*arguments)
        assert result.returncode == 2, (arguments, result)
        assert name in result.stderr and result.stdout == "", (arguments, result.stderr)


def test_missing_model_is_one():
    result = parley("serve", "--model", "nowhere", "--port", "0")
    assert result.returncode == 1 and "nowhere" in result.stderr


def test_check_config(tmp_path):
    good = parley("check-config", str(ROOT / "config/parley.toml"))
    assert good.returncode == 0 and "[server]" in good.stdout
    (tmp_path / "effective.toml").write_text(good.stdout)
    assert parley("check-config", str(tmp_path / "effective.toml")).stdout == good.stdout, "what it prints is valid itself"
    bad = tmp_path / "bad.toml"
    bad.write_text("[server]\nport = 8006\nhots = 'x'\n")
    result = parley("check-config", str(bad))
    assert result.returncode == 2 and "hots" in result.stderr and "3" in result.stderr


def test_verify_counts_failures(tmp_path):
    """`parley verify` exits with 1 if a golden does not match: here, goldens of another checkpoint."""
    data = ROOT / "tests/data"
    wrong = parley("verify", "--model", str(ROOT / "models/tiny-omni"), "--goldens", str(data / "goldens/thinker"))
    assert wrong.returncode == 1 and "FAIL" in wrong.stdout


def test_init_model_makes_a_servable_checkpoint(tmp_path, start_server):
    made = parley("init-model", "--preset", "tiny", "--seed", "1", "--out", str(tmp_path / "model"))
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "model/config.json").exists()
    server = start_server("--model", str(tmp_path / "model"), "--set", "worker.max_sessions=1")
    assert parley("probe", "audio", "--url", server.http, "--wav", str(SPOKEN), "--fast").returncode == 0


def test_a_folder_of_middle_size_is_made_checked_and_run(tmp_path):
    """All that the published folder contains, at a size that takes seconds: create, check, load and hear it."""
    folder = tmp_path / "Mittlere Größe"
    made = parley("init-model", "--preset", "mid", "--seed", "1", "--out", str(folder))
    assert made.returncode == 0, made.stderr
    published = {"config.json", "generation_config.json", "preprocessor_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt",
                 "tokenizer.json", "tokenizer_config.json", "assets"}
    assert published <= {p.name for p in folder.iterdir()}
    assert {p.name for p in (folder / "assets/token2wav").iterdir()} == {"campplus.onnx", "flow.pt", "flow.yaml", "hift.pt", "speech_tokenizer_v2_25hz.onnx"}
    settings = ("engine.dtype=bfloat16", "engine.context_tokens=1024")
    checked = parley("check-model", str(folder), "--run", *(word for s in settings for word in ("--set", s)))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "it is loaded" in checked.stdout and "a second of silence" in checked.stdout and "0 faults" in checked.stdout


def test_check_model_tells_by_its_exit_status(tmp_path):
    good = parley("check-model", str(ROOT / "models/nano"))
    assert good.returncode == 0 and good.stdout.splitlines()[-1].startswith("it would run: 0 faults"), good.stdout
    (tmp_path / "model-Q4_K_M.gguf").write_bytes(b"GGUF")
    other = parley("check-model", str(tmp_path))
    assert other.returncode == 1 and "holds GGUF files" in other.stdout and not other.stderr
    assert parley("check-model").returncode == 2
    served = parley("serve", "--model", str(tmp_path), "--port", "0")
    assert served.returncode == 1 and "holds GGUF files" in served.stderr


def test_the_version_names_what_it_was_built_from():
    """Whoever reports a fault has one line to copy: version, commit, libraries, kind of build."""
    line = parley("--version").stdout
    settings = dict(re.findall(r"^(\w+):\w+=(.*)$", (Path(BINARY).parent / "CMakeCache.txt").read_text(), re.M))
    named = (ROOT / "VERSION").read_text().strip(), settings["TORCH_VERSION"], settings["CMAKE_BUILD_TYPE"]
    pattern = r"parley {} \(commit [0-9a-f]{{12}}\+?, LibTorch {}, CAF \d+\.\d+\.\d+, {} build\)\n".format(*map(re.escape, named))
    assert re.fullmatch(pattern, line), line


def test_help_names_every_command():
    text = parley("--help").stdout
    for command in ("serve", "probe", "verify", "init-model", "check-config", "check-model"):
        assert command in text
    assert os.access(BINARY, os.X_OK) and Path(BINARY).name == "parley"


def logging_to(descriptor: int, *settings: str) -> subprocess.Popen:
    flags = [flag for setting in settings for flag in ("--set", setting)]
    command = [BINARY, "serve", "--port", "0", "--model", str(ROOT / "models/tiny-omni"), *flags]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=descriptor, text=True)
    os.close(descriptor)
    return server


def answers(url: str, times: int):
    body = b'{"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}'
    for _ in range(times):
        with urllib.request.urlopen(urllib.request.Request(url + "/v1/chat/completions", data=body), timeout=60) as answer:
            assert answer.status == 200


def test_a_server_outlives_the_reader_of_its_log(tmp_path):
    """Neither `parley serve 2>&1 | head` nor a restarted log collector may end a conversation."""
    read, write = os.pipe()
    server = logging_to(write, "log.level=debug")
    with open(read) as log:
        log.readline()
        url = server.stdout.readline().split()[1]
    answers(url, 2)
    server.terminate()
    assert server.wait(60) == 0


def test_a_server_does_not_wait_for_the_reader_of_its_log():
    """A terminal that was stopped, or a collector that hangs."""
    read, write = os.pipe()
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
    server = logging_to(write, "log.level=trace", "log.engine_level=trace")
    try:
        url = server.stdout.readline().split()[1]
        answers(url, 40)
        server.terminate()
        with open(read) as log:
            lines = log.readlines()
        assert server.wait(60) == 0
    finally:
        server.kill()
    assert sum(map(len, lines)) > 2 * 4096 and "asked to stop" in "".join(lines[-5:]), lines[-5:]


def test_another_system_is_told_what_it_takes(tmp_path):
    """On another system: one line that says what to do there: the wheel, made in a container, or all by hand."""
    other = tmp_path / "os-release"
    other.write_text('ID=fedora\nVERSION_ID=40\nPRETTY_NAME="Fedora Linux 40"\n')
    done = subprocess.run([ROOT / "run"], capture_output=True, text=True, timeout=60, env=os.environ | {"OS_RELEASE": str(other)})
    assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1, done
    assert "Fedora Linux 40" in done.stderr and "scripts/packages.txt" in done.stderr and "cmake --preset release -DTORCH_ROOT=" in done.stderr
    made = re.search(r"debian:12 (\S+) && pip install (\S+)/\*\.whl && parley serve \((\S+)\)", done.stderr)
    assert made and os.access(ROOT / made[1], os.X_OK) and (ROOT / made[3]).is_file() and f"({made[2]})" in (ROOT / made[1]).read_text().splitlines()[1], done.stderr


def test_setup_says_what_it_lacks(tmp_path):
    """Without root and sudo on a machine that lacks packages, the last line says what to do."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "dirname", "mkdir", "flock", "grep", "awk", "sort", "comm", "tail", "cat"):
        (tools / name).symlink_to(shutil.which(name))
    for name, text in (("id", "echo 1000"), ("dpkg-query", "true")):
        (tools / name).write_text(f"#!/bin/bash\n{text}\n")
        (tools / name).chmod(0o755)
    release = tmp_path / "os-release"
    release.write_text("ID=debian\nVERSION_ID=12\nPRETTY_NAME=Debian\n")
    where = {"PATH": str(tools), "OS_RELEASE": str(release), "PARLEY_CACHE": str(tmp_path / "cache"), "HOME": str(tmp_path)}
    done = subprocess.run(["bash", ROOT / "scripts/setup.sh"], capture_output=True, text=True, timeout=60, env=where)
    assert done.returncode == 1 and "no root, and no sudo" in done.stderr.splitlines()[-1], done
