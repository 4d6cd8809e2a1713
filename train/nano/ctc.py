"""Two CTC losses for the encoder: phonemes at 50 Hz on its states, tokens at 10 Hz on its rows.

The token scores are distances to the LLM's own (frozen) input embeddings, with the embedding of <|audio|> as the blank. This moves the rows to
where the LLM can read them."""
import json, os, re, subprocess
import torch
import torch.nn as nn
import torch.nn.functional as F
from .run import work

# $NANO_PHONES: how far espeak's phonemes are merged, so that the encoder is not tied to its vowels. "espeak": not at all; "allophones": variants
# of one phoneme, and the vowels that accents swap; "classes": vowels by five places in the mouth.
ALLOPHONES = str.maketrans({"2": None, "L": "l"} | {"V": "@", "3": "@", "0": "A", "e": "E"})
CLASSES = str.maketrans({"2": None, "L": "l"} | {"I": "i", "e": "E", "a": "E", "V": "@", "3": "@", "0": "A", "O": "A", "o": "A", "U": "u"})
MERGED = {"espeak": {}, "allophones": ALLOPHONES, "classes": CLASSES}[os.environ.get("NANO_PHONES", "allophones")]


class Phonemes:
    """Words -> espeak's phoneme letters, merged; 0 is the CTC blank, the last symbol a word gap. The labels of every voice, flite's and festival's
    too: two synthesisers differ in their vowels as two people do, and what counts is the word."""

    def __init__(self, words):
        path = work() / "phonemes.json"
        known = json.loads(path.read_text()) if path.exists() else {}
        missing = sorted(set(words) - set(known))
        for w in missing:
            out = subprocess.run(["espeak-ng", "-q", "-x", "-v", "en-us", w], capture_output=True, text=True).stdout
            known[w] = re.sub(r"[^A-Za-z0-9@]", "", out)
        if missing:
            path.write_text(json.dumps(known))
        self.words = known
        symbols = [chr(c) for c in range(48, 123) if chr(c).isalnum() or chr(c) == "@"]  # fixed, so that checkpoints do not depend on the word list
        self.index = {c: i + 1 for i, c in enumerate(symbols)}
        self.gap = len(symbols) + 1
        self.size = len(symbols) + 2

    def __call__(self, text):
        return [self.gap] + [k for w in text.split() for k in [self.index[c] for c in self.words[w].translate(MERGED)] + [self.gap]]


class Heads(nn.Module):
    """Training-only parameters; none of them is exported."""

    def __init__(self, d, phonemes):
        super().__init__()
        self.phoneme = nn.Linear(d, phonemes)
        self.scale, self.bias = nn.Parameter(torch.tensor(.7)), nn.Parameter(torch.tensor(0.0))

    def token_scores(self, rows, table, blank):
        """rows [B,T,H], table [N,H] frozen text embeddings, blank [H] -> log-probabilities [B,T,1+N]; index 0 is the blank."""
        scale = self.scale.exp() * 10
        all_ = torch.cat([blank[None], table])
        scores = scale * (rows @ all_.T - .5 * all_.pow(2).sum(1))
        return torch.cat([scores[..., :1] + self.bias, scores[..., 1:]], -1).log_softmax(-1)


def loss(log_probs, targets, lengths=None):
    """log_probs [B,T,N], targets: list of id lists (blank = 0 not among them) -> mean loss per symbol."""
    n = torch.tensor([len(t) for t in targets])
    steps = torch.full((len(targets),), log_probs.shape[1]) if lengths is None else lengths
    flat = torch.tensor([k for t in targets for k in t], device=log_probs.device)
    return F.ctc_loss(log_probs.transpose(0, 1), flat, steps, n, zero_infinity=True)


def agreement(log_probs):
    """Consistency of twins: clips 2k and 2k+1 are the same, warped in two ways, and should be heard alike (CR-CTC). [B,T,N]"""
    a, b = log_probs[0::2], log_probs[1::2]
    return .5 * (F.kl_div(a, b.detach(), reduction="none", log_target=True) + F.kl_div(b, a.detach(), reduction="none", log_target=True)).sum(-1).mean()


def greedy(scores):
    """[T,N] -> symbols after merging repeats and dropping blanks."""
    best = scores.argmax(-1).tolist()
    return [k for i, k in enumerate(best) if k and (i == 0 or k != best[i - 1])]


def distance(a, b):
    """Edit distance of two lists."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        last, row[0] = row[:], i + 1
        for j, y in enumerate(b):
            row[j + 1] = min(last[j] + (x != y), row[j] + 1, last[j + 1] + 1)
    return row[-1]
