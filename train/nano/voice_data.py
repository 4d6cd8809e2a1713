"""Reads the corpus that `nano.voice` wrote."""
import torch
from .run import work


def corpus(name):
    data = torch.load(work() / f"{name}.pt")
    data["heard"], data["mel"] = data["heard"].float(), data["mel"].float()
    return data


def windows(data, n, count):
    """`count` random cuts of n tokens: (tokenizer mel [B,4n,128], mel [B,2n,80])."""
    starts = torch.randint(0, len(data["mel"]) // 2 - n, (count,)).tolist()
    return torch.stack([data["heard"][4 * a:4 * (a + n)] for a in starts]), torch.stack([data["mel"][2 * a:2 * (a + n)] for a in starts])


def utterance(data, i):
    a, n = data["first"][i], data["length"][i]
    return data["heard"][None, 4 * a:4 * (a + n)], data["mel"][None, 2 * a:2 * (a + n)]
