"""`cmake --install` into its own prefix, and what it installs there."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import BINARY, ROOT, Server

BUILD = BINARY.parent


def run(*command, **options) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, **options)


def torch_folder() -> Path:
    return Path(re.search(r"^TORCH_ROOT:\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M)[1])


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("install") / "usr"
    done = run("cmake", "--install", str(BUILD), "--prefix", str(folder))
    assert done.returncode == 0, done.stderr
    return folder


def test_it_serves_from_there(prefix, tmp_path, monkeypatch):
    """The installed program serves its own model and page from any folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("conftest.BINARY", prefix / "bin/parley")
    server = Server("--config", str(prefix / "etc/parley/parley.toml"), log=tmp_path / "log")
    from realtime import http

    assert http(server, "/health")[0] == 200 and re.search(r"<title[^>]*>Parley</title>", http(server, "/")[1])
    probe = run(prefix / "bin/parley", "probe", "chat", "hi", "--max-new-tokens", "2", "--url", server.http)
    assert server.stop() == 0 and probe.returncode == 0, probe.stderr


def test_it_needs_nothing_of_where_it_was_built(prefix, tmp_path, monkeypatch):
    """Caches, sources and build folder are hidden, as they are from the systemd unit and on other machines."""
    listed = run("readelf", "-d", str(prefix / "bin/parley")).stdout
    assert re.findall(r"(?:RUNPATH|RPATH).*\[(.*)\]", listed) == ["$ORIGIN/../lib/parley"], listed
    hidden = sorted({str(path.resolve()) for path in (torch_folder(), ROOT, BUILD) if not path.resolve().is_relative_to(ROOT)} | {str(ROOT)})
    if run("unshare", "-m", "mount", "-t", "tmpfs", "none", hidden[0]).returncode != 0:
        pytest.skip("NOT TESTED that the installed program runs without the build's LibTorch: unshare -m needs root")
    wrapper = tmp_path / "parley"
    mounts = " && ".join(f"mount -t tmpfs none '{folder}'" for folder in hidden)
    wrapper.write_text(f"#!/bin/sh\ncd '{prefix}'\nexec unshare -m sh -c \"{mounts} && exec '{prefix}/bin/parley' \\\"\\$@\\\"\" parley \"$@\"\n")
    wrapper.chmod(0o755)
    monkeypatch.setattr("conftest.BINARY", wrapper)
    server = Server("--config", str(prefix / "etc/parley/parley.toml"), log=tmp_path / "log")
    maps = open(f"/proc/{server.process.pid}/maps").read()
    from realtime import http

    healthy = http(server, "/health")[0] == 200
    assert server.stop() == 0 and healthy
    assert f"{prefix}/lib/parley/libtorch_cpu.so" in maps and not any(folder + "/" in maps for folder in hidden)


def test_the_manual_tells_all_commands_and_flags(prefix):
    manual = (prefix / "share/man/man1/parley.1").read_text().replace("\\-", "-")
    assert str(prefix / "etc/parley/parley.toml") in manual and "@" not in re.sub(r"\S+@\S+", "", manual)

    def names(*command):
        text = run(BINARY, *command, "--help").stdout
        below = re.findall(r"^  ([a-z-]+) ", text.partition("Subcommands:")[2], re.M)
        for flag in re.findall(r"--[a-z][a-z-]*", text) if not below else ():
            assert flag in manual, (command, flag)
        for name in below:
            yield name
            yield from names(*command, name)

    found = list(names())
    assert {"serve", "probe", "load", "check-config"} <= set(found) and all(name in manual for name in found)
    if shutil.which("man"):
        shown = run("man", "--warnings", "-l", str(prefix / "share/man/man1/parley.1"), env=os.environ | {"MANPAGER": "cat", "MANWIDTH": "140", "LC_ALL": "C.UTF-8"})
        assert shown.returncode == 0 and not shown.stderr and "EXIT STATUS" in shown.stdout


def test_the_unit_starts_what_was_installed(prefix):
    units = prefix / "lib/systemd/system"
    for name, command in (("parley", "serve"), ("parley-gateway", "gateway"), ("parley-worker", "worker")):
        text = (units / f"{name}.service").read_text()
        assert f"ExecStart={prefix}/bin/parley {command} --config {prefix}/etc/parley/parley.toml\n" in text
        handed = dict(re.findall(r"^LoadCredential=(\S+):(\S+)$", text, re.M))
        named = re.findall(r"(PARLEY_[A-Z_]+)=%d/(\S+)", text)
        assert {file for _, file in named} == set(handed) and bool(handed) == (name != "parley")
        assert all(path == f"{prefix}/etc/parley/{file}" for file, path in handed.items())
        environment = os.environ | {variable: f"/run/credentials/{file}" for variable, file in named}
        shown = run(BINARY, "check-config", prefix / "etc/parley/parley.toml", env=environment)
        assert shown.returncode == 0 and all(f'= "/run/credentials/{file}"\n' in shown.stdout for file in handed), shown
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd here")
    checked = run("systemd-analyze", "verify", "--man=no", *(str(unit) for unit in units.glob("*.service")))
    complaints = [line for line in checked.stderr.splitlines() if "parley" in line]
    assert not complaints, complaints


def complete(prefix, *words) -> list[str]:
    """What bash offers as completions of the last word."""
    line = " ".join(f"'{word}'" for word in words)
    script = f"source '{prefix}/share/bash-completion/completions/parley'; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; compopt() {{ :; }}; _parley; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = run("bash", "-c", script)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout.split()


def test_bash_completes(prefix):
    program = str(prefix / "bin/parley")
    assert "serve" in complete(prefix, program, "s") and "check-config" in complete(prefix, program, "")
    assert set(complete(prefix, program, "probe", "")) == {"audio", "video", "chat"}
    assert "--wav" in complete(prefix, program, "probe", "audio", "--w")
    assert "--device" in complete(prefix, program, "serve", "--port", "0", "--d")
    assert {"record.dir=", "record.keep_days="} <= set(complete(prefix, program, "serve", "--set", "record."))
    assert complete(prefix, program, "serve", "--tls", "a") == ["auto"]


def test_the_container_has_every_library(prefix):
    """scripts/image.sh builds the image; the Dockerfile must name the packages of all libraries that are loaded."""
    docker = (ROOT / "packaging/Dockerfile").read_text()
    for sources in re.findall(r"^COPY (?!--from)(.*) \S+$", docker, re.M):
        assert all((ROOT / source).exists() for source in sources.split())
    named = set(re.findall(r"[a-z0-9.+-]+", docker.partition("FROM debian:12\n")[2]))
    loaded = [line.split()[2] for line in run("ldd", prefix / "bin/parley").stdout.splitlines() if "=> /" in line and str(prefix) not in line]
    owners = run("dpkg", "-S", *[os.path.realpath(library) for library in loaded]).stdout
    packages = {line.split(":")[0] for line in owners.splitlines()}
    base = {"libc6", "libgcc-s1", "zlib1g", "liblzma5", "libzstd1"}  # part of every Debian
    assert "libcaf-core0.17" in packages and packages - base <= named, packages - base - named
