"""Log-mel front end: 16 kHz, window 400, hop 160, 80 slaney filters. Frames are kept as log10 power until a session is
assembled."""
import numpy as np
import torch

HOP, WINDOW = 160, 400


def filters():
    """[201,80] slaney-scale, slaney-normalised triangles from 0 to 8000 Hz."""
    to_hz = lambda m: np.where(m >= 15, 1000 * np.exp(np.log(6.4) / 27 * (m - 15)), 200 * m / 3)
    top = 15 + np.log(8) * 27 / np.log(6.4)
    edges, bins = to_hz(np.linspace(0.0, top, 82)), np.linspace(0, 8000, 201)
    slope, width = edges[None] - bins[:, None], np.diff(edges)
    bank = np.maximum(0, np.minimum(-slope[:, :-2] / width[:-1], slope[:, 2:] / width[1:]))
    return torch.from_numpy(bank * (2.0 / (edges[2:] - edges[:-2]))[None]).float()


BANK, HANN = filters(), torch.hann_window(WINDOW)


def log_power(samples):
    """float samples [n] -> log10 mel power [n // 160, 80], floored at 1e-10, reflect padding."""
    s = torch.stft(torch.as_tensor(samples).float(), WINDOW, HOP, window=HANN, center=True, pad_mode="reflect", return_complex=True)
    return torch.clamp(BANK.T @ (s[..., :-1].abs() ** 2), min=1e-10).log10().T


def offline(samples):
    """The rule for whole clips: floor 8 below the loudest value, then (x + 4) / 4. [T,80]"""
    x = log_power(samples)
    return (torch.maximum(x, x.max() - 8) + 4) / 4
