"""Another speaker out of a clip, by the vocoder WORLD (`pyworld`): envelope bent unevenly, pitch level and range, speed within the sentence, breath, creak, tilt."""
import numpy as np
import pyworld

RATE, FRAME_MS = 16000, 10.


def bent(envelope, g):
    """The envelope [T,F] with its frequency axis scaled by a factor of its own below and above about 1.2 kHz."""
    n = envelope.shape[1]
    low, high, knee = np.exp(g.uniform(-.16, .16)), np.exp(g.uniform(-.16, .16)), g.uniform(.1, .25) * n
    at = np.arange(n, dtype=float)
    source = np.where(at < knee, at * low, knee * low + (at - knee) * high).clip(0, n - 1.001)
    i = source.astype(int)
    f = source - i
    return np.exp(np.log(envelope[:, i]) * (1 - f) + np.log(envelope[:, i + 1]) * f)


def other_speaker(y, g):
    """float32 samples at 16 kHz -> the same words by somebody else."""
    y = y.astype(np.float64)
    f0, times = pyworld.dio(y, RATE, frame_period=FRAME_MS)
    envelope, noisy = pyworld.cheaptrick(y, f0, times, RATE), pyworld.d4c(y, f0, times, RATE)
    voiced = f0 > 0
    if voiced.any():
        middle = np.exp(np.log(f0[voiced]).mean())
        level = middle * np.exp(g.uniform(-.45, .45)) if g.random() < .8 else middle
        f0[voiced] = (level * (f0[voiced] / middle) ** g.choice([.3, .7, 1, 1.4, 1.8])).clip(60, 450)
        if g.random() < .2:  # creak at the end: half the pitch, irregular
            end = np.arange(len(f0)) > len(f0) * g.uniform(.7, .9)
            f0[end & voiced] = (f0[end & voiced] * .55 * np.exp(.15 * g.standard_normal((end & voiced).sum()))).clip(45, 450)
    envelope = bent(envelope, g)
    tilt = np.linspace(0, 1, envelope.shape[1]) * g.uniform(-2.5, 2.5)
    envelope *= np.exp(tilt)
    if g.random() < .4:  # breath
        noisy = noisy ** g.uniform(.3, .9)
    pace = np.repeat(np.exp(g.uniform(-.25, .25, len(f0) // 25 + 1)), 25)[:len(f0)]
    at = np.interp(np.arange(0, pace.cumsum()[-1]), pace.cumsum(), np.arange(len(f0))).round().astype(int)
    z = pyworld.synthesize(np.ascontiguousarray(f0[at]), np.ascontiguousarray(envelope[at]), np.ascontiguousarray(noisy[at]), RATE, FRAME_MS)
    return (z * np.sqrt((y ** 2).mean() / max((z ** 2).mean(), 1e-12))).astype(np.float32)
