"""The Debian package, made from the release build: what it says of itself, and that the program serves from where it would lie."""
import gzip
import os
import re
import subprocess
from pathlib import Path

import pytest

from conftest import BINARY, ROOT, Server
from realtime import http

pytestmark = pytest.mark.skipif(BINARY != ROOT / "build/release/parley", reason="a package is made from the release preset")


def run(*command, **options) -> subprocess.CompletedProcess:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL, **options)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def package(tmp_path_factory) -> Path:
    """Not compressed, which takes minutes."""
    made = run(ROOT / "packaging/deb/build.sh", tmp_path_factory.mktemp("deb"), env=os.environ | {"PARLEY_DEB_COMPRESSION": "none"})
    return Path(made.stdout.strip())


@pytest.fixture(scope="module")
def tree(package, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tree")
    run("dpkg-deb", "-x", package, folder)
    return folder


def test_it_says_what_it_is_and_needs(package):
    fields = run("dpkg-deb", "-f", package).stdout
    assert f"\nVersion: {(ROOT / 'VERSION').read_text().strip()}\n" in fields
    depends = re.search(r"^Depends: (.*)$", fields, re.M)[1]
    assert "libcaf-core0.17" in depends and "libssl3" in depends and "torch" not in depends, "LibTorch lies in it"
    assert run("dpkg-deb", "-I", package, "conffiles").stdout == "/etc/parley/parley.toml\n"
    listed = run("dpkg-deb", "-c", package).stdout.splitlines()
    assert all(line.split()[1] == "root/root" for line in listed) and not [line for line in listed if "/usr/etc" in line or "/root/" in line]


def test_units_and_manual_name_where_things_lie(tree):
    unit = (tree / "usr/lib/systemd/system/parley.service").read_text()
    assert "ExecStart=/usr/bin/parley serve --config /etc/parley/parley.toml\n" in unit
    manual = gzip.decompress((tree / "usr/share/man/man1/parley.1.gz").read_bytes()).decode()
    assert "/etc/parley/parley.toml" in manual and "/usr/etc" not in manual
    licences = (tree / "usr/share/doc/parley-server/copyright").read_text()
    assert "Apache-2.0" in licences and "PyTorch" in licences
    assert not list((tree / "usr/lib/parley").glob("*test*")), "what only PyTorch's tests need stays away"


def test_it_serves_from_there(tree, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("conftest.BINARY", tree / "usr/bin/parley")
    server = Server("--config", str(tree / "etc/parley/parley.toml"), log=tmp_path / "log")
    maps = Path(f"/proc/{server.process.pid}/maps").read_text()
    healthy = http(server, "/health")[0] == 200
    run(tree / "usr/bin/parley", "probe", "chat", "hi", "--max-new-tokens", "2", "--url", server.http)
    assert server.stop() == 0 and healthy and f"{tree}/usr/lib/parley/libtorch_cpu.so" in maps
