"""Measures word accuracy of speech with an independent recogniser: Debian's pocketsphinx with its English acoustic model and dictionary.

It is given the domain's answers, as a closed grammar of whole sentences or as a bigram (packages pocketsphinx and pocketsphinx-en-us; for evaluation only)."""
import collections, functools, math, pathlib, random, re, subprocess, tempfile, wave
import numpy as np
import torch
import torch.nn.functional as F
from . import mel
from .ctc import Phonemes, distance, greedy
from .questions import draw
from .run import newest
from .train_ctc import Hearing, encode

MODEL = pathlib.Path("/usr/share/pocketsphinx/model/en-us")
DISCOUNT = .5
UNKNOWN = "gosling G AA Z L IH NG\noink OY NG K\n"  # the only words of the answers that its dictionary lacks


def words(text):
    return re.findall(r"[a-z']+", text.lower())


def arpa(sentences):
    """A bigram with absolute discounting over lists of words, in the ARPA format."""
    pairs, singles = collections.Counter(), collections.Counter()
    for s in sentences:
        line = ["<s>", *s, "</s>"]
        singles.update(line[1:])
        pairs.update(zip(line, line[1:]))
    total, after = sum(singles.values()), collections.defaultdict(dict)
    for (a, b), n in pairs.items():
        after[a][b] = n
    lines, seconds = [], []
    for w in ["<s>", *sorted(singles)]:
        p = singles[w] / total
        if w in after:
            n = sum(after[w].values())
            left = 1 - sum(singles[b] / total for b in after[w])
            back = DISCOUNT * len(after[w]) / n / max(left, 1e-6)
            seconds += [f"{math.log10((k - DISCOUNT) / n):.4f} {w} {b}" for b, k in sorted(after[w].items())]
        lines.append(f"{math.log10(p) if p else -99:.4f} {w}" + (f" {math.log10(back):.4f}" if w in after else ""))
    return "\n".join(["\\data\\", f"ngram 1={len(lines)}", f"ngram 2={len(seconds)}", "", "\\1-grams:", *lines, "", "\\2-grams:", *seconds, "", "\\end\\", ""])


@functools.cache
def domain():
    """The domain's answers as lists of words."""
    r = random.Random(5)
    return [words(a) for a in sorted({draw(r, repeat=0).answer for _ in range(20000)})]


def grammar(sentences):
    return "#JSGF V1.0;\ngrammar answers;\npublic <answer> = " + "\n | ".join(sorted({" ".join(s) for s in sentences})) + ";\n"


def recognise(waves, closed=True):
    """float32 samples at 16 kHz -> a list of words for each. closed: only whole answers of the domain; otherwise any
    words, by the bigram."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "dict").write_text((MODEL / "cmudict-en-us.dict").read_text() + UNKNOWN)
        (folder / "model").write_text(grammar(domain()) if closed else arpa(domain()))
        for i, y in enumerate(waves):
            y = np.concatenate([np.zeros(4800), y / (np.abs(y).max() + 1e-6) * .6, np.zeros(4800)]) + np.random.default_rng(0).standard_normal(len(y) + 9600) * 1e-4
            with wave.open(str(folder / f"{i}.wav"), "wb") as w:
                w.setparams((1, 2, 16000, 0, "NONE", ""))
                w.writeframes((y * 32767).astype("<i2").tobytes())
        (folder / "ctl").write_text("".join(f"{i}\n" for i in range(len(waves))))
        subprocess.run(["pocketsphinx_batch", "-hmm", MODEL / "en-us", "-dict", folder / "dict", "-jsgf" if closed else "-lm", folder / "model", "-ctl", folder / "ctl", "-cepdir", folder,
                        "-cepext", ".wav", "-adcin", "yes", "-adchdr", "44", "-hyp", folder / "hyp"], check=True, capture_output=True)
        return [line.rsplit("(", 1)[0].split() for line in (folder / "hyp").read_text().splitlines()]


def accuracy(waves, texts, closed=True):
    """(word accuracy, share of correct sentences, what was recognised)."""
    heard, want = recognise(waves, closed), [words(t) for t in texts]
    errors = [distance(h, w) for h, w in zip(heard, want)]
    return 1 - sum(errors) / sum(map(len, want)), sum(e == 0 for e in errors) / len(errors), heard


def ears():
    """(the encoder with its phoneme head, its phonemes) from the joint stage, else from the stage before; None if
    neither exists."""
    path = newest("mean.pt", "joint.pt", "ctc.pt")
    if path is None:
        return None
    phonemes = Phonemes(w for answer in domain() for w in answer)
    model = Hearing(phonemes.size)
    model.load_state_dict(torch.load(path, map_location="cpu")["model"])
    return model.eval(), phonemes


@torch.no_grad()
def own_hearing(waves, texts):
    """(word accuracy with the closed grammar, share of correct phonemes without a grammar) by the model's own encoder, or None.
    The closed grammar chooses the answer of the domain whose phonemes the CTC head finds likeliest."""
    own = ears()
    if own is None:
        return None
    (model, phonemes), answers = own, domain()
    spelt, wrong, errors, said, symbols = [phonemes(" ".join(a)) for a in answers], 0, 0, 0, 0
    lengths, flat = torch.tensor([len(s) for s in spelt]), torch.tensor([k for s in spelt for k in s])
    for i, (y, text) in enumerate(zip(waves, texts)):
        y = np.pad(y, 3000) + np.random.default_rng(i).standard_normal(len(y) + 6000).astype(np.float32) * y.std() * .1
        x = mel.offline(y)
        scores = model.heads.phoneme(encode(model.nano, x[None, :len(x) // 10 * 10])[0])[0].log_softmax(-1)
        cost = F.ctc_loss(scores[:, None].expand(-1, len(spelt), -1), flat, torch.full((len(spelt),), len(scores)), lengths, reduction="none")
        want = words(text)
        sounds = phonemes(" ".join(want))
        wrong += distance(answers[int(cost.argmin())], want)
        said += len(want)
        errors += distance(greedy(scores), sounds)
        symbols += len(sounds)
    return 1 - wrong / said, 1 - errors / symbols
