"""Makes batches ahead in worker processes ($NANO_WORKERS; default none: between steps) and moves them to the training
device."""
import os, random
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


def device():
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def scale():
    """How many CPU batches make up one step ($NANO_SCALE): a GPU needs bigger batches."""
    return float(os.environ.get("NANO_SCALE", 1))


class _Stream(IterableDataset):
    def __init__(self, make, seed):
        self.make, self.seed = make, seed

    def __iter__(self):
        info = get_worker_info()
        torch.set_num_threads(1)
        return iter(self.make(random.Random(self.seed * 1000 + (info.id if info else 0))))


def _move(x, to):
    if isinstance(x, torch.Tensor):
        return x.to(to, non_blocking=True)
    if isinstance(x, dict):
        return {k: _move(v, to) for k, v in x.items()}
    return type(x)(_move(v, to) for v in x) if isinstance(x, (list, tuple)) else x


def feed(make, seed):
    """make(r) is an endless generator of batches (tensors in tuples, lists or dicts); yields them on the device."""
    workers = int(os.environ.get("NANO_WORKERS", 0))
    stream, to = _Stream(make, seed), device()
    source = DataLoader(stream, batch_size=None, num_workers=workers, prefetch_factor=4) if workers else stream
    for batch in source:
        yield _move(batch, to)


def grouped(pool, size, cost):
    """Sorts a pool by size and cuts it into groups of about `cost` = members x largest size."""
    groups, group = [], []
    for item in sorted(pool, key=size):
        group.append(item)
        if len(group) * size(item) >= cost:
            groups.append(group)
            group = []
    return groups
