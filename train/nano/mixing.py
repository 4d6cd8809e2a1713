"""Builds sound scenes in the power-mel domain, so that clips, gains, noise, voice warps and streaming normalisation
cost only about a millisecond per session."""
import functools, json, math, os
import numpy as np
import torch
import torch.nn.functional as F
from . import mel
from .run import work
from .speakers import check_training

# What is drawn anew in every step; $NANO_AUGMENT names some of them, to measure each.
#   vtlp: frequencies scaled in Hz, differently below and above a knee   colour: microphone, telephone   smear: a room
#   jump: level jumps inside a session   talk: somebody else in the background   mask: SpecAugment's bands and moments
AUGMENT = set(os.environ.get("NANO_AUGMENT", "vtlp colour smear jump talk mask").split())


class Bank:
    """The synthesised clips: `records` describes them, `bank[i]` is the log10 power mel of clip i ([T,80] float32)."""

    def __init__(self):
        self.records, self.mels = [], []
        for path in sorted(work().glob("bank*.json")):
            flat = np.load(path.with_suffix(".npy"), mmap_mode="r")
            for record in json.loads(path.read_text()):
                self.records.append(record)
                self.mels.append(flat[record["frames"][0]:record["frames"][1]])
        check_training({str(q.get("voice")) for q in self.records})
        self.by_length = sorted(range(len(self.mels)), key=lambda i: len(self.mels[i]))

    def __len__(self):
        return len(self.mels)

    def __getitem__(self, i):
        return torch.from_numpy(self.mels[i].astype(np.float32))


def _melody(g, seconds):
    """Notes with overtones and soft edges: music-like tones that are not speech."""
    y, at = np.zeros(seconds * 16000), 0
    while at < len(y):
        n = int(16000 * g.uniform(.1, .8))
        t = np.arange(n) / 16000
        note = sum(np.sin(2 * np.pi * t * k * f) / k for f in 110 * 2 ** (g.integers(0, 36, g.integers(1, 4)) / 12) for k in range(1, g.integers(2, 6)))
        end = min(len(y), at + n)
        y[at:end] += (note * np.minimum(1, np.minimum(t, t[::-1]) * 50))[:end - at]
        at += int(n * g.uniform(.7, 1.3))
    return y


def background(g, kind, seconds=20):
    """Noise of one kind as samples: colours, hum, clicks, tones, melodies."""
    n = seconds * 16000
    if kind < 4:
        s = np.fft.rfft(g.standard_normal(n))
        y = np.fft.irfft(s / np.maximum(np.arange(len(s)), 400) ** (kind / 2), n)
        if kind == 3:
            y = y * (1.2 + np.sin(np.arange(n) * 2 * np.pi * g.uniform(.2, 2) / 16000))
    elif kind == 4:
        t = np.arange(n) / 16000
        y = sum(np.sin(2 * np.pi * 50 * k * t + g.uniform(0, 6)) / k for k in range(1, 8)) + .05 * g.standard_normal(n)
    elif kind == 5:
        y = g.standard_normal(n) * (g.random(n) < .0004)
        y = np.convolve(y, np.exp(-np.arange(400) / 60) * np.sin(np.arange(400) * g.uniform(.2, 1.5)))[:n] + .01 * g.standard_normal(n)
    elif kind == 6:
        t = np.arange(n) / 16000
        y = np.sin(2 * np.pi * g.uniform(100, 2000) * t + 3 * np.sin(2 * np.pi * g.uniform(.1, 3) * t)) + .02 * g.standard_normal(n)
    else:
        y = _melody(g, seconds) + .01 * g.standard_normal(n)
    return (.1 * y / y.std()).astype(np.float32)


@functools.cache
def noises():
    """Power mels [2000,80] with mean 1: first steady noises (colours, hum), then clicks, tones and melodies."""
    g = np.random.default_rng(3)
    power = lambda kind: 10 ** mel.log_power(background(g, kind))
    banks = [power(kind) for kind in (0, 1, 2, 3, 0, 1, 2, 3, 4, 4)], [power(kind) for kind in (5, 5, 6, 6, 6, 7, 7, 7, 7, 7, 7, 7)]
    return [[p / p.mean() for p in group] for group in banks]


def warp(m, stretch, tempo):
    """Scales the frequency axis (voice size) and the time axis (speed) of log mel [T,80] by interpolation."""
    def resample(x, at):
        i = at.long().clamp(0, x.shape[0] - 2)
        f = (at - i)[:, None]
        return x[i] * (1 - f) + x[i + 1] * f
    if stretch != 1:
        m = resample(m.T, (torch.arange(80).float() * stretch).clamp(0, 79)).T
    return m if tempo == 1 else resample(m, torch.arange(0, len(m) - 1, tempo))


def vtlp(r, m):
    """Vocal tract length perturbation: m's filters read at other frequencies, with one factor below a knee and one above."""
    hz, index = _scales()
    low, high, knee = r.uniform(.86, 1.16), r.uniform(.86, 1.16), r.uniform(900, 2200)
    at = torch.where(hz < knee, hz * low, knee * low + (hz - knee) * high).clamp(0, 7900)
    source = index[(at / 10).long()].clamp(0, 78.99)
    i = source.long()
    return m[:, i] * (1 - (source - i)) + m[:, i + 1] * (source - i)


@functools.cache
def _scales():
    """(Hz of each filter's peak, the filter's number at each 10 Hz)."""
    hz = mel.BANK.argmax(0) * 40.
    return hz, torch.from_numpy(np.interp(np.arange(0, 8000, 10), hz.numpy(), np.arange(80))).float()


def vary_voice(r, m):
    """One clip as if spoken by another voice at the same speed."""
    if "vtlp" in AUGMENT and r.random() < .6:
        return vtlp(r, m)
    return warp(m, r.uniform(.92, 1.08), 1) if r.random() < .7 else m


def varied(r, m):
    """One clip as if spoken by another voice."""
    m = vary_voice(r, m)
    return warp(m, 1, r.uniform(.88, 1.12)) if r.random() < .5 else m


def colour(r):
    """What a microphone or a telephone adds to the log mel: [80]."""
    at = torch.arange(80) / 80
    curve = sum(r.uniform(-.3, .3) * torch.cos(math.pi * k * at + r.uniform(0, 3)) for k in range(1, 5))
    if r.random() < .15:
        hz = _scales()[0]
        curve = curve - ((hz < r.uniform(150, 350)) | (hz > r.uniform(3200, 4500))) * r.uniform(1, 3)
    return curve


def smear(r, power):
    """A room: each frame's power decays into those after it."""
    n = r.randrange(8, 40)
    tail = torch.exp(-6.9 * torch.arange(n) / n) * r.uniform(.01, .12)
    tail[0] = 1
    return F.conv1d(F.pad(power.T[:, None], (n - 1, 0)), tail.flip(0)[None, None])[:, 0].T


def someone(r, bank, frames, level):
    """Background talk at the mean power `level`: [frames,80]."""
    parts = torch.cat([bank[r.randrange(len(bank))] for _ in range(2)])
    power = 10 ** parts.repeat(-(-frames // len(parts)), 1)[:frames]
    return power * level / power.mean()


def noise_floor(r, frames, reference, steady=True):
    """Background power [frames,80], 8–45 dB below `reference` (the clips' mean power), typically about 13, sometimes
    with odd sounds."""
    group = noises()[0 if steady else 1]
    chosen = r.choice(group)
    while len(chosen) < frames:
        chosen = torch.cat([chosen, r.choice(group)])
    at = r.randrange(0, len(chosen) - frames + 1)
    return chosen[at:at + frames] * (reference * 10 ** -r.triangular(.8, 4.5, 1.3))


def bursts(r, frames):
    """Noises and melodies that begin and end, at the level of speech, in an otherwise quiet session: [frames,80]."""
    power, at = torch.full((frames, 80), 1e-10), r.randrange(0, 300)
    while at < frames:
        kind = r.choice(noises()[r.random() < .6])
        if r.random() < .3:
            kind = (kind + r.choice(noises()[1])) / 2
        n = min(frames - at, r.randrange(20, 150) if r.random() < .3 else r.randrange(150, 600))
        begin = r.randrange(0, len(kind) - n + 1)
        power[at:at + n] += kind[begin:begin + n] * 10 ** r.uniform(-2.5, -.3)
        at += n + r.randrange(30, 800)
    return power


def mix(r, clips, frames, noisy=.75, bank=None):
    """clips: [(start frame, log mel)] -> power [frames,80]. Each clip gets its own gain. bank: for background talk."""
    if not clips and r.random() < .7:
        return bursts(r, frames)
    power, reference = torch.full((frames, 80), 1e-10), None
    if clips and "colour" in AUGMENT and r.random() < .6:
        curve = colour(r)
        clips = [(start, m + curve) for start, m in clips]
    for start, m in clips:
        p = 10 ** (m + r.uniform(-1.4, .5))
        n = min(len(p), frames - start)
        if n > 0:
            power[start:start + n] += p[:n]
        reference = p.mean() if reference is None else torch.minimum(reference, p.mean())
    if clips and "smear" in AUGMENT and r.random() < .25:
        power = smear(r, power)
    if clips and bank is not None and "talk" in AUGMENT and r.random() < .1:
        power = power + someone(r, bank, frames, reference * 10 ** -r.uniform(1.2, 3))
    if r.random() < noisy or not clips:
        reference = torch.tensor(10 ** r.uniform(-2, .5)) if reference is None else reference
        power += noise_floor(r, frames, reference * (30 if not clips and r.random() < .5 else 1), r.random() < (.85 if clips else .4))
    if "jump" in AUGMENT and r.random() < .1:
        power[r.randrange(frames):] *= 10 ** r.uniform(-1, 1)
    return power


def normalise(power):
    """The streaming rule, unit by unit: a fixed floor while the buffer is shorter than 5 s, later 8 below the loudest
    value. At 30 s the buffer drops its first 10 s."""
    x = power.clamp(min=1e-10).log10()
    first, base = x.clone(), 0
    for u in range(len(x) // 100):
        if (u + 1) * 100 - base >= 3000:
            base += 1000
        if u >= 4:
            now = slice(u * 100, (u + 1) * 100)
            first[now] = torch.maximum(x[now], x[base:(u + 1) * 100].max() - 8)
    return (first + 4) / 4


def mask_band(r, x):
    """Blanks one random band of frequencies in half of the sessions; SpecAugment: up to two bands, and moments of at most 70 ms, about one a second."""
    many = "mask" in AUGMENT
    for _ in range(1 + many):
        if r.random() < .5:
            low = r.randrange(0, 72)
            x[:, low:low + r.randrange(1, 9)] = x.mean()
    if many and r.random() < .4:
        for _ in range(len(x) // 100 + 1):
            at = r.randrange(len(x))
            x[at:at + r.randrange(1, 8)] = x.mean()
    return x
