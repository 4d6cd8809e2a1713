"""Measures, stage by stage, how well the voice is understood and how its pitch moves, on held-out sentences of the domain. usage: python -m nano.speak [sentences]

Each row adds one stage: the recording, its mel through the vocoder, its tokens through the flow encoder, the flow, and tokens sampled by the talker as in
full duplex. Pitch, over frames that are voiced in both the recording and the output: the share within one semitone, the correlation, and how much lower the
last quarter of a sentence is than the first. "own ears" and "phonemes": the words (closed grammar) and phonemes that the model's own encoder recognises
(`recogniser.own_hearing`); it was never trained on this vocoder."""
import random, sys
import numpy as np
import torch
from scipy.signal import resample_poly
from . import recogniser, shipped_speech, speech
from .evaluate import load
from .pitch import pitches
from .run import newest, work
from .shipped import folder
from .talker import END, SURE, Talker
from .train_talker import Samples, Sentences
from .vocoder import Vocoder
from .voice import TOKEN, UNIT
from .voice_data import corpus, utterance

BLOCK = 25


class Voice:
    """The codec as it is trained, and the vocoder of its stage."""

    def __init__(self):
        (self.tokenizer, self.flow), self.vocoder = shipped_speech.codec(), Vocoder()
        self.vocoder.load_state_dict(torch.load(work() / "vocoder.pt", map_location="cpu")["model"])

    def mu(self, codes):
        """Speech tokens [n] -> mel [1,2n,80] of the flow encoder in the server's blocks."""
        return self.flow.mu(speech.digits(torch.tensor(codes))[None], BLOCK)

    def sound(self, mel):
        """mel [1,T,80] -> float32 samples at 24 kHz."""
        return self.vocoder.streamed(mel.transpose(1, 2))[0].numpy()

    def speak(self, codes):
        mu = self.mu(codes)
        return self.sound(self.flow.mel(mu, torch.randn(mu.shape, generator=torch.Generator().manual_seed(1)), block=2 * BLOCK))


def draw(talker, text, groups, generator, temperature=.8 / SURE, penalty=1.05):
    """Speech tokens of a full-duplex turn: 25 for each unit but the last, which runs to its end. The penalty applies
    within a unit."""
    kv, said = [[] for _ in talker.model["layers"]], []
    mark = talker.emb_text.weight[text.id["<focus>"]][None]
    for words, states, _, last in groups:
        row, unit = torch.cat([talker.condition(words, states), mark]), []
        while len(unit) < (40 if last else UNIT):
            logits = talker.head_code[0](talker(row[None], kv)[0, -1]) / temperature
            if unit:
                count = torch.bincount(torch.tensor(unit[-16:]), minlength=len(logits))[:len(logits)]
                factor = penalty ** count.float()
                logits = torch.where(logits < 0, logits * factor, logits / factor)
            if not last:
                logits[END] = -float("inf")
            token = int(torch.multinomial(logits.softmax(-1), 1, generator=generator))
            if token == END:
                break
            unit.append(token)
            row = talker.emb_code[0].weight[token][None]
        if not last:
            talker(row[None], kv)  # the returned tokens are in the cache
        said += unit
    return said


def semitones(y, pitch):
    """For samples at 24 kHz and the recording's pitch: (difference of each voiced frame, its true pitch in Hz, its
    position in the sentence from 0 to 1)."""
    got, n = pitches(torch.from_numpy(y * 32767).to(torch.int16), 60, 300).numpy(), len(pitch)
    got = np.pad(got, (0, max(0, n - len(got))))[:n]
    both = np.flatnonzero((got > 0) & (pitch > 0))
    return 12 * np.log2(got[both] / pitch[both]), pitch[both], both / n


def pitch_columns(waves, targets):
    """(share of frames within a semitone, correlation, fall in semitones from the first quarter to the last)."""
    off, true, place = (np.concatenate(x) for x in zip(*(semitones(y, p) for y, p in zip(waves, targets))))
    want, level = 12 * np.log2(true / 100), 12 * np.log2(true / 100) + off
    return (np.abs(off) < 1).mean(), np.corrcoef(want, level)[0, 1], level[place < .25].mean() - level[place > .75].mean()


def stages(n):
    """({stage name: function from a sentence's number to float32 samples at 24 kHz}, corpus, numbers of at most n
    held-out sentences of the domain)."""
    voice, data = Voice(), corpus("voice_test")
    sentences = Sentences("voice_test", voice.tokenizer)
    rows = {"recording": lambda i: data["samples"][data["first"][i] * TOKEN:(data["first"][i] + data["length"][i]) * TOKEN].numpy().astype(np.float32) / 32768,
            "vocoder": lambda i: voice.sound(utterance(data, i)[1]), "tokens, flow encoder, vocoder": lambda i: voice.sound(voice.mu(sentences.codes[i])),
            "tokens, flow, vocoder": lambda i: voice.speak(sentences.codes[i])}
    if (work() / "talker.pt").exists():
        talker, (thinker, text) = Talker(), load(newest("mean.pt", "joint.pt") or folder())
        samples = Samples(text, thinker, sentences)
        talker.load_state_dict(torch.load(work() / "talker.pt", map_location="cpu")["model"])

        def talked(i):
            (groups, _), = samples.draw(random.Random(i), [i], duplex=True)
            return voice.speak(draw(talker, text, groups, torch.Generator().manual_seed(i)))
        rows["talker, flow, vocoder"] = talked
    first = {q.answer: i for i, q in reversed(list(enumerate(sentences.questions))) if q.intent != "repeat"}
    return rows, data, sorted(first.values())[:n]


def track(data, i):
    """The recording's pitch in each frame, 0 = none."""
    return data["pitch"][2 * data["first"][i]:2 * (data["first"][i] + data["length"][i])].numpy()


@torch.no_grad()
def main(n):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    rows, data, chosen = stages(n)
    texts, targets = [data["questions"][i][1] for i in chosen], [track(data, i) for i in chosen]
    print("| speech | words, closed grammar | sentences | words, bigram | words, own ears | phonemes | pitch within a semitone | correlation | fall | n |\n|---|---|---|---|---|---|---|---|---|---|")
    for name, make in rows.items():
        sounds = [make(i) for i in chosen]
        waves, (near, correlation, fall) = [resample_poly(y, 2, 3).astype(np.float32) for y in sounds], pitch_columns(sounds, targets)
        closed, free, own = recogniser.accuracy(waves, texts), recogniser.accuracy(waves, texts, closed=False), recogniser.own_hearing(waves, texts)
        print(f"| {name} | {closed[0]:.1%} | {closed[1]:.1%} | {free[0]:.1%} | {' | ' if own is None else f'{own[0]:.1%} | {own[1]:.1%}'} | {near:.0%} | {correlation:.2f} | {fall:.1f} | {len(chosen)} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
