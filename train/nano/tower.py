"""Vision with the tensor names and arithmetic of MiniCPM-o 4.5: vpm.* (SigLIP), resampler.*. All pictures in a batch
have the same size."""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F
from . import pictures, sights
from .model import SIZES

TOWER = dict(d=64, heads=4, ffn=256, layers=2, side=pictures.SIDE // pictures.PATCH)


class SightAttention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(d, d) for _ in range(4))

    def forward(self, x):
        split = lambda t: t.view(*t.shape[:2], self.heads, -1).transpose(1, 2)
        q, k, v = split(self.q_proj(x)), split(self.k_proj(x)), split(self.v_proj(x))
        o = (q * q.shape[-1] ** -.5 @ k.transpose(-1, -2)).softmax(-1) @ v
        return self.out_proj(o.transpose(1, 2).flatten(2))


class SightMLP(nn.Module):
    def __init__(self, d, ffn):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(d, ffn), nn.Linear(ffn, d)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x), approximate="tanh"))


class SightLayer(nn.Module):
    def __init__(self, d, heads, ffn):
        super().__init__()
        self.self_attn, self.mlp = SightAttention(d, heads), SightMLP(d, ffn)
        self.layer_norm1, self.layer_norm2 = nn.LayerNorm(d, eps=1e-6), nn.LayerNorm(d, eps=1e-6)

    def forward(self, x):
        x = x + self.self_attn(self.layer_norm1(x))
        return x + self.mlp(self.layer_norm2(x))


def buckets(n, side):
    """Maps n patches along one axis to positions in a table of `side`, in the reference's float32 arithmetic."""
    at = torch.arange(0, 1 - 1e-6, float(torch.tensor(1.0) / n), dtype=torch.float32)
    return torch.bucketize(at, torch.arange(1 / side, 1.0, 1 / side, dtype=torch.float32), right=True)


def sines(n, width):
    omega = 10000.0 ** -(torch.arange(width // 2).float() / (width / 2))
    angle = torch.arange(n).float()[:, None] * omega
    return torch.cat([angle.sin(), angle.cos()], 1)


class SigLIP(nn.Module):
    def __init__(self, c=TOWER):
        super().__init__()
        d, p = c["d"], pictures.PATCH
        self.side = c["side"]
        self.embeddings = nn.ModuleDict(dict(patch_embedding=nn.Conv2d(3, d, p, p), position_embedding=nn.Embedding(c["side"] ** 2, d)))
        self.encoder = nn.ModuleDict(dict(layers=nn.ModuleList(SightLayer(d, c["heads"], c["ffn"]) for _ in range(c["layers"]))))
        self.post_layernorm = nn.LayerNorm(d, eps=1e-6)

    def forward(self, x, rows, columns):
        """x [B,rows*columns,3*PATCH*PATCH] -> [B,rows*columns,d]."""
        conv = self.embeddings["patch_embedding"]
        places = buckets(rows, self.side)[:, None] * self.side + buckets(columns, self.side)
        x = F.linear(x, conv.weight.flatten(1), conv.bias) + self.embeddings["position_embedding"](places.flatten())
        for layer in self.encoder["layers"]:
            x = layer(x)
        return self.post_layernorm(x)


class Resampler(nn.Module):
    def __init__(self, d, H):
        super().__init__()
        self.H, self.heads = H, H // 128
        self.query = nn.Parameter(torch.randn(sights.ROWS, H) * .5)
        self.kv_proj, self.attn = nn.Linear(d, H, bias=False), nn.MultiheadAttention(H, self.heads)
        self.ln_q, self.ln_kv, self.ln_post = (nn.LayerNorm(H, eps=1e-6) for _ in range(3))
        self.proj = nn.Parameter(torch.randn(H, H) * H ** -.5 * .05)

    def forward(self, x, rows, columns):
        """x [B,rows*columns,d] -> [B,ROWS,H]."""
        H = self.H
        place = torch.cat([sines(columns, H // 2)[None].expand(rows, -1, -1), sines(rows, H // 2)[:, None].expand(-1, columns, -1)], 2).flatten(0, 1)
        x = self.ln_kv(self.kv_proj(x))
        wq, wk, wv = self.attn.in_proj_weight.chunk(3)
        bq, bk, bv = self.attn.in_proj_bias.chunk(3)
        split = lambda t: t.unflatten(-1, (self.heads, -1)).transpose(-2, -3)
        q, k, v = split(F.linear(self.ln_q(self.query), wq, bq)), split(F.linear(x + place.to(x.dtype), wk, bk)), split(F.linear(x, wv, bv))
        o = (q * q.shape[-1] ** -.5 @ k.transpose(-1, -2)).softmax(-1) @ v
        return self.ln_post(self.attn.out_proj(o.transpose(-2, -3).flatten(-2))) @ self.proj


def cosines(d):
    """Patch filters [d,3,PATCH,PATCH]: the lowest-frequency cosines of brightness, red against green, and yellow
    against blue. Random filters respond to little more than the mean of a patch."""
    n = pictures.PATCH
    wave = torch.cos(math.pi / n * torch.arange(n)[:, None] * (torch.arange(n) + .5)) * (2 / n) ** .5
    wave[0] /= 2 ** .5
    order = sorted(((v * v + u * u, v, u) for v in range(n) for u in range(n)))
    colours = torch.tensor([[1., 1, 1], [1, -1, 0], [1, 1, -2]])
    colours /= colours.norm(dim=1, keepdim=True)
    brightness = d - 2 * (d * 17 // 64)
    filters = [colours[c][:, None, None] * (wave[v][:, None] * wave[u]) * (.1 if (v, u) == (0, 0) else .3)
               for c, most in enumerate((brightness, d * 17 // 64, d * 17 // 64)) for _, v, u in order[:most]]
    return torch.stack(filters)


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.vpm, self.resampler = SigLIP(), Resampler(TOWER["d"], SIZES["H"])
        patch = self.vpm.embeddings["patch_embedding"]
        patch.weight = nn.Parameter(cosines(TOWER["d"]), requires_grad=False)
        nn.init.zeros_(patch.bias)
        side, d = TOWER["side"], TOWER["d"]
        waves = lambda n: torch.cat([f(torch.arange(side).float()[:, None] * math.pi / side * torch.arange(1, n // 2 + 1)) for f in (torch.sin, torch.cos)], 1)
        at = torch.cat([waves(d // 2)[None].expand(side, -1, -1), waves(d // 2)[:, None].expand(-1, side, -1)], 2).flatten(0, 1)  # nearby positions start with similar embeddings
        self.vpm.embeddings["position_embedding"].weight.data = .3 * at

    def forward(self, x, rows, columns):
        """Patches [B,rows*columns,588] of pictures -> their rows [B,ROWS,H]."""
        return self.both(x, rows, columns)[1]

    def both(self, x, rows, columns):
        """Also returns the states of the patches."""
        states = self.vpm(x, rows, columns)
        return states, self.resampler(states, rows, columns)

    @torch.no_grad()
    def look(self, picture):
        """uint8 [h,w,3] whose sides are multiples of a patch -> rows [ROWS,H]."""
        x, rows, columns = pictures.patches(picture)
        return self(x[None], rows, columns)[0]
