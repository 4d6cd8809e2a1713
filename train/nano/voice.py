"""Makes the corpus of the model's only voice: espeak-ng with its own melody, and the features for each training stage. usage: python -m nano.voice [sentences] [test sentences]

Each sentence is recorded twice with the same timing. In one recording the pitch glides: this is how the voice learns to speak. In the other it moves in steps of 50 Hz: this one the speech
tokenizer hears, because the talker knows the tokens of stepped speech. The flow then makes the gliding mel from them.

Everything lies on the grid of speech tokens: 25 tokens = 50 mel frames = 100 tokenizer frames = 24,000 samples a second. The sentences are the domain's answers, at a rate that fits
their units (see `layouts.pieces`), and strings of random words, so that every word occurs. No word begins before its unit's second: the talker cannot say
a word that it has not received yet."""
import random, sys, wave
import numpy as np
import torch
from scipy.ndimage import gaussian_filter1d, median_filter
from scipy.signal import resample_poly
from . import layouts, mel, outside, psola, sights, tools
from .espeak import read
from .pitch import pitches
from .questions import HELD_WORDS, TRAIN_WORDS, Question, draw
from .run import work
from .tokenizer import Text

VOICE, PITCH, RANGE, SLOWEST, FASTEST = "en-us+f2", 50, 60, 150, 270
SEARCHED = 90, 330  # Hz: where the natural reading's pitch is looked for
MIDDLE_NATURAL, MIDDLE, SWING = 200, 200, 1.3  # Hz at the centre of the natural reading and of the voice; the factor by which the stepped melody is widened
LOWEST, HIGHEST, SMOOTH = 110, 340, 2  # Hz; and how smooth the gliding melody is, in frames
LEVELS, SWITCH = np.array([150., 200., 250., 300.]), 8  # Hz that fit the frames; the cost of a change, in semitones of error in one frame
STRETCH = 1.15      # how much slower a word may be spoken that would come too early
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
    """24 kHz [n] -> natural log mel [n / 480, 80] for the flow model (docs/model/talker.md 6.1)."""
    x = torch.nn.functional.pad(samples[None, None], (720, 720), mode="reflect")[0, 0]
    s = torch.view_as_real(torch.stft(x, 1920, HOP, window=torch.hann_window(1920), center=False, return_complex=True))
    return (s.pow(2).sum(-1) + 1e-9).sqrt().T.matmul(SPEECH_BANK).clamp(min=1e-5).log()


def tokenizer_mel(samples):
    """16 kHz [n] -> log mel [n / 160, 128] for the speech tokenizer."""
    s = torch.stft(samples, 400, 160, window=mel.HANN, center=True, pad_mode="reflect", return_complex=True)[..., :-1]
    x = (s.abs() ** 2).T.matmul(TOKENIZER_BANK).clamp(min=1e-10).log10()
    return (torch.maximum(x, x.max() - 8) + 4) / 4


def stepped(level):
    """Octaves above 1 Hz of each frame -> the nearest of LEVELS with few changes (the cheapest path)."""
    off, back = 12 * np.abs(level[:, None] - np.log2(LEVELS)), np.zeros((len(level), len(LEVELS)), int)
    cost, change = off[0], SWITCH * (1 - np.eye(len(LEVELS)))
    for k in range(1, len(level)):
        ways = cost[:, None] + change
        back[k], cost = ways.argmin(0), ways.min(0) + off[k]
    path = [cost.argmin()]
    for k in range(len(level) - 1, 0, -1):
        path.append(back[k, path[-1]])
    return LEVELS[path[::-1]]


def melodies(natural, words, flat_words, length):
    """(gliding, stepped): Hz at each of `length` samples of the flat reading, the natural reading's pitch at the same position between word
    beginnings, interpolated where it has none, centred on MIDDLE."""
    found = pitches(torch.from_numpy(natural * 32767), *SEARCHED).numpy()
    known = np.flatnonzero(found)
    if not len(known):
        return np.full(length, float(MIDDLE)), np.full(length, float(MIDDLE))
    found = median_filter(np.interp(np.arange(len(found)), known, np.log2(found[known])), 5, mode="nearest")
    found -= np.log2(MIDDLE_NATURAL)
    a, b = [0, *(at for _, at in flat_words[1:]), length], [0, *(at for _, at in words[1:]), len(natural)]
    at = np.interp(np.arange(length), a, b) if len(a) == len(b) else np.arange(length) * len(natural) / length
    glide = np.clip(MIDDLE * 2 ** gaussian_filter1d(found, SMOOTH, mode="nearest"), LOWEST, HIGHEST)
    return np.interp(at / HOP - .5, np.arange(len(found)), glide), stepped(np.log2(MIDDLE) + SWING * found)[np.clip(at / HOP, 0, len(found) - 1).astype(int)]


def units_of(text, answer):
    """The offset in the answer at which each unit's words begin."""
    starts, at = [], 0
    for ids in layouts.pieces(text, answer):
        starts.append(at)
        at += len(text.decode(ids))
    return starts


def arranged(begins, length):
    """(spans for `Times`, total samples): no unit's words begin before its second; early words are spoken a little
    slower, then wait. begins: first sample of each unit's words."""
    spans, at, unit = [], LEAD * TOKEN, UNIT * TOKEN
    for k, (a, b) in enumerate(zip(begins, [*begins[1:], length])):
        at = max(at, k * unit)
        room = (k + 1) * unit - at if k + 1 < len(begins) else b - a
        out = int(min(max(b - a, room), STRETCH * (b - a)))
        spans.append((a, b, at, at + out))
        at += out
    return spans, at


def fitted(text, answer):
    """(samples, the same with stepped pitch, pitch of each frame, [(offset of a word, token at which it begins)]) of an answer, spoken as slowly as
    its units allow; None if even the fastest reading is too slow."""
    places = units_of(text, answer)
    most, speed = len(places) * UNIT * TOKEN, SLOWEST
    while speed <= FASTEST:
        flat, words = read(answer, VOICE, speed, PITCH, 0)
        loud = np.flatnonzero(np.abs(flat) > .003)
        end = min(len(flat), loud[-1] + 220)
        begins = [next((at for place, at in words if place >= start), None) for start in places]
        begins = [max(0, loud[0] - 220), *(b for b in begins[1:] if b is not None)]
        spans, total = arranged(begins, end)
        n = -(-total // TOKEN) + 1
        if n * TOKEN <= most and len(begins) == len(places):
            natural, natural_words = read(answer, VOICE, speed, PITCH, RANGE)
            (glide, steps), times = melodies(natural, natural_words, words, len(flat)), psola.Times(spans)
            sung = lambda tune, pulses: psola.sung(flat[:end], times, lambda t: tune[np.clip(t, 0, len(tune) - 1).astype(int)], n * TOKEN, pulses)
            (y, pitch), (plain, _) = sung(glide, psola.gliding), sung(steps, psola.stepped)
            starts = [(place, int(np.interp(at, [s[0] for s in spans] + [spans[-1][1]], [s[2] for s in spans] + [spans[-1][3]]) // TOKEN)) for place, at in words]
            return y, plain, pitch, starts
        speed += max(5, int(speed * (n * TOKEN / most - 1) * .5))
    return None


def sentences(r, held):
    """Endless questions whose answers the voice will speak: from the domain, and strings of words; a few it cannot answer,
    and results of functions."""
    pool = HELD_WORDS + TRAIN_WORDS[::10] if held else TRAIN_WORDS
    while True:
        kind = r.random()
        if kind < .6:
            yield draw(r, repeat=0)
        elif kind < .63:
            yield outside.question(r)
        elif kind < .65:
            _, question, _, _, answer = tools.scene(r)
            yield Question(question.text.lower(), answer, "result")
        else:
            words = " ".join(r.choice(pool) for _ in range(r.randrange(2, 7)))
            yield Question("say the words " + words, words + ".", "repeat")


def features(y, plain, pitch):
    samples = torch.from_numpy(y)
    heard = torch.from_numpy(resample_poly(plain, 2, 3).astype(np.float32))
    speech, tokens = prompt_mel(samples), tokenizer_mel(heard)
    n = len(y) // TOKEN
    assert len(speech) == len(pitch) == 2 * n and len(tokens) == 4 * n
    return (samples * 32767).to(torch.int16), speech, tokens, torch.from_numpy(pitch)


def missing(asked, seed):
    """One question for every answer of the domain and about pictures that is not in `asked`, so that all values of all
    slots are spoken once."""
    r, known, found = random.Random(seed), {q[1] for q in asked}, {}
    for _ in range(40000):
        question = draw(r, repeat=0)
        if question.answer not in known:
            found.setdefault(question.answer, question)
    for answer in sorted(set(sights.answers()) - known - set(found)):
        found[answer] = Question(sights.ask(r).text, answer, "picture")
    return found.values()


def corpus(name, n, seed, text, held=False):
    """Writes NAME.pt: samples (int16), mel, tokenizer mel and pitch of all sentences in sequence; `first` and `length`
    in tokens; and for each sentence its word beginnings and question."""
    parts, first, length, words, asked, at = [], [], [], [], [], 0

    def add(question):
        nonlocal at
        made = fitted(text, question.answer)
        if made is None:
            return
        y, plain, pitch, starts = made
        parts.append(features(y, plain, pitch))
        words.append(starts)
        first.append(at)
        length.append(len(y) // TOKEN)
        asked.append(tuple(question))
        at += length[-1]

    source = sentences(random.Random(seed), held)
    while len(asked) < n:
        add(next(source))
    for question in [] if held else missing(asked, seed):
        add(question)
    samples, speech, tokens, pitch = (torch.cat(x) for x in zip(*parts))
    torch.save(dict(samples=samples, mel=speech, heard=tokens, pitch=pitch, first=first, length=length, words=words, questions=asked), work() / f"{name}.pt")
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
    n, tests = int(sys.argv[1]) if len(sys.argv) > 1 else 3000, int(sys.argv[2]) if len(sys.argv) > 2 else 130
    text = Text(work() / "tokenizer")
    corpus("voice_test", tests, 302, text, held=True)
    corpus("voice", n, 301, text)
    if not (work() / "default_voice.wav").exists():
        write_voice(work() / "default_voice.wav", torch.load(work() / "voice.pt"))  # the voice that the thinker hears as its own
