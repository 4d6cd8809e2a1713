"""After the joint stage: the LLM alone learns function calls further, held to what it says and to its states otherwise. usage: python -m nano.train_calls CPU_SECONDS [peak lr]

Begins with joint.pt, or else with a shipped model, and writes calls.pt, which `nano.export` takes in the place of joint.pt. Half of each step are chats with
functions and names; the other half are the chats and sessions of the text stage, for which the model as it was is the target: its distribution, and the states
that the talker reads. The embeddings stay as they are, for the encoder."""
import functools, sys
import torch
import torch.nn.functional as F
from . import layouts, shipped, tools
from .feed import device, feed, grouped, scale
from .half import Fast, compiled
from .model import Nano
from .optim import Optimizer, schedule
from .run import Clock, Log, save, work
from .tokenizer import Text
from .train_text import pad, token_loss, typed_pool

KINDS = [20, 50, 12, 18]  # the weather has a city to copy; a function that is missing is the hardest
LIKE, STATES = 1.0, 4.0   # weights of the distribution and of the states


def called(text, r):
    if r.random() < .85:
        return layouts.tool_chat(text, r, KINDS)
    system, question = tools.name_asked(r)
    return layouts.chat(text, r, [question], system=system)


def batches(text, r, tokens=1600):
    """Endless pairs of batches: (chats with functions, all else), each (ids, weights)."""
    def endless(pool):
        while True:
            groups = grouped(pool(), lambda s: len(s[0]), tokens * scale())
            r.shuffle(groups)
            yield from map(pad, groups)

    yield from zip(endless(lambda: [called(text, r) for _ in range(200)]), endless(lambda: typed_pool(text, r, 200, 60)))


def as_it_was(old, new, ids, weights):
    """How far the new model is from the old one where something is said: (divergence in nats, squared distance of the states by their size)."""
    e = new.model.embed_tokens(ids)
    e = e + torch.randn_like(e) * .1 * e.std()  # rows of the encoder are near the embeddings, not on them
    keep = weights[:, 1:] > 0
    with torch.no_grad():
        before = old(e)[:, :-1][keep]
        likely = old.lm_head(before).float().log_softmax(-1)
    now = new(e)[:, :-1][keep]
    far = F.kl_div(new.lm_head(now).float().log_softmax(-1), likely, log_target=True, reduction="batchmean")
    return far, (now.float() - before.float()).pow(2).mean() / before.float().pow(2).mean()


def main():
    budget, peak = float(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 1e-3
    torch.set_num_threads(1)
    torch.manual_seed(0)
    text, model, log, path, clock, step = Text(work() / "tokenizer"), Nano(), Log("calls"), work() / "calls.pt", Clock(), 0
    if (work() / "joint.pt").exists():
        model.load_state_dict({k.removeprefix("nano."): v for k, v in torch.load(work() / "joint.pt", map_location="cpu")["model"].items()}, strict=False)
    else:
        assert shipped.begin(model, "llm.", "apm.", "audio_projection_layer."), "neither joint.pt nor a shipped model"
    model.to(device())
    old = type(model)().to(device()).requires_grad_(False)
    old.load_state_dict(model.state_dict())
    old = Fast(old).net.llm
    opt, fast = Optimizer(model, ["llm"]), Fast(model)
    old.forward, fast.net.llm.forward = compiled(old.forward), compiled(fast.net.llm.forward)
    sums = torch.zeros(3)
    for (ids, weights), others in feed(functools.partial(batches, text), 77):
        done = clock() / budget
        if done >= 1:
            break
        llm = fast.net.llm
        keep = weights[:, 1:] > 0
        loss, ce = token_loss(llm.lm_head(llm(llm.model.embed_tokens(ids))[:, :-1][keep]), ids[:, 1:][keep], weights[:, 1:][keep])
        far, moved = as_it_was(old, llm, *others)
        (loss + LIKE * far + STATES * moved).backward()
        fast.collect()
        model.llm.model.embed_tokens.weight.grad = None
        opt.step(schedule(done, step, peak))
        fast.refresh()
        step, sums = step + 1, sums + torch.stack([ce.detach().mean(), far.detach(), moved.detach()]).cpu()
        if step % 25 == 0:
            calls, far, moved = (sums / 25).tolist()
            log(step=step, s=clock(), calls=calls, far=far, moved=moved)
            sums *= 0
    save(path, model=model.state_dict(), step=step, seconds=clock())


if __name__ == "__main__":
    main()
