"""Pitch of speech by autocorrelation."""
import torch

HOP = 480


def pitches(samples, low=90, high=400, block=20000):
    """Pitch of each 480-sample frame by normalised autocorrelation over 40 ms; 0 = unvoiced. samples int16 [n] -> [n /
    480]."""
    x, found = torch.nn.functional.pad(samples.float() / 32768, (240, 240)).unfold(0, 960, HOP), []
    lags = torch.arange(24000 // high, 24000 // low + 1)
    for part in x.split(block):
        part = part - part.mean(1, keepdim=True)
        power = torch.fft.rfft(part, 2048).abs() ** 2
        r = torch.fft.irfft(power)[:, :len(lags) + lags[0]]
        score = r[:, lags] / (r[:, :1] + 1e-6) * (960 / (960 - lags))
        best, at = score.max(1)
        first = (score > .9 * best[:, None]).float().argmax(1)  # the shortest period that is nearly as good, to avoid an octave too low
        while True:  # climb to the local peak
            up = (first + 1).clamp(max=len(lags) - 1)
            more = score.gather(1, up[:, None])[:, 0] > score.gather(1, first[:, None])[:, 0]
            if not more.any():
                break
            first = torch.where(more, up, first)
        voiced = (best > .5) & (part.pow(2).mean(1).sqrt() > .005)
        found.append(torch.where(voiced, 24000 / lags[first].float(), torch.zeros(())))
    return torch.cat(found)
