"""Shared by the training loops: checkpoints that survive a kill, progress lines, the work folder."""
import json, os, pathlib, time
import torch


def work():
    """Folder of data, checkpoints and logs: $NANO_WORK, else ~/.cache/parley/train."""
    path = pathlib.Path(os.environ.get("NANO_WORK", pathlib.Path.home() / ".cache/parley/train"))
    path.mkdir(parents=True, exist_ok=True)
    return path


def save(path, **state):
    torch.save(state, str(path) + ".part")
    os.replace(str(path) + ".part", path)


class Clock:
    """CPU seconds trained, over all resumed runs: on a shared machine the wall clock would end a run that hardly ran."""

    def __init__(self, before=0.0):
        self.before, self.start = before, time.process_time()

    def __call__(self):
        return self.before + time.process_time() - self.start


class Deadline:
    """The share of the wall time until $NANO_UNTIL (seconds since the epoch) that is over; 0 where that is not set. For a machine that is lent for a time and shared."""

    def __init__(self):
        self.start, self.end = time.time(), float(os.environ.get("NANO_UNTIL", "inf"))

    def __call__(self):
        return (time.time() - self.start) / (self.end - self.start)


class Log:
    """One JSON line per report, to the screen and to NAME.jsonl in the work folder."""

    def __init__(self, name):
        self.path = work() / f"{name}.jsonl"

    def __call__(self, **values):
        line = json.dumps({k: round(v, 4) if isinstance(v, float) else v for k, v in values.items()})
        print(line, flush=True)
        with open(self.path, "a") as f:
            f.write(line + "\n")
