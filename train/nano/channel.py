"""What happens to a voice on its way: rooms, microphones, telephone, codecs, clipping. Samples at 16 kHz; done once, when a clip is made.
What is cheap as power-mel (noise, hum, background talk, colour, level jumps) is drawn anew for every step, in `mixing`."""
import numpy as np
from scipy.signal import fftconvolve, resample_poly

RATE = 16000


def room(y, g):
    """An impulse response made of early reflections and a decaying tail, longer for low frequencies."""
    n = int(RATE * g.uniform(.08, .6))
    t = np.arange(n) / RATE
    tail = g.standard_normal(n) * np.exp(-6.9 * t / t[-1]) * g.uniform(.005, .06)
    tail[1:] = .5 * tail[1:] + .5 * tail[:-1]
    for _ in range(g.integers(3, 9)):
        at = int(RATE * g.uniform(.001, .03))
        if at < n:
            tail[at] += g.uniform(-.5, .5) * np.exp(-at / 300)
    tail[0] = 1
    return fftconvolve(y, tail)[:len(y) + n // 2]


def band(y, low, high):
    """Only the frequencies between low and high (Hz), with soft edges."""
    s = np.fft.rfft(y)
    f = np.arange(len(s)) * RATE / 2 / len(s)
    return np.fft.irfft(s / np.sqrt(1 + (low / np.maximum(f, 1)) ** 8) / np.sqrt(1 + (f / high) ** 16), len(y))


def mu_law(y):
    """Through 8 bits of mu-law at 8 kHz, as on a telephone."""
    z = resample_poly(y, 1, 2)
    top = np.abs(z).max() + 1e-9
    code = np.round(np.sign(z) * np.log1p(255 * np.abs(z) / top) / np.log(256) * 127) / 127
    return resample_poly(np.sign(code) * np.expm1(np.abs(code) * np.log(256)) / 255 * top, 2, 1)[:len(y)]


def coarse(y, g):
    """A low-rate codec, roughly: the spectrum of each 32 ms in few steps, weak parts dropped."""
    n = 512
    pad = np.pad(y, (n, n + -len(y) % (n // 2)))
    window = np.sin(np.pi * (np.arange(n) + .5) / n)
    frames = np.lib.stride_tricks.sliding_window_view(pad, n)[::n // 2] * window
    s = np.fft.rfft(frames)
    step = np.abs(s).max(1, keepdims=True) * g.uniform(.01, .05) + 1e-9
    s = (np.round(s.real / step) + 1j * np.round(s.imag / step)) * step
    out = np.zeros(len(pad))
    for k, frame in enumerate(np.fft.irfft(s, n) * window):
        out[k * n // 2:k * n // 2 + n] += frame
    return out[n:n + len(y)]


def clipped(y, g):
    top = np.abs(y).max() * g.uniform(.15, .6)
    return np.clip(y, -top, top)


def channel(y, g):
    """A random way: most clips get one or two of these, a third none."""
    if g.random() < .33:
        return y
    if g.random() < .5:
        y = room(y, g)
    kind = g.random()
    if kind < .12:
        y = mu_law(band(y, 250, 3500))
    elif kind < .24:
        y = band(y, g.uniform(50, 350), g.uniform(2800, 6500))
    elif kind < .34:
        y = coarse(y, g)
    elif kind < .44:
        y = clipped(y, g)
    return y.astype(np.float32)
