"""Stage 3: everything together on duplex sessions with real sound, spoken chat and typed chat. usage: python -m nano.train_joint CPU_SECONDS PEAK_LR

Starts from ctc.pt (hearing) and text.pt (the LLM), or the shipped part if one is missing; resumes from joint.pt. If the shipped folder speaks, the states
that its talker reads stay near the shipped ones, so that the talker need not learn again."""
import copy, sys
import torch
from . import ctc, mixing, shipped
from .feed import device, feed
from .gallery import open_gallery
from .half import Fast, compiled
from .layouts import ROW, SIGHT
from .model import hidden
from .optim import Optimizer, schedule
from .run import Clock, Deadline, Log, save, work
from .sessions import Maker, default_voice
from .together import Crew
from .tokenizer import Text
from .train_ctc import Hearing, UNITS_PER_CACHE, load_llm, token_scores
from .train_text import states_and_loss, target_states

STATES = 2.0  # weight of the distance to the states that the shipped talker reads


def encode_session(nano, x, offset=0):
    """mel [B,100*U,80] -> states, rows, with the streaming cache rule; offset: number of (unheard) units before."""
    h = nano.apm.front(x)
    unit = torch.arange(h.shape[1], device=x.device) // 50 + offset
    seen = (unit[None] <= unit[:, None]) & (unit[None] // UNITS_PER_CACHE == unit[:, None] // UNITS_PER_CACHE)
    at = (torch.arange(h.shape[1], device=x.device) + 50 * offset) % (50 * UNITS_PER_CACHE)
    h = h + nano.apm.embed_positions.weight[at]
    mask = hidden(~seen, h)
    for layer in nano.apm.layers:
        h = layer(h, mask, None)
    h = nano.apm.layer_norm(h)
    return h, nano.audio_projection_layer(h)


def splice(nano, ids, seen, rows=None):
    """Input rows [B,T,H] of ids [B,T], with `rows` (all sessions in sequence, [n,H]) at the ROW places and `seen` [pictures,ROWS,H] at the SIGHT places."""
    e = nano.llm.model.embed_tokens(ids.clamp(min=0))
    if rows is not None:
        e = e.masked_scatter((ids == ROW)[..., None], rows)
    if len(seen):
        e = e.masked_scatter((ids == SIGHT)[..., None], seen.to(e.dtype))
    return e


def spliced_loss(nano, ids, weights, seen, rows=None):
    """Loss of ids [B,T] behind the rows of `splice`: (loss, loss of each target, their weights)."""
    _, (loss, ce) = states_and_loss(nano.llm, splice(nano, ids, seen, rows), ids, weights)
    return loss, ce.detach(), weights[:, 1:][weights[:, 1:] > 0]


def session_rows(nano, batch):
    """(states, rows, those that belong to the ROW places of its ids, in sequence) of a batch of sessions."""
    h, rows = encode_session(nano, batch["x"], batch["offset"])
    voice = nano.audio_projection_layer(nano.apm(batch["voice"][None]))[0] if len(batch["voice"]) else rows.new_zeros(0, rows.shape[2])
    return h, rows, torch.cat([part for b, n in enumerate(batch["rows"]) for part in (voice, rows[b, :n])])


def question_rows(nano, batch):
    """The rows of a batch of spoken questions, in sequence."""
    return nano.audio_projection_layer(nano.apm(batch["x"])).flatten(0, 1)


def duplex_loss(model, nano, text, batch):
    """(decisions and text, phoneme CTC, token CTC, mean loss on replies). nano does the computing: the model's own or a
    fast copy."""
    h, rows, own = session_rows(nano, batch)
    loss, ce, weights = spliced_loss(nano, batch["ids"], batch["weights"], batch["seen"], own)
    reply = ce[weights == 1].mean() if (weights == 1).any() else ce.new_zeros(())
    if not batch["heard"]:
        return loss, loss * 0, loss * 0, reply
    phone = ctc.loss(model.heads.phoneme(h[batch["heard"]].float()).log_softmax(-1), batch["phones"])
    token = ctc.loss(token_scores(model, text, rows[batch["heard"]].float()), batch["tokens"])
    return loss, phone, token, reply


def distance(now, before):
    """Squared distance of states by their size."""
    return (now.float() - before.float()).pow(2).mean() / before.float().pow(2).mean()


def typed_loss(llm, anchor, ids, weights):
    """(loss of typed chats, distance of their states to those of `anchor`, 0 without one)."""
    e = llm.model.embed_tokens(ids)
    now, (loss, _) = states_and_loss(llm, e, ids, weights)
    if anchor is None:
        return loss, loss.detach() * 0
    with torch.no_grad():
        before = target_states(anchor, e, weights)
    return loss, distance(now, before)


def read_by_talker(nano):
    """The LLM whose states the shipped talker reads, in the precision that computes; None without one."""
    found = {k: v for k, v in shipped.weights("llm.", "tts.").items() if k.startswith("llm.")}
    if not found:
        return None
    whole = copy.deepcopy(nano).requires_grad_(False)
    whole.load_state_dict(shipped.fitted(found, whole.state_dict()), strict=False)
    return Fast(whole).net.llm.requires_grad_(False)


def main():
    budget, peak = float(sys.argv[1]), float(sys.argv[2])
    torch.set_num_threads(1)
    torch.manual_seed(2)
    crew = Crew()
    text, bank, log, path = Text(work() / "tokenizer"), mixing.Bank(), Log("joint"), work() / "joint.pt"
    phonemes = ctc.Phonemes(w for q in bank.records for w in q["text"].split())
    model = Hearing(phonemes.size)
    step, clock, state = 0, Clock(), torch.load(path, map_location="cpu") if path.exists() else None
    if state:
        model.load_state_dict(state["model"])
        step, clock = state["step"], Clock(state["seconds"])
    else:
        if (work() / "ctc.pt").exists():
            model.load_state_dict(torch.load(work() / "ctc.pt", map_location="cpu")["model"])
        elif not shipped.begin(model.nano, "apm.", "audio_projection_layer."):
            raise SystemExit("neither ctc.pt nor a shipped encoder")
        load_llm(model.nano)
    model.to(device())
    model.nano.llm.model.embed_tokens.weight.requires_grad_(False)  # frozen, because the encoder was trained towards this table
    opt = Optimizer(model, ["nano", "heads"])
    if state:
        opt.load_state_dict(state["opt"])
    maker = Maker(text, bank, phonemes, default_voice(work() / "default_voice.wav"), open_gallery(text, model.nano.llm.model.embed_tokens.weight))
    fast = Fast(model.nano)
    anchor = read_by_talker(model.nano)
    fast.net.llm.forward = compiled(fast.net.llm.forward)
    if anchor:
        anchor.forward = compiled(anchor.forward)
    spoken = shown = torch.zeros(())
    sums, count, units, deadline = torch.zeros(8), 0, 0, Deadline()
    keep = lambda: save(path, model=model.state_dict(), opt=opt.state_dict(), step=step, seconds=clock())
    torch.manual_seed(2 + step + 100_000 * crew.rank)
    for batch in feed(maker.batches, 9 + step + 100_000 * crew.rank):
        done = crew.agreed(max(clock.share(budget), deadline()))
        if done >= 1:
            break
        loss, phone, token, reply = duplex_loss(model, fast.net, text, batch["duplex"])
        (loss + .1 * phone + .15 * token).backward()
        if batch["asked"]:
            asked = batch["asked"]
            spoken, _, _ = spliced_loss(fast.net, asked["ids"], asked["weights"], asked["seen"], question_rows(fast.net, asked))
            spoken.backward()
        if batch["shown"]:
            shown, _, _ = spliced_loss(fast.net, **batch["shown"])
            shown.backward()
        chat, moved = typed_loss(fast.net.llm, anchor, *batch["typed"])
        (chat + STATES * moved).backward()
        fast.collect()
        crew.average(opt.params)
        # A slow start, so that what was learnt from text survives the first steps with a new kind of input.
        opt.step(schedule(done, step, peak, warm=100, flat=.35))
        fast.refresh()
        step, count, units = step + 1, count + 1, units + batch["duplex"]["x"].shape[0] * batch["duplex"]["x"].shape[1] // 100
        sums += torch.stack([loss, reply, phone, token, chat, spoken, shown, moved]).detach().cpu()
        if step % 25 == 0 and crew.first:
            log(step=step, s=clock(), **dict(zip(("duplex", "reply", "phone", "token", "chat", "spoken", "shown", "moved"), (sums / count).tolist())), units_s=units / (clock() - clock.before))
            sums, count = torch.zeros(8), 0
        if step % 50 == 0 and crew.first:
            keep()
    if crew.first:
        keep()


if __name__ == "__main__":
    main()
