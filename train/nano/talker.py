"""The TTS language model (docs/model/talker.md 3, 4): maps words and the thinker's states to speech tokens. Its tensors
have the checkpoint's names, below "tts."."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from .model import MLP, RMS, SIZES, linear
from .speech import CODES

TTS = dict(H=96, L=4, heads=2, ffn=288)
END = CODES  # ends a group
SURE = 2.5   # the checkpoint's head is so many times larger: the server draws at a temperature of 0.8, which suits it as 0.32 does the trained one


class LlamaAttention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (linear(d, d) for _ in range(4))

    def forward(self, x, rope, mask, kv):
        """x [B,T,d]; kv: list of two cached tensors, extended in place, or None."""
        B, T, D = x.shape
        half = D // self.heads // 2
        heads = lambda t: t.view(B, T, self.heads, -1).transpose(1, 2)
        turn = lambda t: t * rope[0] + torch.cat([-t[..., half:], t[..., :half]], -1) * rope[1]
        q, k, v = turn(heads(self.q_proj(x))), turn(heads(self.k_proj(x))), heads(self.v_proj(x))
        if kv is not None:
            if kv:
                k, v = torch.cat([kv[0], k], 2), torch.cat([kv[1], v], 2)
            kv[:] = [k, v]
        o = (q @ k.transpose(-1, -2) * (2 * half) ** -.5 + mask).softmax(-1) @ v
        return self.o_proj(o.transpose(1, 2).reshape(B, T, D))


class LlamaLayer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.self_attn, self.mlp = LlamaAttention(c["H"], c["heads"]), MLP(c)
        self.input_layernorm, self.post_attention_layernorm = RMS(c["H"]), RMS(c["H"])

    def forward(self, x, rope, mask, kv):
        x = x + self.self_attn(self.input_layernorm(x), rope, mask, kv)
        return x + self.mlp(self.post_attention_layernorm(x))


class Talker(nn.Module):
    def __init__(self, c=TTS, thinker=SIZES):
        super().__init__()
        d = c["H"]
        self.c = c
        self.emb_text, self.emb_code, self.head_code = nn.Embedding(thinker["V"], d), nn.ModuleList([nn.Embedding(CODES + 1, d)]), nn.ModuleList([linear(d, CODES + 1)])
        self.projector_semantic = nn.ModuleDict(dict(linear1=nn.Linear(thinker["H"], d), linear2=nn.Linear(d, d)))
        self.model = nn.ModuleDict(dict(layers=nn.ModuleList(LlamaLayer(c) for _ in range(c["L"])), norm=RMS(d)))
        for name, p in self.named_parameters():
            if "emb_" in name or "head" in name:
                nn.init.normal_(p, 0, .05)
            elif "o_proj" in name or "down_proj" in name:
                p.data.mul_(.3)

    def condition(self, ids, states):
        """Token ids [n] and the thinker's states when they were fed [n,H] -> rows [n,d]."""
        x = self.projector_semantic["linear2"](F.relu(self.projector_semantic["linear1"](states.to(self.emb_text.weight.dtype))))
        return self.emb_text(ids) + F.normalize(x, dim=-1).to(self.emb_text.weight.dtype)

    def forward(self, e, kv=None):
        """Rows [B,T,d] -> normed states [B,T,d]; kv: list of L lists (the cache), appended to."""
        past, T = (kv[0][0].shape[2] if kv and kv[0] else 0), e.shape[1]
        half = e.shape[2] // self.c["heads"] // 2
        a = torch.arange(past, past + T).float()[:, None] * (10000 ** (-torch.arange(half).float() / half)).repeat(2)
        mask, rope = torch.full((T, past + T), float("-inf"), dtype=e.dtype).triu(past + 1), (a.cos().to(e.dtype), a.sin().to(e.dtype))
        for k, layer in enumerate(self.model["layers"]):
            e = layer(e, rope, mask, None if kv is None else kv[k])
        return self.model["norm"](e)

    def state(self):
        """The checkpoint's tensors: the head weight-normed, unused tensors zero and as small as allowed."""
        out = {f"tts.{k}": v.detach() for k, v in self.state_dict().items()}
        head = SURE * out.pop("tts.head_code.0.weight")
        out["tts.head_code.0.parametrizations.weight.original0"] = head.norm(dim=1, keepdim=True)
        out["tts.head_code.0.parametrizations.weight.original1"] = head
        for k in [k for k in out if "projector_semantic" in k]:
            out[k.replace("semantic", "spk")] = torch.zeros_like(out[k])
        out["tts.model.embed_tokens.weight"] = torch.zeros(64, self.c["H"])
        return out
