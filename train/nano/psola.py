"""A flat reading with another melody and other timing (PSOLA): it is cut at its glottal pulses, which are easy to find, and reassembled with the pulses elsewhere.

The pulses lie either where the vocoder's source passes a whole cycle (`gliding`), so that a vocoder that follows its source also follows the recording's pulses, or on a grid
(`stepped`): in each frame of 480 samples the pitch is a multiple of 50 Hz, and the frame begins with a pulse."""
import numpy as np
from scipy.signal import fftconvolve

RATE, HOP = 24000, 480
GRAIN = 120   # samples per piece where unvoiced sound is moved
FADE = 120    # fade length in samples at both ends of a stretch


def period(y, low=70, high=320):
    """The constant period of a flat voice in samples, measured in its loud part."""
    parts = np.lib.stride_tricks.sliding_window_view(y, 1440)[::480]
    parts = parts[np.argsort(-(parts ** 2).sum(1))[:max(8, len(parts) // 3)]]
    r = np.fft.irfft(np.abs(np.fft.rfft(parts - parts.mean(1, keepdims=True), 4096)) ** 2)[:, :600]
    r = (r / r[:, :1]).mean(0)
    lags = np.arange(RATE // high, RATE // low)
    best = lags[r[lags].argmax()]
    half = [p for p in (best // 2 - 1, best // 2, best // 2 + 1) if p >= lags[0] and r[p] > .92 * r[best]]
    return float(max(half, key=lambda p: r[p]) if half else best)


def voiced(y, P):
    """How voiced each sample is (0 to 1): periodic and not silent, with edges of 5 ms."""
    n, step = int(2.5 * P), 120
    padded = np.pad(y, (n // 2, n // 2 + int(P) + 2))
    a = np.lib.stride_tricks.sliding_window_view(padded, n)[::step][:-(-len(y) // step)]
    scores = []
    for lag in (int(P) - 1, int(P), int(P) + 1):
        b = np.lib.stride_tricks.sliding_window_view(padded[lag:], n)[::step][:len(a)]
        scores.append((a * b).sum(1) / np.sqrt((a ** 2).sum(1) * (b ** 2).sum(1) + 1e-9))
    on = (np.max(scores, 0) > .55) & (np.sqrt((a ** 2).mean(1)) > .004)
    on = np.convolve(np.pad(on.astype(float), 2, mode="edge"), np.ones(5), "valid") > 2.5  # removes gaps and islands of 5 ms
    mask = np.repeat(on, step)[:len(y)].astype(np.float32)
    return np.convolve(np.pad(mask, 60, mode="edge"), np.ones(121) / 121, "valid")


def fundamental(y, P):
    """Phase of the fundamental around every sample, 0 at its crests, for pulses at the same phase in every stretch."""
    n = 2 * int(round(P))
    turn = np.exp(-2j * np.pi * np.arange(len(y)) / P)
    slow = fftconvolve(y * turn, np.hanning(2 * n + 1), "same")
    return np.angle(slow) + 2 * np.pi * np.arange(len(y)) / P


def marks(y, P, on):
    """The positions of the pulses in the voiced stretches."""
    phase = np.unwrap(fundamental(y, P))
    passed = np.flatnonzero(np.diff(np.floor(phase / (2 * np.pi))) > 0) + 1
    return passed[on[passed] > .05]


class Times:
    """Where each output sample comes from. spans: [(in begin, in end, out begin, out end)], in order; silence between them."""

    def __init__(self, spans):
        self.spans = np.array(spans, float)

    def __call__(self, t):
        """(the input sample of each output sample, whether a span covers it)."""
        a, b, c, d = self.spans.T
        i = np.clip(np.searchsorted(c, t, "right") - 1, 0, len(c) - 1)
        return a[i] + (t - c[i]) * (b[i] - a[i]) / (d[i] - c[i]), (t >= c[i]) & (t < d[i])

    def gain(self, n):
        """[n] 1 within the spans, 0 in the gaps, with faded ends."""
        out = np.zeros(n, np.float32)
        for _, _, c, d in self.spans:
            out[max(0, int(c)):min(n, int(d))] = 1
        return np.convolve(np.pad(out, FADE // 2, mode="edge"), np.ones(FADE + 1) / (FADE + 1), "valid")


def stepped(pitch):
    """The pulses of a pitch in multiples of 50 Hz: the first one of each voiced frame at its beginning. -> samples"""
    return np.array([k * HOP + m * RATE / pitch[k] for k in np.flatnonzero(pitch) for m in range(round(pitch[k] * HOP / RATE))])


def cycles(pitch):
    """The phase of the vocoder's source at every sample, in cycles (docs/model/talker.md 9): in the middle of a frame it has advanced by that frame's pitch, and it is linear in between."""
    return np.interp((np.arange(len(pitch) * HOP) + .5) / HOP - .5, np.arange(len(pitch)), np.cumsum(pitch) * (HOP / RATE))


def gliding(pitch):
    """The samples at which the vocoder's source begins a cycle in a voiced frame."""
    at = np.flatnonzero(np.diff(np.floor(cycles(pitch))) > 0) + 1
    return at[pitch[at // HOP] > 0]


def sung(flat, times, melody, n, pulses):
    """A flat reading with other timing and pitch. melody: input samples -> Hz; pulses: `gliding`, or `stepped` for multiples of 50 Hz. -> (float32 [n], pitch
    of each frame, 0 = none)."""
    P = period(flat)
    on, p = voiced(flat, P), int(round(P))
    marked = marks(flat, P, on)
    middle, inside = times(np.arange(n // HOP) * HOP + HOP / 2)
    pitch = np.where(inside & (on[np.clip(middle, 0, len(on) - 1).astype(int)] > .5), melody(middle), 0)
    at = pulses(pitch)
    window, padded, out = np.hanning(2 * p + 1)[:-1], np.pad(flat, 2 * p), np.zeros(n + 4 * p)
    for t, s, valid in zip(np.round(at).astype(int), *times(at)):
        m = marked[np.abs(marked - s).argmin()] if valid and len(marked) else -p
        if abs(m - s) <= p:
            out[t + p:t + 3 * p] += padded[m + p:m + 3 * p] * window
    rest, piece = np.pad(flat * (1 - on), 2 * GRAIN), np.hanning(2 * GRAIN + 1)[:-1]
    rough = np.zeros(n + 4 * GRAIN)
    centres = np.arange(0, n, GRAIN)
    source, valid = times(centres)
    for t, s in zip(centres[valid], np.round(source[valid]).astype(int)):
        if 0 <= s < len(flat):
            rough[t + GRAIN:t + 3 * GRAIN] += rest[s + GRAIN:s + 3 * GRAIN] * piece
    y = out[2 * p:2 * p + n] + rough[2 * GRAIN:2 * GRAIN + n]
    return (y * times.gain(n)).astype(np.float32), pitch.astype(np.float32)
