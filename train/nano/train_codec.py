"""Stages 4 and 5: speech tokenizer with flow encoder, then the flow itself. usage: python -m nano.train_codec CPU_SECONDS PEAK_LR tokens|encoder|flow

"tokens" trains the tokenizer and the encoder together, with straight-through rounding, to bring mu close to the mel; "encoder" only the encoder, so that a talker which knows the
tokens still fits. "flow" freezes both and trains the velocity field on mu. Every second step sees only blocks, as in streaming. States: codec.pt, and flow.pt, which starts from it; if neither exists, both
start from the shipped voice."""
import math, sys
import torch
from . import shipped_speech, speech
from .run import Clock, Log, save, work
from .voice_data import corpus, utterance, windows

WINDOW = dict(tokens=(75, 6), encoder=(75, 6), flow=(50, 8))  # (speech tokens, sequences) per step
STREAM_BLOCK = 25
UNCONDITIONAL = .2


def standardise(tokenizer, flow, data):
    """Folds the mean and spread of the log mels into the first and last layers, so that raw mels go in and out."""
    with torch.no_grad():
        mean, deviation = data["heard"].mean(0), data["heard"].std(0)
        tokenizer.conv1.weight.div_(deviation[None, :, None])
        tokenizer.conv1.bias.sub_((tokenizer.conv1.weight * mean[None, :, None]).sum((1, 2)))
        mean, deviation, dit = data["mel"].mean(0), data["mel"].std(0), flow.decoder["estimator"]
        flow.encoder_proj.bias.copy_(mean)
        dit.in_proj.weight[:, 80:160] /= deviation
        dit.in_proj.weight[:, :80] /= 2
        dit.in_proj.bias.sub_((dit.in_proj.weight[:, 80:160] * mean).sum(1))
        dit.final_layer["linear"].bias.copy_(mean)
        dit.final_layer["linear"].weight.mul_(deviation[:, None])


def mu_loss(tokenizer, flow, heard, mel, block):
    """(L1 of mu; penalty that pulls the digits' means to zero, so that all codes are used; codes)."""
    h = tokenizer(heard)
    digit = h + (h.round() - h).detach()
    mu = flow.mu(digit, block)
    return (mu - mel)[:, :-4].abs().mean(), (h.mean((0, 1)) ** 2).sum(), speech.codes(digit.detach())


def flow_loss(tokenizer, flow, heard, mel, block):
    with torch.no_grad():
        mu = flow.mu(tokenizer(heard).round(), block and STREAM_BLOCK)
    mu = mu * (torch.rand(len(mel), 1, 1) > UNCONDITIONAL)
    noise, t = torch.randn_like(mel), 1 - torch.cos(torch.rand(len(mel)) * .5 * torch.pi)
    v = flow.decoder["estimator"](noise + t[:, None, None] * (mel - noise), mu, t, 2 * block)
    return (v - (mel - noise)).pow(2).mean()


@torch.no_grad()
def check(tokenizer, flow, data, n=12):
    """For held-out sentences in streaming blocks: mean L1 distance to the mel of (mu, the flow's five steps)."""
    g, errors = torch.Generator().manual_seed(5), []
    for i in range(min(n, len(data["first"]))):
        heard, mel = utterance(data, i)
        mu = flow.mu(tokenizer(heard).round(), STREAM_BLOCK)
        x = flow.mel(mu, torch.randn(mu.shape, generator=g), block=2 * STREAM_BLOCK)
        errors.append([(mu - mel).abs().mean(), (x - mel).abs().mean()])
    return torch.tensor(errors).mean(0).tolist()


def main():
    budget, peak, stage = float(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(1)
    torch.manual_seed(4)
    data, tests, path, log = corpus("voice"), corpus("voice_test"), work() / ("flow.pt" if stage == "flow" else "codec.pt"), Log(stage)
    tokenizer, flow = speech.SpeechTokenizer(), speech.Flow()
    standardise(tokenizer, flow, data)
    source = path if path.exists() or stage != "flow" else work() / "codec.pt"
    state = torch.load(source, map_location="cpu") if source.exists() else None
    if not state and shipped_speech.flow():
        state, source = dict(tokenizer=shipped_speech.tokenizer(), flow=shipped_speech.flow()), None
    if state:
        tokenizer.load_state_dict(state["tokenizer"])
        flow.load_state_dict(state["flow"])
    learnt = list(flow.decoder.parameters()) if stage == "flow" else [p for n, p in flow.named_parameters() if not n.startswith("decoder")]
    if stage == "tokens":
        learnt += tokenizer.parameters()
    tokenizer.requires_grad_(stage == "tokens")
    opt = torch.optim.AdamW(learnt, lr=peak, betas=(.9, .98), weight_decay=.01, fused=True)
    step, clock = 0, Clock()
    if state and source == path:
        opt.load_state_dict(state["opt"])
        step, clock = state["step"], Clock(state["seconds"])
    keep = lambda: save(path, tokenizer=tokenizer.state_dict(), flow=flow.state_dict(), opt=opt.state_dict(), step=step, seconds=clock())
    total = count = 0
    used = []
    while clock() < budget:
        for group in opt.param_groups:
            group["lr"] = peak * min(1, (step + 1) / 100) * (.03 + .485 * (1 + math.cos(math.pi * clock.share(budget))))
        heard, mel = windows(data, *WINDOW[stage])
        block = STREAM_BLOCK if step % 2 else 0
        if stage == "flow":
            loss = error = flow_loss(tokenizer, flow, heard, mel, block)
        else:
            error, pull, found = mu_loss(tokenizer, flow, heard, mel, block)
            loss = error + .02 * pull
            used = [*used[-40:], found.unique()]
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learnt, 2.0)
        opt.step()
        step, count, total = step + 1, count + 1, total + float(error.detach())
        if step % 100 == 0:
            log(step=step, s=clock(), loss=total / count, codes=len(torch.cat(used).unique()) if used else None)
            total = count = 0
        if step % 400 == 0:
            keep()
            mu, five = check(tokenizer, flow, tests)
            log(step=step, s=clock(), held_mu=mu, held_flow=five)
    keep()
    mu, five = check(tokenizer, flow, tests, 60)
    log(step=step, s=clock(), held_mu=mu, held_flow=five)


if __name__ == "__main__":
    main()
