"""Stage 3: everything together on duplex sessions with real sound, spoken chat and typed chat. usage: python -m nano.train_joint SECONDS PEAK_LR [threads]

Starts from ctc.pt (hearing) and text.pt (the LLM); resumes from joint.pt."""
import random, sys, wave
import numpy as np
import torch
from . import ctc, layouts, mel, mixing, scenes
from .optim import Optimizer, schedule
from .run import Clock, Log, save, work
from .tokenizer import Text
from .train_ctc import Hearing, token_scores
from .train_text import pad, pretend_session, text_loss, token_loss

UNITS_PER_CACHE = 29  # the encoder forgets after so many units


def encode_session(nano, x, offset=0):
    """mel [B,100*U,80] -> states, rows, with the streaming cache rule; offset: units that went before (unheard)."""
    h = nano.apm.front(x)
    unit = torch.arange(h.shape[1]) // 50 + offset
    seen = (unit[None] <= unit[:, None]) & (unit[None] // UNITS_PER_CACHE == unit[:, None] // UNITS_PER_CACHE)
    at = (torch.arange(h.shape[1]) + 50 * offset) % (50 * UNITS_PER_CACHE)
    h = h + nano.apm.embed_positions.weight[at]
    mask = torch.zeros(seen.shape).masked_fill(~seen, float("-inf"))
    for layer in nano.apm.layers:
        h = layer(h, mask, None)
    h = nano.apm.layer_norm(h)
    return h, nano.audio_projection_layer(h)


def encode_clip(nano, x):
    """Offline rows of whole clips [B,T,80], T a multiple of 10."""
    h = nano.apm(x)
    return h, nano.audio_projection_layer(h)


class Maker:
    """Draws sessions from the bank. `easy` shifts starts towards the beginning."""

    def __init__(self, text, bank, r, voice):
        self.text, self.bank, self.r, self.voice = text, bank, r, voice

    def scene(self):
        r = self.r
        if r.random() < .06:
            return scenes.silent(r)
        turns = []
        for _ in range(r.choices([1, 2, 3], [75, 20, 5])[0]):
            i = r.randrange(len(self.bank))
            m = mixing.varied(r, self.bank[i])
            turns.append((len(m), (m, self.bank.records[i]["text"]), self.bank.records[i]["answer"]))
        return scenes.make(self.text, r, turns, late=.15, longest=30)

    def groups(self, units=150):
        """Endless lists of scenes of similar length, about `units` padded units each."""
        while True:
            pool = sorted((self.scene() for _ in range(160)), key=lambda s: s.units)
            groups, group = [], []
            for s in pool:
                group.append(s)
                if len(group) * s.units >= units:
                    groups.append(group)
                    group = []
            self.r.shuffle(groups)
            yield from groups

    def sound(self, scene, units):
        power = mixing.mix(self.r, [(start, clip[0]) for start, _, clip in scene.audio], units * 100)
        return mixing.mask_band(self.r, mixing.normalise(power))

    def voice_mel(self):
        """Reference audio of the system part: none, the default voice, or any clip."""
        k = self.r.random()
        if k < .3:
            return None
        if k < .65:
            return self.voice
        m = self.bank[self.r.randrange(len(self.bank))]
        m = torch.maximum(m, m.max() - 8)[:len(m) // 10 * 10]
        return (m + 4) / 4


def fill(nano, ids, rows):
    """Embeddings of ids [B,T] with `rows` (a list of [n_b,H]) at the -1 places."""
    e = nano.llm.model.embed_tokens(ids.clamp(min=0))
    return e.masked_scatter((ids < 0)[..., None], torch.cat(rows))


def head_loss(nano, e, ids, weights):
    h = nano.llm(e)
    keep = weights[:, 1:] > 0
    return token_loss(nano.llm.lm_head(h[:, :-1][keep]), ids[:, 1:][keep], weights[:, 1:][keep])


def duplex_loss(model, maker, group, phonemes):
    """(decisions and text, phoneme CTC, token CTC, mean loss on replies) of one group of scenes."""
    nano, text, r = model.nano, maker.text, maker.r
    units = max(s.units for s in group)
    x = torch.stack([maker.sound(s, units) for s in group])
    h, rows = encode_session(nano, x, 0 if r.random() < .6 else r.randrange(UNITS_PER_CACHE))
    voice = maker.voice_mel()
    voice_rows = encode_clip(nano, voice[None])[1][0] if voice is not None else rows.new_zeros(0, rows.shape[2])
    system = [layouts.duplex(text, s, r.choice(layouts.SYSTEM), len(voice_rows)) for s in group]
    ids, weights = pad(system)
    e = fill(nano, ids, [torch.cat([voice_rows, rows[b, :s.units * 10]]) for b, s in enumerate(group)])
    loss, ce = head_loss(nano, e, ids, weights)
    reply = ce[(weights[:, 1:] == 1)[weights[:, 1:] > 0]].mean().item() if any(s.say for s in group) else 0
    spoken = [" ".join(clip[1] for _, _, clip in s.audio) for s in group]
    some = [b for b, t in enumerate(spoken) if t]
    if not some:
        return loss, loss * 0, loss * 0, reply
    phone = ctc.loss(model.heads.phoneme(h[some]).log_softmax(-1), [phonemes(spoken[b]) for b in some])
    token = ctc.loss(token_scores(model, text, rows[some]), [[k + 1 for _, _, clip in group[b].audio for k in text.spoken(clip[1])] for b in some])
    return loss, phone, token, reply


def spoken_chat_loss(model, maker, n=14):
    """Turn-based questions by voice: <|audio_start|> rows <|audio_end|> in the user's message."""
    nano, text, r, bank = model.nano, maker.text, maker.r, maker.bank
    start = r.randrange(len(bank) - 300)
    chosen = r.sample(bank.by_length[start:start + 300], n)
    mels = [mixing.varied(r, bank[i]) for i in chosen]
    T = max(len(m) for m in mels) // 10 * 10 + 20
    x = torch.stack([mixing.mix(r, [(r.randrange(0, 15), m)], T, noisy=.5).log10() for m in mels])
    x = (torch.maximum(x, x.amax((1, 2), keepdim=True) - 8) + 4) / 4
    _, rows = encode_clip(nano, x)
    samples = []
    for i in chosen:
        system = text.encode(f"<|im_start|>system\n{r.choice(layouts.SYSTEM)}<|im_end|>\n") if r.random() < .5 else []
        opening, end = layouts.generation_prompt(text, r)
        prompt = system + text.encode("<|im_start|>user\n<|audio_start|>") + [layouts.ROW] * rows.shape[1] + text.encode("<|audio_end|><|im_end|>\n") + opening
        target = text.encode(bank.records[i]["answer"]) + end
        samples.append((prompt + target, [0] * len(prompt) + [1] * len(target)))
    ids, weights = pad(samples)
    return head_loss(nano, fill(nano, ids, list(rows)), ids, weights)[0]


def typed_batch(text, r, tokens):
    """One batch of typed chats and a few sessions with stand-in rows, of any lengths near each other."""
    while True:
        pool = sorted([layouts.random_chat(text, r) for _ in range(400)] + [pretend_session(text, r) for _ in range(12)], key=lambda s: len(s[0]))
        groups, group = [], []
        for s in pool:
            group.append(s)
            if len(group) * len(s[0]) >= tokens:
                groups.append(group)
                group = []
        r.shuffle(groups)
        yield from map(pad, groups)


def default_voice(path):
    """Offline mel of a 16 kHz wav."""
    with wave.open(str(path)) as w:
        y = np.frombuffer(w.readframes(w.getnframes()), "<i2").astype(np.float32) / 32768
    m = mel.offline(y)
    return m[:len(m) // 10 * 10]


def main():
    budget, peak, threads = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1
    torch.set_num_threads(threads)
    torch.manual_seed(2)
    text, bank, log, path = Text(work() / "tokenizer"), mixing.Bank(), Log("joint"), work() / "joint.pt"
    phonemes = ctc.Phonemes(w for q in bank.records for w in q["text"].split())
    model = Hearing(phonemes.size)
    opt = Optimizer(model, ["nano", "heads"])
    step, clock = 0, Clock()
    if path.exists():
        state = torch.load(path)
        model.load_state_dict(state["model"])
        opt.load_state_dict(state["opt"])
        step, clock = state["step"], Clock(state["seconds"])
    else:
        model.load_state_dict(torch.load(work() / "ctc.pt")["model"])
        model.nano.load_state_dict({k: v for k, v in torch.load(work() / "text.pt")["model"].items() if k.startswith("llm.")}, strict=False)
    r = random.Random(9 + step)
    maker = Maker(text, bank, r, default_voice(work() / "default_voice.wav"))
    typed, sums, count, units = typed_batch(text, r, 2500), [0.0] * 6, 0, 0
    keep = lambda: save(path, model=model.state_dict(), opt=opt.state_dict(), step=step, seconds=clock())
    for group in maker.groups():
        done = clock() / budget
        if done >= 1:
            break
        loss, phone, token, reply = duplex_loss(model, maker, group, phonemes)
        (loss + .1 * phone + .15 * token).backward()
        spoken = spoken_chat_loss(model, maker) if step % 2 else torch.zeros(())
        chat, _ = text_loss(model.nano.llm, *next(typed))
        (chat + .5 * spoken).backward()
        # the LLM starts gently, so that what it has learnt from text survives the first steps of a new kind of input
        opt.step(schedule(done, step, peak, warm=150, flat=.35))
        step, count, units = step + 1, count + 1, units + len(group) * max(s.units for s in group)
        sums = [a + b for a, b in zip(sums, (loss.item(), reply, phone.item(), token.item(), chat.item(), 2 * spoken.item()))]
        if step % 25 == 0:
            log(step=step, s=clock(), **dict(zip(("duplex", "reply", "phone", "token", "chat", "spoken"), (v / count for v in sums))), units_s=units / (clock() - clock.before))
            sums, count = [0.0] * 6, 0
        if step % 100 == 0:
            keep()
    keep()


if __name__ == "__main__":
    main()
