"""A voice whose pulses lie on the grid of the mel frames: 100 Hz, two pulses in every frame of 480 samples, the first at its beginning.

The causal vocoder's source is held over each frame, so it cannot carry a pulse train that wanders against the frames; of a locked one the pulses are a function of the frame's mel alone.
A flat reading is cut at its pulses and put together anew on the grid (PSOLA)."""
import numpy as np
from scipy.signal import fftconvolve

RATE, PITCH = 24000, 100


def period(y, low=90, high=320):
    """The one period of a flat voice in samples, from the loud part."""
    parts = np.lib.stride_tricks.sliding_window_view(y, 1440)[::480]
    parts = parts[np.argsort(-(parts ** 2).sum(1))[:max(8, len(parts) // 3)]]
    r = np.fft.irfft(np.abs(np.fft.rfft(parts - parts.mean(1, keepdims=True), 4096)) ** 2)[:, :600]
    r = (r / r[:, :1]).mean(0)
    lags = np.arange(RATE // high, RATE // low)
    best = lags[r[lags].argmax()]
    half = [p for p in (best // 2 - 1, best // 2, best // 2 + 1) if p >= lags[0] and r[p] > .92 * r[best]]
    return float(max(half, key=lambda p: r[p]) if half else best)


def voiced(y, P):
    """Share of voicing of every sample: periodic and not silent, with edges of 5 ms."""
    n, step = int(2.5 * P), 120
    padded = np.pad(y, (n // 2, n // 2 + int(P) + 2))
    a = np.lib.stride_tricks.sliding_window_view(padded, n)[::step][:-(-len(y) // step)]
    scores = []
    for lag in (int(P) - 1, int(P), int(P) + 1):
        b = np.lib.stride_tricks.sliding_window_view(padded[lag:], n)[::step][:len(a)]
        scores.append((a * b).sum(1) / np.sqrt((a ** 2).sum(1) * (b ** 2).sum(1) + 1e-9))
    on = (np.max(scores, 0) > .55) & (np.sqrt((a ** 2).mean(1)) > .004)
    on = np.convolve(np.pad(on.astype(float), 2, mode="edge"), np.ones(5), "valid") > 2.5  # no gaps or islands of 5 ms
    mask = np.repeat(on, step)[:len(y)].astype(np.float32)
    return np.convolve(np.pad(mask, 60, mode="edge"), np.ones(121) / 121, "valid")


def fundamental(y, P):
    """Phase of the fundamental around every sample, 0 at its crests: all stretches agree on where in the period the pulse lies."""
    n = 2 * int(round(P))
    turn = np.exp(-2j * np.pi * np.arange(len(y)) / P)
    slow = fftconvolve(y * turn, np.hanning(2 * n + 1), "same")
    return np.angle(slow) + 2 * np.pi * np.arange(len(y)) / P


def marks(y, P, on):
    """The places of the pulses in the voiced stretches."""
    phase = np.unwrap(fundamental(y, P))
    passed = np.flatnonzero(np.diff(np.floor(phase / (2 * np.pi))) > 0) + 1
    return passed[on[passed] > .05]


def locked(flat):
    """Samples at 24 kHz of a reading with a flat pitch near PITCH -> the same with pulses on the grid."""
    P = period(flat)
    on, p = voiced(flat, P), int(round(P))
    at = marks(flat, P, on)
    window, padded, out = np.hanning(2 * p + 1)[:-1], np.pad(flat, 2 * p), np.pad(flat * (1 - on), p)
    for t in range(0, len(flat), RATE // PITCH):
        if on[t] > .5 and len(at):
            m = at[np.abs(at - t).argmin()]
            if abs(m - t) <= p:
                out[t:t + 2 * p] += padded[m + p:m + 3 * p] * window
    return out[p:p + len(flat)].astype(np.float32)
