"""Stage 2c: the vision tower and the resampler. usage: python -m nano.train_tower CPU_SECONDS PEAK_LR [pictures of the gallery]

Every row of a picture is trained towards the LLM's (frozen) input embedding of its word (`sights.fields`). A head used only in training names colour and
shape at each patch that a shape covers: from the rows alone, the tower takes ten times longer for shapes than for colours. If the joint stage has a state,
its frozen LLM reads the rows too and has to answer correctly. At the end the gallery is made: rows of pictures for the joint stage."""
import random, sys
import numpy as np
import torch
import torch.nn.functional as F
from . import layouts, pictures, shipped, sights
from .half import Fast, worthwhile
from .model import Nano
from .optim import Optimizer, schedule
from .run import Clock, Deadline, Log, save, work
from .tokenizer import Text
from .tower import TOWER, Tower
from .train_ctc import load_llm
from .train_joint import spliced_loss
from .train_text import pad

FORM_WEIGHTS = [4, 4, 1, 2]
SHARPNESS = 20  # factor on the distances to the embeddings, as in the token CTC loss


class Album:
    """Batches of pictures: a third are new, the others repeat, half of those mirrored."""

    def __init__(self, r, g, most=1500):
        self.r, self.g, self.most, self.kept = r, g, most, {form: [] for form in pictures.FORMS}

    def new(self, form):
        sight = sights.random_sight(self.r, other=True)
        return *pictures.draw_masked(self.g, sight, *form, plain=self.r.random() < .2), sight

    def batch(self, n):
        """(patches [n,L,588], rows, columns, sights, covered [n,L])."""
        form = self.r.choices(pictures.FORMS, FORM_WEIGHTS)[0]
        kept = self.kept[form]
        fresh = [self.new(form) for _ in range(n if len(kept) < 3 * n else n // 3)]
        chosen = fresh + [self.mirrored(*self.r.choice(kept)) if self.r.random() < .5 else self.r.choice(kept) for _ in range(n - len(fresh))]
        for one in fresh:
            kept.append(one) if len(kept) < self.most else kept.__setitem__(self.r.randrange(self.most), one)
        cut = [pictures.patches(c[0]) for c in chosen]
        return torch.stack([c[0] for c in cut]), cut[0][1], cut[0][2], [c[2] for c in chosen], torch.stack([torch.from_numpy(c[1]).flatten() for c in chosen])

    @staticmethod
    def mirrored(picture, mask, sight):
        across = dict(left="right", right="left").get(sight.across, sight.across)
        return picture[:, ::-1].copy(), mask[:, ::-1].copy(), sight._replace(across=across)


class Namer(torch.nn.Module):
    """Classifies patches: nothing, or which colour and which shape."""

    def __init__(self):
        super().__init__()
        self.colour, self.shape = torch.nn.Linear(TOWER["d"], len(sights.COLOURS) + 1), torch.nn.Linear(TOWER["d"], len(sights.SHAPES) + 1)

    def loss(self, states, shown, covered):
        colour, shape = (torch.tensor([names.index(getattr(s, field)) + 1 for s in shown])[:, None].expand_as(covered)
                         for names, field in ((sights.COLOURS, "colour"), (sights.SHAPES, "shape")))
        sure = (covered > .25) | (covered < .01)
        named = lambda head, names: F.cross_entropy(head(states)[sure], torch.where(covered > .25, names, 0)[sure], weight=torch.tensor([.1] + [1.0] * (head.out_features - 1), dtype=states.dtype))
        return named(self.colour, colour) + named(self.shape, shape)


def batch(r, g, n, held=False):
    """(patches [n,L,588], rows, columns, sights); all pictures of a batch have the same size."""
    width, height = r.choices(pictures.FORMS, FORM_WEIGHTS)[0]
    shown = [sights.random_sight(r, held, other=not held) for _ in range(n)]
    cut = [pictures.patches(pictures.draw(g, s, width, height, plain=r.random() < .2)) for s in shown]
    return torch.stack([c[0] for c in cut]), cut[0][1], cut[0][2], shown


class Words:
    """The table of target embeddings, and the entry for each row of a sight."""

    def __init__(self, text, table):
        self.tokens, self.blank = sights.word_tokens(text), text.id["<|audio|>"]
        self.table = torch.cat([table[:text.base], table[self.blank][None]]).detach()
        self.last = text.base

    def targets(self, shown):
        rows = torch.tensor([sights.fields(s, self.tokens, self.blank) for s in shown])
        return torch.where(rows == self.blank, self.last, rows)

    def scores(self, rows):
        return SHARPNESS * (rows @ self.table.T - .5 * self.table.pow(2).sum(1))


def reader():
    """The frozen model of the joint stage, else a shipped one that sees, else None."""
    path, nano = work() / "joint.pt", Nano()
    if path.exists():
        nano.load_state_dict({k.removeprefix("nano."): v for k, v in torch.load(path, map_location="cpu")["model"].items()}, strict=False)
    elif not (shipped.weights("vpm.") and shipped.begin(nano, "llm.")):
        return None
    return (nano.bfloat16() if worthwhile() else nano).requires_grad_(False)


def answers_loss(nano, text, r, shown, rows):
    """The loss of the frozen LLM when it answers a question about each picture from its rows."""
    ids, weights = pad([layouts.chat(text, r, [layouts.about_picture(r, sight)], shown={0}) for sight in shown])
    return spliced_loss(nano, ids, weights, rows)[0]


@torch.no_grad()
def check(tower, words, seed, n=256, held=False):
    """Share of correct values for each of the five fields, over the pictures where it says something; and share of
    pictures with all fields correct."""
    r, g, right, of = random.Random(seed), np.random.default_rng(seed), torch.zeros(6), torch.zeros(6)
    for _ in range(n // 32):
        x, rows, columns, shown = batch(r, g, 32, held)
        hit = words.scores(tower(x, rows, columns))[:, :5].argmax(-1) == words.targets(shown)[:, :5]
        known = torch.tensor([[s.number > 0] * 3 + [s.number == 1] * 2 for s in shown])
        right += torch.cat([(hit & known).sum(0), hit.all(1).sum()[None]])
        of += torch.cat([known.sum(0), torch.tensor([len(shown)])])
    return dict(zip(("colour", "shape", "number", "down", "across", "all"), (right / of).tolist()))


@torch.no_grad()
def make_gallery(tower, n, seed):
    r, g, shown, rows = random.Random(seed), np.random.default_rng(seed), [], []
    while len(shown) < n:
        x, h, w, more = batch(r, g, 32)
        rows.append(tower(x, h, w).bfloat16())
        shown += [tuple(s) for s in more]
    save(work() / "gallery.pt", sights=shown, rows=torch.cat(rows))


def main():
    budget, peak, n = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 6000
    torch.set_num_threads(1)
    torch.manual_seed(4)
    text, tower, nano, log, path = Text(work() / "tokenizer"), Tower(), Nano(), Log("tower"), work() / "tower.pt"
    load_llm(nano)
    words = Words(text, nano.llm.model.embed_tokens.weight)
    step, clock, state = 0, Clock(), torch.load(path, map_location="cpu") if path.exists() else None
    if state:
        tower.load_state_dict(state["model"])
        step, clock = state["step"], Clock(state["seconds"])
    else:
        shipped.begin(tower, "vpm.", "resampler.")
    tower.namer = Namer()
    opt = Optimizer(tower, ["vpm", "resampler", "namer"])
    if state:
        tower.namer.load_state_dict(state["namer"])
        opt.load_state_dict(state["opt"])
    fast, sums, count, mind, r = Fast(tower), torch.zeros(4), 0, reader(), random.Random(51 + step)
    keep = lambda: save(path, model={k: v for k, v in tower.state_dict().items() if not k.startswith("namer")}, namer=tower.namer.state_dict(), opt=opt.state_dict(), step=step, seconds=clock())
    album, deadline = Album(random.Random(50 + step), np.random.default_rng(50 + step)), Deadline()
    while (done := max(clock.share(budget), deadline())) < 1:
        x, rows, columns, shown, covered = album.batch(32)
        states, got = (t.float() for t in fast.net.both(x.to(next(fast.net.parameters()).dtype), rows, columns))
        want, patch = words.targets(shown), fast.net.namer.loss(states.to(next(fast.net.parameters()).dtype), shown, covered)
        named = F.cross_entropy(words.scores(got).flatten(0, 1), want.flatten())
        far = (got - words.table[want]).pow(2).mean() / words.table.var()
        answers = answers_loss(mind, text, r, shown[:14], got[:14]) if mind else named * 0
        (named + .5 * far + patch + answers).backward()
        fast.collect()
        opt.step(schedule(done, step, peak))
        fast.refresh()
        step, count = step + 1, count + 1
        sums += torch.stack([named, far, patch, answers]).detach().float()
        if step % 50 == 0:
            log(step=step, s=clock(), named=float(sums[0] / count), far=float(sums[1] / count), patch=float(sums[2] / count), answers=float(sums[3] / count))
            sums, count = torch.zeros(4), 0
        if step % 200 == 0:
            keep()
            log(step=step, s=clock(), **check(tower, words, 60))
    keep()
    log(step=step, s=clock(), **{f"held_{k}": v for k, v in check(tower, words, 61, held=True).items()})
    make_gallery(tower, n, 62)


if __name__ == "__main__":
    main()
