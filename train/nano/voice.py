"""The corpus of the one voice that it speaks with: espeak-ng at a pitch that is locked to the frames, and the features that each stage learns from. usage: python -m nano.voice [sentences] [test sentences]

Everything lies on the grid of speech tokens: 25 tokens = 50 mel frames = 100 tokenizer frames = 24,000 samples a second. The sentences are the domain's answers, at a rate that fits
the units in which they are written (see `layouts.pieces`), and strings of random words, so that every word is heard."""
import io, random, subprocess, sys, wave
import numpy as np
import torch
from scipy.signal import resample_poly
from . import layouts, mel
from .locked import locked
from .questions import HELD_WORDS, TRAIN_WORDS, Question, draw
from .run import work
from .tokenizer import Text

VOICE, PITCH, SPEED, FASTEST = "en-us", 62, 190, 260  # flat at this pitch it speaks at 101 Hz
RATE, HOP = 24000, 480
TOKEN = 960         # samples of one speech token
UNIT = 25           # speech tokens of one unit
LEAD = 2            # tokens of silence before the first word


def slaney(bins, top, low, high, rate):
    """[rfft bins, bins] slaney-scale, slaney-normalised triangles."""
    to_mel = lambda f: np.where(f < 1000, 3 * f / 200, 15 + np.log(np.maximum(f, 1e-9) / 1000) * 27 / np.log(6.4))
    to_hz = lambda m: np.where(m >= 15, 1000 * np.exp(np.log(6.4) / 27 * (m - 15)), 200 * m / 3)
    edges, at = to_hz(np.linspace(to_mel(np.array(low)), to_mel(np.array(high)), bins + 2)), np.linspace(0, rate / 2, top)
    slope, width = edges[None] - at[:, None], np.diff(edges)
    bank = np.maximum(0, np.minimum(-slope[:, :-2] / width[:-1], slope[:, 2:] / width[1:]))
    return torch.from_numpy(bank * (2.0 / (edges[2:] - edges[:-2]))[None]).float()


SPEECH_BANK, TOKENIZER_BANK = slaney(80, 961, 0, 8000, RATE), slaney(128, 201, 0, 8000, 16000)


def prompt_mel(samples):
    """24 kHz [n] -> natural log mel [n / 480, 80] of the flow model (TALKER.md 6.1)."""
    x = torch.nn.functional.pad(samples[None, None], (720, 720), mode="reflect")[0, 0]
    s = torch.view_as_real(torch.stft(x, 1920, HOP, window=torch.hann_window(1920), center=False, return_complex=True))
    return (s.pow(2).sum(-1) + 1e-9).sqrt().T.matmul(SPEECH_BANK).clamp(min=1e-5).log()


def tokenizer_mel(samples):
    """16 kHz [n] -> log mel [n / 160, 128] of the speech tokenizer."""
    s = torch.stft(samples, 400, 160, window=mel.HANN, center=True, pad_mode="reflect", return_complex=True)[..., :-1]
    x = (s.abs() ** 2).T.matmul(TOKENIZER_BANK).clamp(min=1e-10).log10()
    return (torch.maximum(x, x.max() - 8) + 4) / 4


def spoken(text, speed=SPEED):
    """float32 samples at 24 kHz, silence trimmed to 10 ms."""
    out = subprocess.run(["espeak-ng", "-v", VOICE, "-p", str(PITCH), "-s", str(speed), "-m", "--stdout", f'<speak><prosody range="0%">{text}</prosody></speak>'], capture_output=True, check=True).stdout
    with wave.open(io.BytesIO(out)) as w:
        assert w.getframerate() == 22050
    y = np.frombuffer(out[44:len(out) // 2 * 2], "<i2").astype(np.float32) / 32768
    loud = np.nonzero(np.abs(y) > .003)[0]
    return locked(resample_poly(y[max(0, loud[0] - 220):loud[-1] + 220], 160, 147).astype(np.float32))


def on_grid(y):
    """LEAD tokens of silence in front, filled up to whole tokens with at least one of silence behind."""
    n = LEAD + -(-len(y) // TOKEN) + 1
    out = np.zeros(n * TOKEN, np.float32)
    out[LEAD * TOKEN:LEAD * TOKEN + len(y)] = y
    return out


def fitted(text, answer):
    """Samples of an answer, spoken fast enough for its units, or None where even the fastest is too slow."""
    units, speed = len(layouts.pieces(text, answer)), SPEED
    while speed <= FASTEST:
        y = on_grid(spoken(answer, speed))
        if len(y) <= units * UNIT * TOKEN:
            return y
        speed += 10
    return None


def sentences(r, held):
    """Endless questions whose answers it is to speak: of the domain, strings of words."""
    pool = HELD_WORDS + TRAIN_WORDS[::10] if held else TRAIN_WORDS
    while True:
        if r.random() < .65:
            yield draw(r, repeat=0)
        else:
            words = " ".join(r.choice(pool) for _ in range(r.randrange(2, 7)))
            yield Question("say the words " + words, words + ".", "repeat")


def features(y):
    samples = torch.from_numpy(y)
    heard = torch.from_numpy(resample_poly(y, 2, 3).astype(np.float32))
    speech, tokens = prompt_mel(samples), tokenizer_mel(heard)
    n = len(y) // TOKEN
    assert len(speech) == 2 * n and len(tokens) == 4 * n
    return (samples * 32767).to(torch.int16), speech, tokens


def missing(asked, seed):
    """A question for every answer of the domain that is not among those of `asked`: the values of all slots are spoken once."""
    r, known, found = random.Random(seed), {q[1] for q in asked}, {}
    for _ in range(40000):
        question = draw(r, repeat=0)
        if question.answer not in known:
            found.setdefault(question.answer, question)
    return found.values()


def corpus(name, n, seed, text, held=False):
    """Writes NAME.pt: samples (int16), mel, tokenizer mel of all sentences in a row; `first` and `length` in tokens and the question of each."""
    parts, first, length, asked, at = [], [], [], [], 0

    def add(question):
        nonlocal at
        y = fitted(text, question.answer)
        if y is None:
            return
        parts.append(features(y))
        first.append(at)
        length.append(len(y) // TOKEN)
        asked.append(tuple(question))
        at += length[-1]

    source = sentences(random.Random(seed), held)
    while len(asked) < n:
        add(next(source))
    for question in [] if held else missing(asked, seed):
        add(question)
    samples, speech, tokens = (torch.cat(x) for x in zip(*parts))
    torch.save(dict(samples=samples, mel=speech, heard=tokens, first=first, length=length, questions=asked), work() / f"{name}.pt")
    print(name, len(asked), f"{at / 1500:.1f} min", flush=True)


def write_voice(path, data):
    """The corpus sentence nearest to 2.6 s as a 16 kHz wav."""
    i = min(range(len(data["length"])), key=lambda i: abs(data["length"][i] - 65))
    a, n = data["first"][i] * 960, data["length"][i] * 960
    y = resample_poly(data["samples"][a:a + n].numpy().astype(np.float64), 2, 3)
    with wave.open(str(path), "wb") as w:
        w.setparams((1, 2, 16000, 0, "NONE", ""))
        w.writeframes(np.clip(y, -32768, 32767).astype("<i2").tobytes())


if __name__ == "__main__":
    torch.set_num_threads(1)
    n, tests = int(sys.argv[1]) if len(sys.argv) > 1 else 3000, int(sys.argv[2]) if len(sys.argv) > 2 else 60
    text = Text(work() / "tokenizer")
    corpus("voice_test", tests, 302, text, held=True)
    corpus("voice", n, 301, text)
    write_voice(work() / "default_voice.wav", torch.load(work() / "voice.pt"))  # what the thinker is to hear as its own
