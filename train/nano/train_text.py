"""Stage 1: the LLM alone, on chat and on duplex sessions whose audio rows are token embeddings. usage: python -m nano.train_text CPU_SECONDS [peak lr] [freeze]

Resumes text.pt, or else begins with a shipped LLM. `freeze`: the share of the run (0 … 1) after which the input embeddings are frozen; from then on the
encoder can be trained towards them in parallel."""
import functools, sys
import torch
import torch.nn.functional as F
from . import layouts, outside, scenes, shipped
from .feed import device, feed, grouped, scale
from .half import Fast, compiled
from .model import Nano
from .optim import Optimizer, schedule
from .questions import draw
from .run import Clock, Log, save, work
from .tokenizer import Text

Z = 2e-3  # pulls log-sum-exp to 0, so that logits are log-probabilities and the server's repetition and length penalties hardly act


def token_loss(logits, targets, weights):
    """Weighted cross entropy per target plus the z term; logits [N,V]."""
    logits, at = logits.float(), targets[:, None]
    ce = -F.log_softmax(logits, -1).gather(1, at)[:, 0]  # fused: needs a third of logsumexp's passes over the logits
    lse = ce + logits.gather(1, at)[:, 0]
    return (ce * weights).sum() / weights.sum() + Z * lse.pow(2).mean(), ce


def pad(samples):
    """[(ids, weights)] -> ids [B,T], weights [B,T], right padded."""
    T = max(len(i) for i, _ in samples)
    ids, weights = torch.zeros(len(samples), T, dtype=torch.long), torch.zeros(len(samples), T)
    for b, (i, w) in enumerate(samples):
        ids[b, :len(i)], weights[b, :len(i)] = torch.tensor(i), torch.tensor(w, dtype=torch.float)
    return ids, weights


def pretend_session(text, r):
    """A duplex session with stand-in rows, as plain ids."""
    voice = r.choice([0, 0, r.randrange(15, 60)])
    if r.random() < .03:
        scene = scenes.silent(r)
    else:
        turns = []
        for _ in range(r.choices([1, 2, 3], [5, 3, 2])[0]):
            q = draw(r, reword=.2) if r.random() > outside.SPOKEN_SHARE else r.choice([outside.words, outside.question])(r)
            length = int((len(q.text) * 6.5 + 15) * r.uniform(.8, 1.3))
            turns.append((length + (r.randrange(40, 120) if r.random() < .1 else 0), q.text, q.answer))
        scene = scenes.make(text, r, turns, late=.3, longest=26)
    ids, weights = layouts.duplex(text, scene, r.choice(layouts.SYSTEM), voice)
    rows = iter(layouts.rows_as_tokens(text, r, scene, voice))
    return [next(rows) if i == layouts.ROW else i for i in ids], weights


def typed_pool(text, r, chats, sessions):
    """Samples of chats and of sessions with stand-in rows."""
    return [layouts.random_chat(text, r) for _ in range(chats)] + [pretend_session(text, r) for _ in range(sessions)]


def batches(text, r, tokens=3200):
    """Endless batches of similar length, with about `tokens` padded tokens each (times $NANO_SCALE); one sample in
    eleven is a session."""
    while True:
        groups = grouped(typed_pool(text, r, int(400 * max(1, scale() / 4)), int(40 * max(1, scale() / 4))), lambda s: len(s[0]), tokens * scale())
        r.shuffle(groups)
        yield from map(pad, groups)


def target_states(llm, e, weights):
    """The states [n,H] from which the targets of the rows e [B,T,H] are predicted."""
    return llm(e)[:, :-1][weights[:, 1:] > 0]


def states_and_loss(llm, e, ids, weights):
    """(target_states, what token_loss says of them) for the rows e [B,T,H] of ids [B,T]."""
    keep, states = weights[:, 1:] > 0, target_states(llm, e, weights)
    return states, token_loss(llm.lm_head(states), ids[:, 1:][keep], weights[:, 1:][keep])


def text_loss(llm, ids, weights):
    """token_loss of ids [B,T] whose rows are their embeddings."""
    return states_and_loss(llm, llm.model.embed_tokens(ids), ids, weights)[1]


def main():
    budget, peak = float(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 3e-3
    freeze = float(sys.argv[3]) if len(sys.argv) > 3 else .4
    torch.set_num_threads(1)
    torch.manual_seed(0)
    text, model, path, log = Text(work() / "tokenizer"), Nano(), work() / "text.pt", Log("text")
    step, clock, state = 0, Clock(), torch.load(path, map_location="cpu") if path.exists() else None
    if state:
        model.load_state_dict({k: v for k, v in state["model"].items() if k.startswith("llm.")}, strict=False)
        step, clock = state["step"], Clock(state["seconds"])
    elif shipped.begin(model, "llm.") and shipped.weights("apm."):
        freeze = 0  # the shipped encoder matches the shipped table
    model.to(device())
    opt = Optimizer(model, ["llm"])
    if state and state["opt"]:
        opt.load_state_dict(state["opt"])
    fast = Fast(model)
    fast.net.llm.forward = compiled(fast.net.llm.forward)
    seen = count = 0
    total = torch.zeros((), device=device())
    for ids, weights in feed(functools.partial(batches, text), 5 + step):
        done = clock.share(budget)
        if done >= 1:
            break
        loss, ce = text_loss(fast.net.llm, ids, weights)
        loss.backward()
        fast.collect()
        if done >= freeze:
            model.llm.model.embed_tokens.weight.grad = None
        opt.step(schedule(done, step, peak))
        fast.refresh()
        step, seen, total, count = step + 1, seen + ids.numel(), total + ce.detach().mean(), count + 1
        if step % 25 == 0:
            log(step=step, s=clock(), loss=float(total / count), tok_s=seen / (clock() - clock.before))
            total, count = total * 0, 0
        if step % 25 == 0:
            save(path, model=model.state_dict(), opt=opt.state_dict(), step=step, seconds=clock())
    save(path, model=model.state_dict(), opt=opt.state_dict(), step=step, seconds=clock())


if __name__ == "__main__":
    main()
