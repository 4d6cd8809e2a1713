"""Stage 6: the vocoder on the voice's mels, recorded or made by the flow. usage: python -m nano.train_vocoder CPU_SECONDS PEAK_LR

The losses: multi-resolution spectra, the mel that a recogniser sees, and the pitch. The source follows the corpus's pitch and its phase, so that the vocoder learns
to place its pulses by it. A quarter of the mels are the recordings' own; the others are what the flow makes of their tokens, as in the server. Starts from the shipped
vocoder, and the flow is that of flow.pt, codec.pt or the shipped voice."""
import math, sys
import torch
from . import shipped_speech
from .run import Clock, Log, save, work
from .train_codec import STREAM_BLOCK
from .vocoder import FADED, HOP, Vocoder, source_phase
from .voice import slaney
from .voice_data import corpus, utterance

SEGMENT, AROUND, BATCH = 40, FADED, 3  # frames in the loss, frames before and after them, as the server fades over them, segments per step
MADE = .75    # share of the segments whose mel the flow made
RESOLUTIONS = [(1024, 240), (512, 120), (128, 32)]
FLOOR = 3e-3  # magnitudes below this are silence
EAR, EAR_FLOOR = (600, 240), 3e-6  # window and hop of 25 and 10 ms; power below this is silence
EAR_BANK = slaney(80, 301, 0, 8000, 24000)


def spectral(y, x, windows):
    """(mean difference of log magnitudes, spectral convergence, relative error of the complex spectra) over all
    resolutions. The last is possible because the recording's pulses are the source's."""
    log = converge = phase = 0
    for n, hop in RESOLUTIONS:
        u, v = (torch.view_as_real(torch.stft(z, n, hop, window=windows[n], return_complex=True)) for z in (y, x))
        a, b = (z.pow(2).sum(-1).add(1e-7).sqrt() for z in (u, v))
        phase = phase + ((u - v).pow(2).sum() / b.pow(2).sum().clamp(min=1e-3)).add(1e-8).sqrt() / len(RESOLUTIONS)
        log = log + (a.clamp(min=FLOOR).log() - b.clamp(min=FLOOR).log()).abs().mean() / len(RESOLUTIONS)
        converge = converge + ((a - b).pow(2).sum() / b.pow(2).sum().clamp(min=1e-3)).sqrt() / len(RESOLUTIONS)
    return log, converge, phase


def heard(y, windows):
    """[B,n] -> log10 mel power as recognisers compute it."""
    s = torch.view_as_real(torch.stft(y, *EAR, window=windows[EAR[0]], return_complex=True)).pow(2).sum(-1)
    return (s.transpose(1, 2) @ EAR_BANK).clamp(min=EAR_FLOOR).log10()


def phases(data):
    """[frames], double: the source's phase in the middle of each frame, in cycles from its sentence's beginning."""
    return torch.cat([source_phase(data["pitch"][2 * a:2 * (a + n)]) for a, n in zip(data["first"], data["length"])])


@torch.no_grad()
def made_by_flow(data):
    """The mel [frames,80] that the flow makes of the recordings' tokens; the recordings' own if there is no flow yet."""
    codec, parts = shipped_speech.codec(), []
    if codec is None:
        return data["mel"]
    tokenizer, flow = codec
    for i in range(len(data["first"])):
        mu = flow.mu(tokenizer(utterance(data, i)[0]).round(), STREAM_BLOCK)
        parts.append(flow.mel(mu, torch.randn_like(mu), block=2 * STREAM_BLOCK)[0])
    return torch.cat(parts)


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
    windows = {n: torch.hann_window(n) for n, _ in [*RESOLUTIONS, EAR]}
    opt = torch.optim.AdamW(net.parameters(), lr=peak, betas=(.8, .99), weight_decay=0, fused=True)
    step, clock, state = 0, Clock(), torch.load(path, map_location="cpu") if path.exists() else None
    if state:
        net.load_state_dict(state["model"])
        opt.load_state_dict(state["opt"])
        step, clock = state["step"], Clock(state["seconds"])
    elif shipped := shipped_speech.hift():
        net.load_state_dict(shipped)
    keep = lambda: save(path, model=net.state_dict(), opt=opt.state_dict(), step=step, seconds=clock())
    sums, count, T, cycles = torch.zeros(5), 0, SEGMENT + 2 * AROUND, phases(data)
    decode = torch.compile(net.decode, dynamic=False)  # costs 230 s once, and a step then takes a quarter less
    mels = [data["mel"], made_by_flow(data)] if clock() < budget else []  # with no time left, the state is only copied
    while clock() < budget:
        for group in opt.param_groups:
            group["lr"] = peak * min(1, (step + 1) / 150) * (.05 + .475 * (1 + math.cos(math.pi * clock.share(budget))))
        starts = torch.randint(0, len(data["mel"]) - T, (BATCH,)).tolist()
        mel = torch.stack([mels[made][a:a + T] for a, made in zip(starts, (torch.rand(BATCH) < MADE).tolist())]).transpose(1, 2)
        want = torch.stack([data["samples"][(a + AROUND) * HOP:(a + AROUND + SEGMENT) * HOP] for a in starts]).float() / 32768
        f0, turns = (torch.stack([x[a:a + T] for a in starts]) for x in (data["pitch"], cycles))
        guess = net.f0_predictor(mel)
        off = ((guess - f0)[:, AROUND:-AROUND].abs() / 100).mean()
        y = decode(mel, net.source(f0, turns))[:, AROUND * HOP:(AROUND + SEGMENT) * HOP]
        magnitude, converge, complex_ = spectral(y, want, windows)
        ear = (heard(y, windows) - heard(want, windows)).abs().mean()
        opt.zero_grad()
        (magnitude + converge + complex_ + ear + off).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        step, count = step + 1, count + 1
        sums += torch.stack([magnitude, converge, complex_, ear, off]).detach()
        if step % 100 == 0:
            log(step=step, s=clock(), **dict(zip(("magnitude", "convergence", "complex", "ear", "pitch"), (sums / count).tolist())))
            sums, count = torch.zeros(5), 0
        if step % 400 == 0:
            keep()
            log(step=step, s=clock(), held_magnitude=check(net, tests, windows))
    keep()
    log(step=step, s=clock(), held_magnitude=check(net, tests, windows))


if __name__ == "__main__":
    main()
