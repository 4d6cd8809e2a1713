"""The nano model with the tensor names and arithmetic of MiniCPM-o 4.5: llm.* (Qwen3), apm.* (Whisper encoder), audio_projection_layer.*."""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F

SIZES = dict(V=2048, H=256, L=4, nq=4, nk=2, hd=64, ffn=576, ad=160, ah=4, al=6, affn=512)


class RMS(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))

    def forward(self, x):
        return F.rms_norm(x, x.shape[-1:], self.weight, 1e-6)


def linear(i, o):
    return nn.Linear(i, o, bias=False)


class Attention(nn.Module):
    """Grouped-query attention with per-head norms and rotary positions."""

    def __init__(self, c):
        super().__init__()
        self.c = c
        self.q_proj, self.k_proj = linear(c["H"], c["nq"] * c["hd"]), linear(c["H"], c["nk"] * c["hd"])
        self.v_proj, self.o_proj = linear(c["H"], c["nk"] * c["hd"]), linear(c["nq"] * c["hd"], c["H"])
        self.q_norm, self.k_norm = RMS(c["hd"]), RMS(c["hd"])

    def forward(self, x, rope, mask, kv):
        """x [B,T,H]; mask [T,S] additive; kv: list of two cached tensors [B,nk,S,hd], extended in place, or None."""
        B, T, _ = x.shape
        hd, group = self.c["hd"], self.c["nq"] // self.c["nk"]
        heads = lambda t: t.view(B, T, -1, hd)
        cos, sin = rope
        turn = lambda t: t * cos + torch.cat([-t[..., hd // 2:], t[..., :hd // 2]], -1) * sin
        q = turn(self.q_norm(heads(self.q_proj(x))).transpose(1, 2)) * hd ** -0.5
        k = turn(self.k_norm(heads(self.k_proj(x))).transpose(1, 2))
        v = heads(self.v_proj(x)).transpose(1, 2)
        if kv is not None:
            if kv:
                k, v = torch.cat([kv[0], k], 2), torch.cat([kv[1], v], 2)
            kv[:] = [k, v]
        q = q.reshape(B, self.c["nk"], group * T, hd)  # query heads of one group share k and v: no copies
        a = (q @ k.transpose(-1, -2)).view(B, self.c["nk"], group, T, -1) + mask
        o = a.softmax(-1).view(B, self.c["nk"], group * T, -1) @ v
        o = o.view(B, self.c["nq"], T, hd).transpose(1, 2).reshape(B, T, -1)
        return self.o_proj(o)


class MLP(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = linear(c["H"], c["ffn"]), linear(c["H"], c["ffn"]), linear(c["ffn"], c["H"])

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.self_attn, self.mlp = Attention(c), MLP(c)
        self.input_layernorm, self.post_attention_layernorm = RMS(c["H"]), RMS(c["H"])

    def forward(self, x, rope, mask, kv):
        x = x + self.self_attn(self.input_layernorm(x), rope, mask, kv)
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed_tokens = nn.Embedding(c["V"], c["H"])
        self.layers = nn.ModuleList(Layer(c) for _ in range(c["L"]))
        self.norm = RMS(c["H"])


class LLM(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, self.model, self.lm_head = c, Body(c), linear(c["H"], c["V"])
        self.inverse = 1.0 / 1e6 ** (torch.arange(0, c["hd"], 2).float() / c["hd"])

    def forward(self, e, kv=None):
        """e [B,T,H] embeddings -> normed states [B,T,H]. kv: list of L lists (the cache), appended to."""
        past = kv[0][0].shape[2] if kv and kv[0] else 0
        T = e.shape[1]
        f = torch.arange(past, past + T, device=e.device).float()[:, None] * self.inverse.to(e.device)[None]
        f = torch.cat([f, f], -1)
        rope = (f.cos().to(e.dtype), f.sin().to(e.dtype))
        mask = torch.full((T, past + T), float("-inf"), device=e.device, dtype=e.dtype).triu(past + 1)
        for i, layer in enumerate(self.model.layers):
            e = layer(e, rope, mask, None if kv is None else kv[i])
        return self.model.norm(e)


def hidden(places, like):
    """Additive attention mask that hides the positions [T,S] marked in `places`."""
    return torch.zeros(places.shape, device=like.device, dtype=like.dtype).masked_fill(places, float("-inf"))


class EncoderAttention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = nn.Linear(d, d), linear(d, d), nn.Linear(d, d), nn.Linear(d, d)

    def forward(self, x, mask, kv):
        """mask [T,S] additive or None; kv as in Attention, [B,heads,S,d/heads]."""
        B, T, D = x.shape
        split = lambda t: t.view(B, T, self.heads, -1).transpose(1, 2)
        q, k, v = split(self.q_proj(x)), split(self.k_proj(x)), split(self.v_proj(x))
        if kv is not None:
            if kv:
                k, v = torch.cat([kv[0], k], 2), torch.cat([kv[1], v], 2)
            kv[:] = [k, v]
        q, k = q * (D // self.heads) ** -0.5, k.transpose(-1, -2)
        if mask is None:
            o = (q @ k).softmax(-1) @ v
        else:  # a block-causal session: no query sees beyond its own unit, so most keys can be skipped
            spans = [(t, min(T, t + 100), min(T, t + 150)) for t in range(0, T, 100)]
            o = torch.cat([(q[:, :, a:b] @ k[..., :c] + mask[a:b, :c]).softmax(-1) @ v[:, :, :c] for a, b, c in spans], 2)
        return self.out_proj(o.transpose(1, 2).reshape(B, T, D))


class EncoderLayer(nn.Module):
    def __init__(self, d, heads, ffn):
        super().__init__()
        self.self_attn, self.self_attn_layer_norm = EncoderAttention(d, heads), nn.LayerNorm(d)
        self.fc1, self.fc2, self.final_layer_norm = nn.Linear(d, ffn), nn.Linear(ffn, d), nn.LayerNorm(d)

    def forward(self, x, mask, kv):
        x = x + self.self_attn(self.self_attn_layer_norm(x), mask, kv)
        return x + self.fc2(F.gelu(self.fc1(self.final_layer_norm(x))))


def positions(n, d):
    """Fixed sinusoids with wavelengths from 8 to 4000 frames: near and far positions differ, and distance is readable from dot products."""
    rate = 2 * math.pi / (8 * 500 ** (torch.arange(d // 2) / (d // 2 - 1)))
    phase = torch.arange(n)[:, None] * rate[None]
    return .3 * torch.cat([phase.sin(), phase.cos()], 1)


class Encoder(nn.Module):
    """Whisper encoder. One pass over a whole session with a block-causal mask equals unit-by-unit streaming with 2
    overlapping frames and cached keys."""

    def __init__(self, c):
        super().__init__()
        d = c["ad"]
        self.conv1, self.conv2 = nn.Conv1d(80, d, 3, padding=1), nn.Conv1d(d, d, 3, stride=2, padding=1)
        self.embed_positions = nn.Embedding(1500, d)
        self.embed_positions.weight = nn.Parameter(positions(1500, d), requires_grad=False)
        self.layers = nn.ModuleList(EncoderLayer(d, c["ah"], c["affn"]) for _ in range(c["al"]))
        self.layer_norm = nn.LayerNorm(d)

    def front(self, mel):
        """mel [B,T,80] -> [B,(T-1)//2+1,d] after the two convolutions."""
        return F.gelu(self.conv2(F.gelu(self.conv1(mel.to(self.conv1.weight.dtype).transpose(1, 2))))).transpose(1, 2)

    def body(self, h, at=0, mask=None, kv=None):
        h = h + self.embed_positions.weight[at:at + h.shape[1]]
        for i, layer in enumerate(self.layers):
            h = layer(h, mask, None if kv is None else kv[i])
        return self.layer_norm(h)

    def forward(self, mel, at=0):
        """at: position of the first frame; lets short sessions train late positions too."""
        h = self.front(mel)
        block = torch.arange(h.shape[1], device=mel.device) // 50
        return self.body(h, at, hidden(block[None] > block[:, None], h))


class Projector(nn.Module):
    """[B,T,d] encoder frames at 50 Hz -> [B,T//5,H] rows at 10 Hz."""

    def __init__(self, d, H):
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(d, H), nn.Linear(H, H)

    def forward(self, x):
        x = self.linear2(F.relu(self.linear1(x)))
        B, T, H = x.shape
        return x[:, :T // 5 * 5].view(B, T // 5, 5, H).mean(2)


class Nano(nn.Module):
    def __init__(self, c=SIZES):
        super().__init__()
        self.c, self.llm, self.apm, self.audio_projection_layer = c, LLM(c), Encoder(c), Projector(c["ad"], c["H"])
        for name, p in self.llm.named_parameters():
            if p.dim() == 2:
                nn.init.normal_(p, 0, .05 if "embed" in name else .02 if "head" in name else p.shape[1] ** -0.5)
            if "o_proj" in name or "down_proj" in name:
                p.data.mul_(.3)
