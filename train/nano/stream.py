"""The server's streaming path in plain torch: sound in one-second units -> audio rows -> decisions and text. Slow and
literal, for tests and goldens."""
import dataclasses
import torch
import torch.nn.functional as F
from . import mel
from .layouts import SIGHT


class Ear:
    """Streaming mel, convolutions with 2 overlapping frames, encoder with cached keys. One object per session."""

    def __init__(self, nano):
        self.nano, self.waiting, self.buffer = nano, torch.zeros(0), torch.zeros(0)
        self.index = self.last = self.base = self.at = 0
        self.kv = [[] for _ in nano.apm.layers]

    def features(self):
        """The next mel window [102 or 104, 80], or None until enough samples have come."""
        if self.index == 0 and len(self.waiting) < 16560:
            self.waiting = F.pad(self.waiting, (16560 - len(self.waiting), 0))
        need = 16000 if self.index else 16480
        if len(self.waiting) < need:
            return None
        self.buffer, self.waiting = torch.cat([self.buffer, self.waiting[:need]]), self.waiting[need:]
        if len(self.buffer) >= 480000:
            self.buffer, self.base = self.buffer[160000:], self.base + 1000
        x = mel.log_power(self.buffer)
        x = (torch.maximum(x, x.max() - 8 if len(self.buffer) >= 80000 else torch.tensor(-10.0)) + 4) / 4
        window = x[max(0, self.last - 2) - self.base:self.last + 102 - self.base]
        self.last += 100
        return window

    @torch.no_grad()
    def hear(self, samples):
        """16,000 float samples -> 10 rows [10,H] (or None)."""
        self.waiting = torch.cat([self.waiting, torch.as_tensor(samples).float()])
        window = self.features()
        if window is None:
            return None
        h = self.nano.apm.front(window[None])[:, 1 if self.index else 0:-1]
        if self.at + (len(window) - 1) // 2 + 1 >= 1500:
            self.kv, self.at = [[] for _ in self.nano.apm.layers], 0
        h = self.nano.apm.body(h, self.at, None, self.kv)
        self.at, self.index = self.at + h.shape[1], self.index + 1
        return self.nano.audio_projection_layer(h)[0]


@dataclasses.dataclass
class Settings:
    """The server's defaults; temperature 0 = greedy."""
    temperature: float = .7
    top_k: int = 20
    top_p: float = .8
    repetition: float = 1.05
    length: float = 1.1
    window: int = 512
    forced: int = 3
    budget: int = 20


def choose(logits, s, generator):
    """Temperature, top-k (ties kept), top-p, multinomial."""
    if not s.temperature:
        return int(logits.argmax())
    x = logits / s.temperature
    if s.top_k:
        x = x.masked_fill(x < x.topk(min(s.top_k, len(x))).values[-1], float("-inf"))
    order = x.argsort(descending=True)
    p = x[order].softmax(-1)
    drop = torch.cat([torch.tensor([False]), p.cumsum(0)[:-1] > s.top_p])
    return int(order[torch.multinomial(p.masked_fill(drop, 0), 1, generator=generator)])


class Mind:
    """An LLM cache that is fed embeddings; `logits` belong to the last position."""

    def __init__(self, nano):
        self.llm, self.kv, self.logits, self.hidden = nano.llm, [[] for _ in nano.llm.model.layers], None, None

    @torch.no_grad()
    def feed(self, rows):
        self.hidden = self.llm(rows[None], self.kv)[0, -1]
        self.logits = self.llm.lm_head(self.hidden)

    def tokens(self, ids):
        if ids:
            self.feed(self.llm.model.embed_tokens(torch.tensor(ids)))

    @property
    def length(self):
        return self.kv[0][0].shape[2] if self.kv[0] else 0


class Duplex:
    """One full-duplex session."""

    def __init__(self, nano, text, settings=None, system="You are a helpful assistant.", voice=None, seed=0):
        self.text, self.s, self.mind, self.ear = text, settings or Settings(), Mind(nano), Ear(nano)
        self.generator = torch.Generator().manual_seed(seed)
        self.history, self.open, self.count = [], False, 0
        self.pending, self.calls = None, []  # of the last unit: logits after its rows, and the tokens that `decide` returned
        self.forbidden = [text.id["<|tts_pad|>"], text.id["<|chunk_eos|>"]] + list(text.bad)
        self.mind.tokens(text.encode(f"<|im_start|>system\n{system}\n<|audio_start|>"))
        if voice is not None:
            self.mind.feed(voice)
        self.mind.tokens(text.encode("<|audio_end|><|im_end|>"))

    def decide(self):
        """One token from the current logits, by the rules of the reference."""
        self.calls.append(self._decide())
        return self.calls[-1]

    def _decide(self):
        I, s, raw = self.text.id, self.s, self.mind.logits
        first = int(raw.argmax()) if not s.temperature else int(torch.multinomial(raw.softmax(-1), 1, generator=self.generator))
        if first == I["<|chunk_eos|>"]:
            return first
        x = raw.clone()
        x[self.forbidden] = float("-inf")
        seen = sorted(set(self.history[-s.window:]))
        x[seen] = x[seen] / s.repetition  # also divides negative values
        end = I["<|turn_eos|>"]
        x[end] = x[end] / s.length if x[end] > 0 else x[end] * s.length
        token = choose(x, s, self.generator)
        self.history.append(token)
        return token

    def unit(self, samples, seen=None):
        """Processes one second, with the rows of a frame or without; returns dict(listen, text, end, ids), where ids
        are all that the unit appended after the rows."""
        I, text = self.text.id, self.text
        named = lambda *ids: self.mind.llm.model.embed_tokens(torch.tensor([I[i] for i in ids])).detach()
        frame = [] if seen is None else [named("<image>"), seen, named("</image>")]
        self.mind.feed(torch.cat([named("<unit>"), *frame, self.ear.hear(samples)]))
        self.pending, self.calls = self.mind.logits, []
        forced, self.count = self.count < self.s.forced, self.count + 1
        said, ids, token = [], [], None
        for j in range(self.s.budget):
            if j == self.s.budget - 1:
                token = I["<|chunk_eos|>"]
                break
            token = I["<|listen|>"] if forced else self.decide()
            if not forced and token == I["<|listen|>"] and self.open:
                token = I["<|tts_bos|>"]
            if token in (I["<|listen|>"], I["<|chunk_eos|>"], I["<|chunk_tts_eos|>"]):
                break
            self.open = token != I["<|turn_eos|>"]
            if j and len(text.decode(said + [token])) >= 28:
                token = I["<|chunk_eos|>"]
                break
            if j:
                said.append(token)
            ids.append(token)
            self.mind.tokens([token])
        end = bool(ids) and ids[-1] == I["<|turn_eos|>"]
        ids += [token, I["</unit>"]]
        self.mind.tokens(ids[-2:])
        return dict(listen=token == I["<|listen|>"], text=text.decode(said), end=end, ids=ids)


def reply(nano, text, ids, seed=0, temperature=.7, top_k=100, limit=60, seen=None):
    """A streamed chat reply to prompt ids (generation prompt included), by the server's rules; the rows `seen` fill the
    SIGHT places. Returns token ids without the terminator."""
    I, mind, generator, out = text.id, Mind(nano), torch.Generator().manual_seed(seed), []
    e = nano.llm.model.embed_tokens(torch.tensor(ids).clamp(min=0)).detach()
    if seen is not None:
        e[torch.tensor(ids) == SIGHT] = seen
    mind.feed(e)
    stops = [I["<|tts_eos|>"], I["<|im_end|>"], I["<unk>"]]
    banned = {i for i in (text.tok.token_to_id(c) for c in ":;#@*()[]&/$") if i is not None} | set(text.bad)
    s = Settings(temperature=temperature, top_k=top_k)
    while len(out) < limit:
        x = mind.logits.clone()
        if I["<|tts_bos|>"] in ids:
            x[sorted(banned)] = float("-inf")
        seen = sorted(set(out))
        x[seen] = torch.where(x[seen] > 0, x[seen] / 1.02, x[seen] * 1.02)
        x[stops] = torch.where(x[stops] > 0, x[stops] / 1.1, x[stops] * 1.1)
        token = choose(x, s, generator)
        if token in stops:
            break
        out.append(token)
        mind.tokens([token])
    return out
