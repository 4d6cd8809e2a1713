"""Whatever is wrong with a model folder, `check-model` says so, soon and in little memory. By hand, all of it:
`PARLEY_BROKEN_MODELS=all pytest tests/e2e/test_broken_models.py`."""
import os
import random
import subprocess
import threading

import pytest

from broken_models import BROKEN, sound_folder
from conftest import BINARY

# Each of these once took gigabytes or minutes, or ended a server that `check-model` had let pass.
ONCE_BAD = (
    "config-slice_config.scale_resolution=2147483647", "processor-norm_std=[0, 0, 0]", "config-num_hidden_layers=2147483647", "weights-shape-ones",
    "pickle-one-tensor-often", "voice-prime-rate", "config.json-pipe", "merges.txt-device", "default_voice.wav-pipe",
)
SECONDS, MEGABYTES = 60, 1500  # a sound folder takes 3 s and 300 MB


def names() -> list[str]:
    if os.environ.get("PARLEY_BROKEN_MODELS") == "all":
        return list(BROKEN)
    others = sorted(set(BROKEN) - set(ONCE_BAD))
    return [*ONCE_BAD, *random.Random(os.environ.get("PARLEY_BROKEN_MODELS", "7")).sample(others, 18)]


def check(folder, tmp_path):
    """The exit status, what was said, and the most memory that was used, in megabytes."""
    with open(tmp_path / "said", "w+b") as out:
        process = subprocess.Popen([BINARY, "check-model", str(folder), "--run"], stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        late = threading.Timer(SECONDS, process.kill)
        late.start()
        _, status, used = os.wait4(process.pid, 0)
        late.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        return process.returncode, out.read().decode(errors="replace"), used.ru_maxrss / 1024


def test_there_are_many():
    assert len(BROKEN) > 390 and set(ONCE_BAD) <= set(BROKEN)


def test_a_sound_folder_passes(tmp_path):
    status, said, _ = check(sound_folder(tmp_path / "model"), tmp_path)
    assert status == 0 and "it would run" in said, said


@pytest.mark.parametrize("name", names())
def test_a_broken_folder_is_judged(name, tmp_path):
    folder = sound_folder(tmp_path / "model")
    BROKEN[name](folder)
    status, said, megabytes = check(folder, tmp_path)
    assert status in (0, 1) and "it would" in said, said[-2000:]
    assert megabytes < MEGABYTES, said
    if name in ONCE_BAD and name != "voice-prime-rate":  # a voice that is possible, if unusual
        assert status == 1 and "FAULT" in said, said
