"""Stage 2: encoder and projector alone. usage: python -m nano.train_ctc CPU_SECONDS PEAK_LR [tokens]; without "tokens" only phonemes are trained (no text model needed)."""
import functools, itertools, json, os, sys
import torch
from . import ctc, mel, mixing, shipped
from .feed import device, feed, scale
from .half import Fast
from .model import Nano, hidden
from .optim import Optimizer, schedule
from .run import Clock, Deadline, Log, save, work
from .together import Crew
from .tokenizer import Text


TWINS = float(os.environ.get("NANO_TWINS", .2))  # weight of the consistency between two warps of each clip; 0: no twins
CHECKED = ("test_voices", "test_phrasings", "test_words", "test_flite_slt", "test_flite_awb", "test_flite")
UNITS_PER_CACHE = 29  # units after which the streaming encoder empties its cache


class Hearing(torch.nn.Module):
    def __init__(self, phonemes):
        super().__init__()
        self.nano = Nano()
        self.heads = ctc.Heads(self.nano.c["ad"], phonemes)


def encode(nano, x, shift=0, at=0):
    """mel [B,T,80] -> (states [B,T/2,d], rows [B,T/10,H]); shift moves the unit borders, `at` the positions."""
    h = nano.apm.front(x)
    block = (torch.arange(h.shape[1], device=x.device) + shift) // 50
    h = nano.apm.body(h, at, hidden(block[None] > block[:, None], h))
    return h.float(), nano.audio_projection_layer(h).float()


def batch(bank, r, frames=9000):
    """Clips of similar length with noise: (mel [B,T,80], texts). Each clip stands there twice, in two warps at the same time, if there are twins."""
    s, most = r.randrange(0, max(1, len(bank) - 400)), int(frames * scale())
    ids = [r.choice(bank.by_length[s:s + 400]) for _ in range(most // 100)]
    clips, total = [], 0
    for i in ids:
        record, start, m = bank.records[i], r.randrange(2, 26), mixing.warp(bank[i], 1, r.uniform(.88, 1.12) if r.random() < .5 else 1)
        if not record["text"]:  # another language
            continue
        total = max(total, len(m) + 30)
        clips += [(start, mixing.vary_voice(r, m), record["text"]) for _ in range(2 if TWINS else 1)]
        if total * len(clips) > most:
            break
    T = -(-total // 10) * 10
    xs = []
    for start, m, _ in clips:
        x = mixing.mix(r, [(start, m)], T, bank=bank).clamp(min=1e-10).log10()
        x = torch.maximum(x, x.max() - 8) if r.random() < .7 else x
        xs.append(mixing.mask_band(r, (x + 4) / 4))
    return torch.stack(xs), [t for _, _, t in clips]


def batches(bank, text, phonemes, r):
    """Endless steps: mel, phoneme targets, token targets, shift of the unit borders, first position."""
    while True:
        x, texts = batch(bank, r)
        yield x, [phonemes(t) for t in texts], [[k + 1 for k in text.spoken(t)] for t in texts], r.randrange(50), r.randrange(0, 1500 - x.shape[1] // 2)


def check(model, text, phonemes, name, n=80):
    """Phoneme error rate and share of exact token sequences on a held-out set, at 20 dB."""
    import numpy as np
    records, waves = json.loads((work() / f"{name}.json").read_text()), np.load(work() / f"{name}.npz")
    errors = symbols = exact = 0
    model.eval()
    with torch.no_grad():
        for i in range(n):
            y = waves[f"w{i}"].astype(np.float32) / 32768
            y = np.pad(y, 3000) + np.random.default_rng(i).standard_normal(len(y) + 6000).astype(np.float32) * y.std() * .1
            x = mel.offline(y)
            h, rows = encode(model.nano, x[None, :len(x) // 10 * 10].to(device()))
            want = phonemes(records[i]["text"])
            errors += ctc.distance(ctc.greedy(model.heads.phoneme(h)[0]), want)
            symbols += len(want)
            got = [k - 1 for k in ctc.greedy(token_scores(model, text, rows)[0])]
            exact += got == text.spoken(records[i]["text"])
    return errors / symbols, exact / n


def token_scores(model, text, rows):
    table = model.nano.llm.model.embed_tokens.weight.detach()
    return model.heads.token_scores(rows, table[:text.base], table[text.id["<|audio|>"]])


def learn_heads(model, text, nano, steps, tokens, most=200):
    """Fits untrained heads to an encoder that is already good; otherwise their errors would spoil it first."""
    opt = torch.optim.AdamW(model.heads.parameters(), lr=5e-3, weight_decay=0)
    for x, phones, heard, shift, at in itertools.islice(steps, most):
        with torch.no_grad():
            h, rows = encode(nano, x, shift, at)
        loss = ctc.loss(model.heads.phoneme(h).log_softmax(-1), phones)
        if tokens:
            loss = loss + .5 * ctc.loss(token_scores(model, text, rows), heard)
        loss.backward()
        opt.step()
        opt.zero_grad()
    print(f"heads fitted to the shipped encoder: loss per symbol {float(loss.detach()):.3f}", flush=True)


def load_llm(nano):
    """The LLM of the text stage, else the shipped one."""
    path = work() / "text.pt"
    if path.exists():
        nano.load_state_dict({k: v for k, v in torch.load(path, map_location="cpu")["model"].items() if k.startswith("llm.")}, strict=False)
    elif not shipped.begin(nano, "llm."):
        raise SystemExit("neither text.pt nor a shipped LLM")


def main():
    budget, peak, tokens = float(sys.argv[1]), float(sys.argv[2]), "tokens" in sys.argv
    torch.set_num_threads(1)
    torch.manual_seed(1)
    crew = Crew()
    text, bank, log = Text(work() / "tokenizer"), mixing.Bank(), Log("ctc" if tokens else "phones")
    sets = [json.loads((work() / f"{n}.json").read_text()) for n in CHECKED]
    phonemes = ctc.Phonemes(w for q in bank.records + [q for s in sets for q in s] for w in q["text"].split())
    model, path = Hearing(phonemes.size), work() / ("ctc.pt" if tokens else "phones.pt")
    step, clock = 0, Clock()
    source = path if path.exists() else work() / "phones.pt"
    state = torch.load(source, map_location="cpu") if source.exists() else None
    if state:
        model.load_state_dict(state["model"])
        if source == path:
            step, clock = state["step"], Clock(state["seconds"])
    begun = not state and shipped.begin(model.nano, "apm.", "audio_projection_layer.")
    if tokens:
        load_llm(model.nano)
    model.to(device()).nano.llm.requires_grad_(False)
    opt = Optimizer(model, ["nano.apm", "heads", *(["nano.audio"] if tokens else [])])
    if state and state["opt"] and source == path:
        opt.load_state_dict(state["opt"])
    fast = Fast(model.nano)
    sums, count, units, deadline = torch.zeros(3), 0, 0, Deadline()
    keep = lambda: save(path, model=model.state_dict(), opt=opt.state_dict(), step=step, seconds=clock())
    steps = feed(functools.partial(batches, bank, text, phonemes), 7 + step + 100_000 * crew.rank)
    if begun:
        learn_heads(model, text, fast.net, steps, tokens)
        crew.agree(model.heads.parameters())
    for x, phones, heard, shift, at in steps:
        done = crew.agreed(max(clock.share(budget), deadline()))
        if done >= 1:
            break
        h, rows = encode(fast.net, x, shift, at)
        sounds = model.heads.phoneme(h).log_softmax(-1)
        phone = ctc.loss(sounds, phones)
        token = ctc.loss(token_scores(model, text, rows), heard) if tokens else phone * 0
        apart = ctc.agreement(sounds) if TWINS else phone * 0
        (phone + .5 * token + TWINS * apart).backward()
        fast.collect()
        crew.average(opt.params)
        opt.step(schedule(done, step, peak))
        fast.refresh()
        step, count, units = step + 1, count + 1, units + x.shape[0] * x.shape[1] / 100
        sums += torch.stack([phone, token, apart]).detach().cpu()
        if step % 50 == 0 and crew.first:
            log(step=step, s=clock(), phone=float(sums[0] / count), token=float(sums[1] / count), apart=float(sums[2] / count), units_s=units / (clock() - clock.before))
            sums, count = torch.zeros(3), 0
            keep()
        if step % 400 == 0 and crew.first:
            log(step=step, s=clock(), **{f"{n}_per": check(model, text, phonemes, n, 30)[0] for n in ("test_voices", "test_flite_slt", "test_flite_awb")})
            model.train()
    if crew.first:
        keep()
        log(**{f"{n}_{k}": v for n in CHECKED for k, v in zip(("per", "exact"), check(model, text, phonemes, n))})


if __name__ == "__main__":
    main()
