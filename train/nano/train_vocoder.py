"""Stage 6: the vocoder on the voice's own mels. usage: python -m nano.train_vocoder CPU_SECONDS PEAK_LR

Multi-resolution spectral losses and the error of the pitch; the source follows the measured pitch, so that it is learnt as an input that can be trusted."""
import math, sys
import torch
from . import shipped_speech
from .run import Clock, Log, save, work
from .vocoder import HOP, LOOK, Vocoder
from .voice_data import corpus, utterance

SEGMENT, BEFORE, BATCH = 32, 8, 3  # frames that are scored, frames of context on the left, segments of a step
RESOLUTIONS = [(1024, 240), (512, 120), (128, 32)]
FLOOR = 3e-3  # magnitudes below are silence


def pitches(samples, low=90, high=400, block=20000):
    """Pitch of each 480-sample frame by normalised autocorrelation over 40 ms; 0 = unvoiced. samples int16 [n] -> [n / 480]."""
    x, found = torch.nn.functional.pad(samples.float() / 32768, (240, 240)).unfold(0, 960, HOP), []
    lags = torch.arange(24000 // high, 24000 // low + 1)
    for part in x.split(block):
        part = part - part.mean(1, keepdim=True)
        power = torch.fft.rfft(part, 2048).abs() ** 2
        r = torch.fft.irfft(power)[:, :len(lags) + lags[0]]
        score = r[:, lags] / (r[:, :1] + 1e-6) * (960 / (960 - lags))
        best, at = score.max(1)
        first = (score > .9 * best[:, None]).float().argmax(1)  # the shortest period that is nearly as good: no octave below
        while True:  # climb to its peak
            up = (first + 1).clamp(max=len(lags) - 1)
            more = score.gather(1, up[:, None])[:, 0] > score.gather(1, first[:, None])[:, 0]
            if not more.any():
                break
            first = torch.where(more, up, first)
        voiced = (best > .5) & (part.pow(2).mean(1).sqrt() > .005)
        found.append(torch.where(voiced, 24000 / lags[first].float(), torch.zeros(())))
    return torch.cat(found)


def spectral(y, x, windows):
    """(mean difference of log magnitudes, spectral convergence) over all resolutions."""
    log = converge = 0
    for n, hop in RESOLUTIONS:
        a, b = (torch.view_as_real(torch.stft(z, n, hop, window=windows[n], return_complex=True)).pow(2).sum(-1).add(1e-7).sqrt() for z in (y, x))
        log = log + (a.clamp(min=FLOOR).log() - b.clamp(min=FLOOR).log()).abs().mean() / len(RESOLUTIONS)
        converge = converge + ((a - b).pow(2).sum() / b.pow(2).sum().clamp(min=1e-3)).sqrt() / len(RESOLUTIONS)
    return log, converge


@torch.no_grad()
def check(net, data, windows, n=6):
    """Log-magnitude error of copy synthesis on held-out sentences."""
    total = 0
    for i in range(min(n, len(data["first"]))):
        a, k = data["first"][i], data["length"][i]
        y = net(utterance(data, i)[1].transpose(1, 2))
        total += float(spectral(y, data["samples"][None, a * 960:(a + k) * 960].float() / 32768, windows)[0])
    return total / n


def main():
    budget, peak = float(sys.argv[1]), float(sys.argv[2])
    torch.set_num_threads(1)
    torch.manual_seed(6)
    data, tests, path, log, net = corpus("voice"), corpus("voice_test"), work() / "vocoder.pt", Log("vocoder"), Vocoder()
    net.standardise(data["mel"].mean(0), data["mel"].std(0))
    pitch, windows = pitches(data["samples"]), {n: torch.hann_window(n) for n, _ in RESOLUTIONS}
    opt = torch.optim.AdamW(net.parameters(), lr=peak, betas=(.8, .99), weight_decay=0, fused=True)
    step, clock, state = 0, Clock(), torch.load(path, map_location="cpu") if path.exists() else None
    if state:
        net.load_state_dict(state["model"])
        opt.load_state_dict(state["opt"])
        step, clock = state["step"], Clock(state["seconds"])
    elif shipped := shipped_speech.hift():
        net.load_state_dict(shipped)
    keep = lambda: save(path, model=net.state_dict(), opt=opt.state_dict(), step=step, seconds=clock())
    sums, count, T = torch.zeros(3), 0, BEFORE + SEGMENT + LOOK
    while clock() < budget:
        for group in opt.param_groups:
            group["lr"] = peak * min(1, (step + 1) / 150) * (.05 + .475 * (1 + math.cos(math.pi * clock() / budget)))
        starts = torch.randint(0, len(data["mel"]) - T, (BATCH,)).tolist()
        mel = torch.stack([data["mel"][a:a + T] for a in starts]).transpose(1, 2)
        want = torch.stack([data["samples"][(a + BEFORE) * HOP:(a + BEFORE + SEGMENT) * HOP] for a in starts]).float() / 32768
        f0 = torch.stack([pitch[a:a + T] for a in starts])
        guess = net.f0_predictor(mel)
        off = ((guess - f0)[:, BEFORE:-LOOK].abs() / 100).mean()
        y = net.decode(mel, net.source(f0))[:, BEFORE * HOP:(BEFORE + SEGMENT) * HOP]
        magnitude, converge = spectral(y, want, windows)
        opt.zero_grad()
        (magnitude + converge + off).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        step, count = step + 1, count + 1
        sums += torch.stack([magnitude, converge, off]).detach()
        if step % 100 == 0:
            log(step=step, s=clock(), **dict(zip(("magnitude", "convergence", "pitch"), (sums / count).tolist())))
            sums, count = torch.zeros(3), 0
        if step % 400 == 0:
            keep()
            log(step=step, s=clock(), held_magnitude=check(net, tests, windows))
    keep()
    log(step=step, s=clock(), held_magnitude=check(net, tests, windows))


if __name__ == "__main__":
    main()
