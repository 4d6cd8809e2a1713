"""Trains one model in several processes, each with its own core and batches; a step follows the mean of their gradients. usage: python -m nano.together PROCESSES STAGE [ARGUMENTS ...]

Two processes do twice the work of one (70 units a second each in the joint stage, 67 alone). The first process logs and saves."""
import os, pathlib, subprocess, sys, tempfile
import torch
import torch.distributed as dist


class Crew:
    """The group of processes started by `nano.together`, seen from one of them. If this process
    was started alone, the methods do nothing."""

    def __init__(self):
        self.rank, self.size = int(os.environ.get("NANO_RANK", 0)), int(os.environ.get("NANO_CREW", 1))
        self.first = self.rank == 0
        if self.size > 1:
            dist.init_process_group("gloo", init_method=f"file://{os.environ['NANO_MEETING']}", rank=self.rank, world_size=self.size)

    def agreed(self, value):
        """Returns the first process's value in all of them."""
        if self.size == 1:
            return value
        number = torch.tensor(value, dtype=torch.float64)
        dist.broadcast(number, 0)
        return float(number)

    def agree(self, params):
        """Copies the first process's parameters to all of them."""
        for p in params if self.size > 1 else ():
            dist.broadcast(p.data, 0)

    def average(self, params):
        """Replaces gradients by their mean over the processes; an unused parameter counts as zero."""
        if self.size == 1:
            return
        flat = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in params])
        dist.all_reduce(flat)
        for p, part in zip(params, flat.div_(self.size).split([p.numel() for p in params])):
            p.grad = part.view_as(p)


def main():
    size, stage, *arguments = sys.argv[1:]
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        crew = [subprocess.Popen([sys.executable, "-m", f"nano.{stage}", *arguments], preexec_fn=lambda k=k: os.sched_setaffinity(0, {cores[k % len(cores)]}),
                                 env=dict(os.environ, NANO_RANK=str(k), NANO_CREW=size, NANO_MEETING=str(pathlib.Path(folder) / "meeting"))) for k in range(int(size))]
        try:
            codes = [p.wait() for p in crew]
        finally:
            for p in crew:
                p.poll() is None and p.terminate()
    sys.exit(max(map(abs, codes)))


if __name__ == "__main__":
    main()
