"""Which build of LibTorch ./run and scripts/setup.sh install: the small one for CPUs, or the one that this machine's NVIDIA driver can run."""
import os
import re
import subprocess

import pytest

from conftest import ROOT

NEWEST = re.search(r"^torch==(\S+)$", (ROOT / "scripts/requirements.txt").read_text(), re.M)[1]
CPU, CUDA_13, CUDA_12 = f"torch=={NEWEST}", f"torch==={NEWEST}", "torch===2.10.0"

# As nvidia-smi prints them.
H200 = """Mon Jan  5 10:12:43 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.159.04             Driver Version: 580.159.04     CUDA Version: 13.0     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
|   0  NVIDIA H200                    Off |   00000000:00:04.0 Off |                    0 |
"""
NEWER = "| NVIDIA-SMI 595.45.04              KMD Version: 595.45.04     CUDA UMD Version: 13.2     |\n"
OLDER = "| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |\n"
TOO_OLD = "| NVIDIA-SMI 470.57.02    Driver Version: 470.57.02    CUDA Version: 11.4     |\n"
NO_LIBRARY = "| NVIDIA-SMI 535.129.03             Driver Version: 535.129.03   CUDA Version: N/A      |\n"
NO_DRIVER = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\n"
NO_GPU = "No devices were found\n"


def wheel(printed: str, wish: str = "") -> tuple[str, str]:
    """What pip is asked for, and what people are told."""
    done = subprocess.run(["bash", "-c", 'set -euo pipefail; source scripts/torch_wheel.sh; torch_wheel "$1" "$2"', "_", printed, wish], cwd=ROOT, capture_output=True,
                          text=True, check=True)
    requirement, notice = done.stdout.removesuffix("\n").split("\t")
    return requirement, notice


@pytest.mark.parametrize(
    "printed, wish, requirement, notice",
    [
        ("", "", CPU, ""),
        (H200, "", CUDA_13, "2.7 GB to download"),
        (NEWER, "", CUDA_13, "2.7 GB to download"),
        (OLDER, "", CUDA_12, "4.1 GB to download"),
        (TOO_OLD, "", CPU, "runs CUDA 11 at most"),
        (NO_LIBRARY, "", CPU, "no GPU with a driver that works"),
        (NO_DRIVER, "", CPU, "no GPU with a driver that works"),
        (NO_GPU, "", CPU, "no GPU with a driver that works"),
        (H200, "cpu", CPU, ""),
        ("", "cuda", CUDA_13, "2.7 GB to download"),
        (OLDER, "cuda", CUDA_13, "2.7 GB to download"),
    ],
)
def test_the_driver_decides(printed, wish, requirement, notice):
    chosen, told = wheel(printed, wish)
    assert chosen == requirement and notice in told and bool(notice) == bool(told)


@pytest.fixture
def machine(tmp_path):
    """Runs a script of this project where pip only notes what it is asked for, and nothing can be built. Returns these notes and what was said."""
    bin, python = tmp_path / "bin", tmp_path / "cache/venv/bin/python"
    bin.mkdir()
    python.parent.mkdir(parents=True)

    def program(path, text):
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)

    def run(*command: str, smi: str | None = None, has_cpu_builds: bool = True) -> tuple[list[str], str]:
        notes = tmp_path / "notes"
        notes.write_text("", encoding="utf-8")
        refuses = "" if has_cpu_builds else 'case "$*" in *+cpu) exit 1 ;; esac'
        program(python, f"""for word; do case $word in --no-deps | torch* | nvidia*) echo "$word" >>'{notes}' ;; esac; done\n{refuses}""")
        program(bin / "cmake", "exit 1")
        program(bin / "apt-get", "exit 1")
        (bin / "nvidia-smi").unlink(missing_ok=True)
        if smi is not None:
            program(bin / "nvidia-smi", f"cat <<'END'\n{smi}END")
        path = os.pathsep.join((str(bin), *(folder for folder in os.environ["PATH"].split(os.pathsep) if not os.path.exists(f"{folder}/nvidia-smi"))))
        environment = {name: value for name, value in os.environ.items() if name != "PARLEY_TORCH"}
        done = subprocess.run([ROOT / command[0], *command[1:]], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                              env=environment | {"PATH": path, "PARLEY_CACHE": str(tmp_path / "cache")})
        return notes.read_text(encoding="utf-8").split(), done.stderr

    return run


def test_without_a_gpu_the_small_build_is_taken_once(machine):
    asked, said = machine("scripts/setup.sh")
    assert asked == [f"{CPU}+cpu", CPU] and "GB" not in said
    assert machine("scripts/setup.sh") == ([], "")


PART = ["--no-deps", CPU, "nvidia-cuda-runtime==13.0.*", "nvidia-cuda-cupti==13.0.*"]


def test_where_pip_knows_no_small_build_part_of_the_other_is_taken(machine):
    asked, said = machine("scripts/setup.sh", has_cpu_builds=False)
    assert asked == [f"{CPU}+cpu", *PART] and "0.5 GB" in said and "PIP_EXTRA_INDEX_URL" in said
    assert machine("scripts/setup.sh", has_cpu_builds=False) == ([], "")
    asked, said = machine("scripts/setup.sh", "tests", has_cpu_builds=False)
    assert asked == [f"{CPU}+cpu", CPU] and "2.7 GB" in said, "tests use it from Python"
    assert machine("scripts/setup.sh", has_cpu_builds=False)[0] == []


def test_a_gpu_completes_the_part(machine):
    machine("scripts/setup.sh", has_cpu_builds=False)
    assert machine("scripts/setup.sh", smi=H200, has_cpu_builds=False)[0] == [CUDA_13]


def test_a_gpu_that_comes_later_brings_its_build_which_then_stays(machine):
    machine("scripts/setup.sh")
    asked, said = machine("scripts/setup.sh", smi=H200)
    assert asked == [CUDA_13] and "2.7 GB to download" in said and said.index("2.7 GB") < said.index("installing")
    assert machine("scripts/setup.sh")[0] == [], "it runs on a CPU as well"


@pytest.mark.parametrize("smi, wheel", [(H200, CUDA_13), (OLDER, CUDA_12)])
def test_the_build_for_a_gpu_is_kept_when_the_cpu_is_asked_for(machine, smi, wheel):
    assert machine("run", smi=smi)[0] == [wheel]
    assert machine("run", "--device", "cpu", smi=smi)[0] == []


def test_run_installs_the_small_build_for_the_cpu(machine):
    assert machine("run", "--device", "cpu", "--port", "0", smi=H200)[0] == [f"{CPU}+cpu", CPU]
    assert machine("run", "--device", "cuda:0", smi=H200)[0] == [CUDA_13]
