"""Batches for the joint stage, made without the model: duplex sessions with sound, spoken turn-based questions, typed
chats."""
import wave
import numpy as np
import torch
from . import layouts, mel, mixing, scenes, sights
from .feed import grouped, scale
from .model import SIZES
from .train_text import pad, typed_pool
from .train_ctc import UNITS_PER_CACHE


def default_voice(path):
    """Offline mel of a 16 kHz wav, trimmed to a multiple of 10 frames."""
    with wave.open(str(path)) as w:
        y = np.frombuffer(w.readframes(w.getnframes()), "<i2").astype(np.float32) / 32768
    m = mel.offline(y)
    return m[:len(m) // 10 * 10]


class Maker:
    """Draws from a bank of clips. phonemes: text -> ids; voice: mel of the default voice; gallery: pictures."""

    def __init__(self, text, bank, phonemes, voice, gallery):
        self.text, self.bank, self.phonemes, self.voice, self.gallery = text, bank, phonemes, voice, gallery
        self.asked_of = {i: sights.Asked(*q["asked"]) for i, q in enumerate(bank.records) if "asked" in q}  # the clips with questions about pictures

    def scene(self, r):
        if r.random() < .12:
            return scenes.silent(r)
        turns = []
        for _ in range(r.choices([1, 2, 3, 4], [62, 22, 10, 6])[0]):
            i = r.randrange(len(self.bank))
            m = mixing.varied(r, self.bank[i])
            turns.append((len(m), (m, self.bank.records[i]["text"]), self.bank.records[i]["answer"]))
        return scenes.make(self.text, r, turns, late=.2, longest=30)

    def watched(self, r):
        """A scene with frames; three in five of its questions are about what they show."""
        clips, turns, shown = list(self.asked_of), [], []
        for _ in range(r.choices([1, 2, 3], [60, 30, 10])[0]):
            i = r.choice(clips) if r.random() < .6 else r.randrange(len(self.bank))
            asked, m = self.asked_of.get(i), mixing.varied(r, self.bank[i])
            shown.append(self.gallery.pick(r, asked))
            answer = sights.answer(asked, shown[-1][0]) if asked else self.bank.records[i]["answer"]
            turns.append((len(m), (m, self.bank.records[i]["text"]), answer))
        scene = scenes.make(self.text, r, turns, late=.1, longest=20)
        if r.random() < .05:  # a session in which nobody speaks
            scene = scenes.silent(r)
        return scenes.show(scene, r, self.gallery.pick(r)[1] if r.random() < .5 else shown[0][1], [rows for _, rows in shown])

    def reference(self, r):
        """Reference audio for the system part: none [0,80], the default voice, or any clip."""
        k = r.random()
        if k < .45:
            return torch.zeros(0, 80)
        if k < .85:
            return self.voice
        m = self.bank[r.randrange(len(self.bank))]
        m = torch.maximum(m, m.max() - 8)[:len(m) // 10 * 10]
        return (m + 4) / 4

    def seen(self, r, rows):
        """Rows of pictures, each slightly blurred: [pictures, ROWS, H]."""
        rows = torch.stack(rows) if rows else torch.zeros(0, sights.ROWS, SIZES["H"])
        return rows + torch.randn_like(rows) * .05 * (rows.std() if len(rows) else 0)

    def duplex(self, r, group):
        """Sound [B,100*U,80], ids and weights [B,T], rows of each session, CTC targets of the sessions with speech,
        rows of the frames."""
        units, voice = max(s.units for s in group), self.reference(r)
        power = [mixing.mix(r, [(start, clip[0]) for start, _, clip in s.audio], units * 100, bank=self.bank) for s in group]
        ids, weights = pad([layouts.duplex(self.text, s, r.choice(layouts.SYSTEM), len(voice) // 10) for s in group])
        spoken = [[clip[1] for _, _, clip in s.audio] for s in group]
        heard = [b for b, texts in enumerate(spoken) if texts and all(texts)]  # what is said in other languages has no text
        return dict(x=torch.stack([mixing.mask_band(r, mixing.normalise(p)) for p in power]), ids=ids, weights=weights, voice=voice, rows=[s.units * 10 for s in group],
                    offset=0 if r.random() < .6 else r.randrange(UNITS_PER_CACHE), heard=heard, phones=[self.phonemes(" ".join(spoken[b])) for b in heard],
                    tokens=[[k + 1 for t in spoken[b] for k in self.text.spoken(t)] for b in heard], seen=self.seen(r, [s.frames[u] for s in group for u in sorted(s.frames)]))

    def asked(self, r, n):
        """Turn-based questions by voice: <|audio_start|> rows <|audio_end|> in the user's message. Sound [B,T,80], ids, weights."""
        text, bank = self.text, self.bank
        start = r.randrange(max(1, len(bank) - 300))
        chosen = [r.choice(bank.by_length[start:start + 300]) for _ in range(n)]
        mels = [mixing.varied(r, bank[i]) for i in chosen]
        T = max(len(m) for m in mels) // 10 * 10 + 20
        x = torch.stack([mixing.mix(r, [(r.randrange(0, 15), m)], T, noisy=.5, bank=bank).log10() for m in mels])
        samples, seen = [], []
        for i in chosen:
            asked, before, answer = self.asked_of.get(i), [], bank.records[i]["answer"]
            if asked and r.random() < .7:
                sight, rows = self.gallery.pick(r, asked)
                seen.append(rows)
                before, answer = layouts.picture(text) + text.encode(r.choice(["\n", ""])), sights.answer(asked, sight)
            system = text.encode(f"<|im_start|>system\n{r.choice(layouts.SYSTEM)}<|im_end|>\n") if r.random() < .5 else []
            opening, end = layouts.generation_prompt(text, r)
            prompt = system + text.encode("<|im_start|>user\n") + before + text.encode("<|audio_start|>") + [layouts.ROW] * (T // 10) + text.encode("<|audio_end|><|im_end|>\n") + opening
            target = text.encode(answer) + end
            samples.append((prompt + target, [0] * len(prompt) + [1] * len(target)))
        ids, weights = pad(samples)
        return dict(x=(torch.maximum(x, x.amax((1, 2), keepdim=True) - 8) + 4) / 4, ids=ids, weights=weights, seen=self.seen(r, seen))

    def shown(self, r, n):
        """Typed chats about pictures: ids, weights, rows of the pictures."""
        samples = [layouts.sighted_chat(self.text, r, self.gallery) for _ in range(n)]
        ids, weights = pad([s[:2] for s in samples])
        return dict(ids=ids, weights=weights, seen=self.seen(r, [rows for s in samples for rows in s[2]]))

    def batches(self, r):
        """Endless steps: about 150 units of sessions (70 with frames in about every fourth step), 2,000 typed tokens,
        and in every third step 14 spoken questions or 16 chats about pictures (times $NANO_SCALE)."""
        typed, count = iter(()), 0
        while True:
            pool = max(1, scale() / 2)
            groups = grouped([self.scene(r) for _ in range(int(160 * pool))], lambda s: s.units, 150 * scale())
            groups += grouped([self.watched(r) for _ in range(int(28 * pool))], lambda s: s.units, 70 * scale())
            r.shuffle(groups)
            for group in groups:
                chat = next(typed, None)
                if chat is None:
                    chats = grouped(typed_pool(self.text, r, int(300 * max(1, scale() / 2)), 12), lambda s: len(s[0]), 2000 * scale())
                    r.shuffle(chats)
                    typed = map(pad, chats)
                    chat = next(typed)
                asked = self.asked(r, int(14 * scale())) if count % 3 == 0 else None
                shown = self.shown(r, int(16 * scale())) if count % 3 == 1 else None
                yield dict(duplex=self.duplex(r, group), asked=asked, shown=shown, typed=chat)
                count += 1
