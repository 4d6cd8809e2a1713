"""The wheel, made from the release build: what is in it, and that it serves from an environment of its own."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import BINARY, ROOT
from test_install import torch_folder

pytestmark = pytest.mark.skipif(BINARY != ROOT / "build/release/parley", reason="a wheel is made from the release preset")
MOST_BYTES = 60_000_000
# What a wheel may expect of any system (PEP 600), of these the ones in use.
SYSTEM = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libz.so.1", "libpthread.so.0", "librt.so.1", "libdl.so.2", "ld-linux-x86-64.so.2"}


def run(*command, **options) -> subprocess.CompletedProcess:
    """Without the variables that would name another program or another folder of modules."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PARLEY_B", "PYTHON"))}
    return subprocess.run(command, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL, env=clean, **options)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    made = run(ROOT / "packaging/wheel/build.sh", tmp_path_factory.mktemp("wheel"))
    assert made.returncode == 0, made.stderr
    return Path(made.stdout.strip())


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The packages' folder of an environment with the wheel, beside the torch that the tests have: no download."""
    folder = tmp_path_factory.mktemp("environment")
    assert run("/usr/bin/python3", "-m", "venv", "--without-pip", folder).returncode == 0
    packages = next(folder.glob("lib/python3*/site-packages"))
    (packages / "torch").symlink_to(torch_folder())
    (packages / "tests.pth").write_text(f"{torch_folder().parent}\n")
    done = run(sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "-q", "--no-index", "--disable-pip-version-check", wheel)
    assert done.returncode == 0, done.stderr
    return packages


def programs(installed: Path) -> Path:
    return installed.parents[2] / "bin"


def test_it_is_small_and_for_many_systems(wheel):
    version = (ROOT / "VERSION").read_text().strip()
    glibc = re.fullmatch(rf"parley_server-{re.escape(version)}-py3-none-manylinux_2_(\d+)_x86_64\.whl", wheel.name)
    assert glibc and int(glibc[1]) <= 35, wheel.name
    assert wheel.stat().st_size < MOST_BYTES
    for page in ("README.md", "docs/install.md"):
        assert f"pip install ./{wheel.name}" in (ROOT / page).read_text(), f"{page} names another wheel"


def test_the_command_is_the_program(installed):
    expected = run(BINARY, "--version").stdout
    for command in ([programs(installed) / "parley"], [programs(installed) / "python", "-m", "parley"]):
        done = run(*command, "--version")
        assert done.stdout == expected and done.returncode == 0, done.stderr
    wrong = run(programs(installed) / "parley", "fly")
    assert wrong.returncode == 2 and wrong.stderr == run(BINARY, "fly").stderr


def test_torch_in_another_folder_is_found(installed):
    """As in an environment that sees the packages of the system."""
    link = installed / "torch"
    link.rename(installed / "hidden")
    try:
        assert run(installed / "parley/bin/parley", "--version").returncode == 127, "by itself the program finds it beside the package only"
        assert run(programs(installed) / "parley", "--version").returncode == 0
    finally:
        (installed / "hidden").rename(link)


def test_another_torch_is_refused_in_one_line(installed):
    other = installed / "torch-99.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 99.0\n")
    try:
        done = run(programs(installed) / "parley", "--version")
    finally:
        (other / "METADATA").unlink()
        other.rmdir()
    assert done.returncode == 1 and re.fullmatch(r"parley: built with torch [\d.]+, but torch 99.0 is installed: pip install torch==[\d.]+\n", done.stderr), done


SCRIPT = """
import asyncio, urllib.request, parley
async def main():
    with parley.serve() as server:
        assert "<title" in urllib.request.urlopen(server.url).read().decode()
        async with parley.Client(server.url, "chat") as client:
            print((await client.ask("What is your name?", generation={"seed": 1})).text)
        loaded = {line.split()[-1] for line in open(f"/proc/{server.process.pid}/maps") if ".so" in line}
        print(*sorted(loaded))
asyncio.run(main())
"""


def test_it_serves_and_answers(installed, tmp_path):
    """Its model, its page and its libraries, from a folder where nothing else is. It loads nothing of the system but what every system has."""
    done = run(programs(installed) / "python", "-c", SCRIPT, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    answer, loaded = done.stdout.splitlines()
    assert answer == "My name is Parley."
    libraries = [Path(name) for name in loaded.split()]
    ours = [name for name in libraries if name.is_relative_to(installed)]
    torch = [name for name in libraries if name.is_relative_to(torch_folder())]
    assert {name.name for name in torch} == {"libtorch_cpu.so", "libc10.so", "libgomp.so.1"} and len(ours) > 15
    system = {re.sub(r"(\.so\.\d+)[\d.]*$", r"\1", name.name) for name in {*libraries} - {*ours, *torch}}
    assert system <= SYSTEM, system - SYSTEM


def test_every_library_has_its_licence(installed):
    """auditwheel lists in its bill of materials which Debian package each library in the wheel comes from; each must be there with its licence."""
    information = next(installed.glob("parley_server-*.dist-info"))
    materials = json.loads((information / "sboms/auditwheel.cdx.json").read_text())
    inside = {part["name"] for part in materials["components"] if part["purl"].startswith("pkg:deb/")}
    listed = {line.split()[0].partition(":")[0] for line in next(information.rglob("THIRD_PARTY.txt")).read_text().splitlines()[3:]}
    texts = {path.stem: path.read_text(encoding="utf-8") for path in information.rglob("licenses/*.txt")}
    assert len(inside) >= 20 and inside | {"libboost1.81-dev", "nlohmann-json3-dev"} <= listed and all("icense" in texts[package] for package in (*listed, "silero-vad"))
    assert len(list(installed.glob("parley_server.libs/*.so*"))) == sum(part["purl"].startswith("pkg:deb/") for part in materials["components"])
