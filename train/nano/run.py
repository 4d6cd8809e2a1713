"""Shared by the training loops: checkpoints that survive a kill, progress lines, the work folder."""
import json, os, pathlib, time
import torch


def work():
    """The folder for data, checkpoints and logs: $NANO_WORK, else ~/.cache/parley/train."""
    path = pathlib.Path(os.environ.get("NANO_WORK", pathlib.Path.home() / ".cache/parley/train"))
    path.mkdir(parents=True, exist_ok=True)
    return path


def newest(*names):
    """The path of the first of these states that exists, or None."""
    return next((work() / name for name in names if (work() / name).exists()), None)


def save(path, **state):
    torch.save(state, str(path) + ".part")
    os.replace(str(path) + ".part", path)


class Clock:
    """CPU seconds trained, summed over resumed runs. On a shared machine, wall time could end a run that hardly ran."""

    def __init__(self, before=0.0):
        self.before, self.start = before, time.process_time()

    def __call__(self):
        return self.before + time.process_time() - self.start

    def share(self, budget):
        """The share of `budget` seconds that is spent; all of it if there is none."""
        return self() / budget if budget else 1.0


class Deadline:
    """The elapsed share of the wall time until $NANO_UNTIL (seconds since the epoch); 0 if unset. For shared machines
    that are available for a limited time."""

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
