"""After the joint stage: the LLM alone learns typed questions, function calls, names and what it cannot answer further, held to its states and to what it says where that is right. usage: python -m nano.train_calls CPU_SECONDS [peak lr]

Resumes calls.pt, or else begins with joint.pt, or else with a shipped model; the last two are also what it is held to. It writes calls.pt, which `nano.export` takes in the place of joint.pt. A step has chats with functions,
names and questions outside the domain; chats and sessions of the text stage; and sessions, questions and chats of the joint stage, with real sound and pictures. The last two are also held to
the model as it was, where its likeliest token was the right one: its distribution, and the states that the talker reads. Encoder and embeddings stay as they are."""
import functools, itertools, sys
import torch
import torch.nn.functional as F
from . import ctc, layouts, mixing, outside, shipped, tools
from .feed import device, feed, grouped, scale
from .gallery import open_gallery
from .half import Fast, compiled
from .model import Nano
from .optim import Optimizer, schedule
from .questions import typed_question
from .run import Clock, Log, save, work
from .sessions import Maker, default_voice
from .tokenizer import Text
from .train_joint import distance, question_rows, session_rows, splice
from .train_text import pad, target_states, text_loss, token_loss, typed_pool

LIKE, STATES = 1.0, 6.0   # weights of the distribution and of the states
SOUND = 3                 # every so many steps have real sound, which takes three quarters of such a step's time


def called(text, r):
    kind = r.random()
    if kind < .1:
        return layouts.tool_chat(text, r)
    if kind < .16:
        system, question = tools.name_asked(r)
        return layouts.chat(text, r, [question], system=system)
    return layouts.chat(text, r, [outside.typed(r) if r.random() < .3 else typed_question(r) for _ in range(r.choice([1, 1, 2, 3, 4]))])


def batches(text, maker, r, tokens=1600):
    """Endless steps: (chats with functions, chats and sessions without sound, a step of the joint stage or None), the first two as (ids, weights)."""
    def endless(pool, tokens):
        while True:
            groups = grouped(pool(), lambda s: len(s[0]), tokens * scale())
            r.shuffle(groups)
            yield from map(pad, groups)

    calls, others, heard = endless(lambda: [called(text, r) for _ in range(400)], 2 * tokens), endless(lambda: typed_pool(text, r, 200, 60), tokens), maker.batches(r)
    for step in itertools.count():
        yield next(calls), next(others), None if step % SOUND else next(heard)


def held(old, new, e, ids, weights):
    """(loss of the targets, how far the new model is from the old one where that was right: divergence in nats, squared distance of the states by their size)."""
    keep = weights[:, 1:] > 0
    targets = ids[:, 1:][keep]
    with torch.no_grad():
        before = target_states(old, e, weights)
        likely = old.lm_head(before).float().log_softmax(-1)
        right = likely.argmax(-1) == targets
    now = target_states(new, e, weights)
    scores = new.lm_head(now)
    loss, _ = token_loss(scores, targets, weights[:, 1:][keep])
    far = F.kl_div(scores[right].float().log_softmax(-1), likely[right], log_target=True, reduction="batchmean")
    return loss, far, distance(now[right], before[right])


@torch.no_grad()
def heard(nano, batch):
    """A step of the joint stage as input rows of the LLM: (rows, ids, weights) of each of its parts."""
    session, asked, shown = batch["duplex"], batch["asked"], batch["shown"]
    parts = [(session, session_rows(nano, session)[2])]
    if asked:
        parts.append((asked, question_rows(nano, asked)))
    if shown:
        parts.append((shown, None))
    return [(splice(nano, part["ids"], part["seen"], own), part["ids"], part["weights"]) for part, own in parts]


def main():
    budget, peak = float(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 5e-4
    torch.set_num_threads(1)
    torch.manual_seed(0)
    text, bank, model, log, path, clock, step = Text(work() / "tokenizer"), mixing.Bank(), Nano(), Log("calls"), work() / "calls.pt", Clock(), 0
    state = torch.load(path, map_location="cpu") if path.exists() else None
    if (work() / "joint.pt").exists():
        model.load_state_dict({k.removeprefix("nano."): v for k, v in torch.load(work() / "joint.pt", map_location="cpu")["model"].items()}, strict=False)
    else:
        assert shipped.begin(model, "llm.", "apm.", "audio_projection_layer."), "neither joint.pt nor a shipped model"
    model.to(device())
    start = type(model)().to(device()).requires_grad_(False)
    start.load_state_dict(model.state_dict())
    start = Fast(start).net
    opt = Optimizer(model, ["llm"])
    if state:
        model.load_state_dict(state["model"])
        opt.load_state_dict(state["opt"])
        step, clock = state["step"], Clock(state["seconds"])
    fast = Fast(model)
    old, new = start.llm, fast.net.llm
    old.forward, new.forward = compiled(old.forward), compiled(new.forward)
    phonemes = ctc.Phonemes(w for q in bank.records for w in q["text"].split())
    maker = Maker(text, bank, phonemes, default_voice(work() / "default_voice.wav"), open_gallery(text, model.llm.model.embed_tokens.weight))
    sums = torch.zeros(4)
    for (ids, weights), (other, others), batch in feed(functools.partial(batches, text, maker), 77 + step):
        done = clock.share(budget)
        if done >= 1:
            break
        loss, ce = text_loss(new, ids, weights)
        loss.backward()
        e = new.model.embed_tokens(other).detach()
        parts = [(e + torch.randn_like(e) * .1 * e.std(), other, others), *(heard(start, batch) if batch else [])]  # rows of the encoder are near the embeddings, not on them
        for part in parts:
            again, far, moved = held(old, new, *part)
            ((again + LIKE * far + STATES * moved) / 2).backward()
            sums += torch.stack([far * 0, again, far, moved]).detach().cpu() / len(parts)
        fast.collect()
        model.llm.model.embed_tokens.weight.grad = None
        opt.step(schedule(done, step, peak))
        fast.refresh()
        step, sums[0] = step + 1, sums[0] + float(ce.detach().mean())
        if step % 25 == 0:
            log(step=step, s=clock(), **dict(zip(("calls", "others", "far", "moved"), (sums / 25).tolist())))
            sums *= 0
        if step % 200 == 0:
            save(path, model=model.state_dict(), opt=opt.state_dict(), step=step, seconds=clock())
    save(path, model=model.state_dict(), opt=opt.state_dict(), step=step, seconds=clock())


if __name__ == "__main__":
    main()
