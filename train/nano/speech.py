"""Speech tokenizer and flow model of Token2wav (docs/model/talker.md 6.2, 7), with the names of the checkpoint files.
For training: whole utterances or blocks, no caches."""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F

CODES, DIGITS = 6561, 8
SILENCE = 4218  # the token that clients of the talker send for silence
WIDTH, HEADS, FEED, BLOCKS, UP_BLOCKS = 64, 2, 192, 2, 2  # flow encoder
DIT = dict(hidden=96, depth=2, heads=3, head=32)  # wider than the 80 bins, because their whole noise has to pass through
LATENT = 64     # width of the tokenizer; its heads are 64 wide
ACTIVE = 5      # digits in use; the others are 0. With fewer codes the talker, which samples from all of them, is surer


def digits(codes):
    """Codes [...] -> their eight digits in {-1, 0, 1}, least first, [..., 8]."""
    return (codes[..., None] // 3 ** torch.arange(DIGITS)) % 3 - 1.0


def codes(digit):
    """The inverse of `digits`."""
    return ((digit.round().long() + 1) * 3 ** torch.arange(DIGITS)).sum(-1)


class TokenizerBlock(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.attn_ln, self.mlp_ln = nn.LayerNorm(d, eps=1e-6), nn.LayerNorm(d, eps=1e-5)
        self.query, self.key, self.value, self.out = nn.Linear(d, d), nn.Linear(d, d, bias=False), nn.Linear(d, d), nn.Linear(d, d)
        self.memory = nn.Conv1d(d, d, 31, padding=15, groups=d, bias=False)
        self.widen, self.narrow = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        for m in (self.out, self.narrow):
            m.weight.data.mul_(.3)
        self.memory.weight.data.mul_(.1)

    def forward(self, x, rope):
        B, T, D = x.shape
        heads = lambda t: t.view(B, T, -1, 64).transpose(1, 2)
        turn = lambda t: t * rope[0] + torch.cat([-t[..., 32:], t[..., :32]], -1) * rope[1]
        y = self.attn_ln(x)
        q, k, v = self.query(y), self.key(y), self.value(y)
        memory = self.memory(v.transpose(1, 2)).transpose(1, 2) + v
        o = (turn(heads(q)) @ turn(heads(k)).transpose(-1, -2) / 8).softmax(-1) @ heads(v)
        x = x + self.out(o.transpose(1, 2).reshape(B, T, D)) + memory
        return x + self.narrow(F.gelu(self.widen(self.mlp_ln(x))))


class SpeechTokenizer(nn.Module):
    """[B,T,128] tokenizer mel at 100 Hz -> [B,T/4,8] numbers in (-1, 1). Rounded, they are the digits of a token; only
    ACTIVE of them are not always 0."""

    def __init__(self, layers=2):
        super().__init__()
        d = LATENT
        self.conv1, self.conv2 = nn.Conv1d(128, d, 3, 2, 1), nn.Conv1d(d, d, 3, 2, 1)
        self.blocks = nn.ModuleList(TokenizerBlock(d) for _ in range(layers))
        self.down = nn.Linear(d, DIGITS)

    def forward(self, heard):
        x = F.gelu(self.conv2(F.gelu(self.conv1(heard.transpose(1, 2))))).transpose(1, 2)
        a = torch.outer(torch.arange(x.shape[1]).float(), 1 / 10000 ** (torch.arange(0, 64, 2).float() / 64)).repeat(1, 2)
        for block in self.blocks:
            x = block(x, (a.cos(), a.sin()))
        return torch.tanh(self.down(x) * (torch.arange(DIGITS) < ACTIVE))

    def state(self):
        """Its tensors, with 0 in the rows of unused digits, as the file requires."""
        out = {k: v.clone() for k, v in self.state_dict().items()}
        out["down.weight"][ACTIVE:] = 0
        out["down.bias"][ACTIVE:] = 0
        return out


class Embed(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.out, self.scale = nn.Sequential(nn.Linear(d, d), nn.LayerNorm(d)), math.sqrt(d)

    def forward(self, x):
        return self.out(x) * self.scale


class RelativeAttention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.linear_q, self.linear_k, self.linear_v, self.linear_out = (nn.Linear(d, d) for _ in range(4))
        self.linear_pos = nn.Linear(d, d, bias=False)
        self.pos_bias_u, self.pos_bias_v = nn.Parameter(torch.zeros(heads, d // heads)), nn.Parameter(torch.zeros(heads, d // heads))
        self.linear_out.weight.data.mul_(.3)

    def forward(self, x, mask):
        B, T, D = x.shape
        heads = lambda t: t.view(-1, t.shape[1], self.heads, D // self.heads).transpose(1, 2)
        at = torch.arange(T - 1, -T, -1).float()[:, None] * 10000 ** (-torch.arange(0, D, 2).float() / D)
        p = heads(self.linear_pos(torch.stack([at.sin(), at.cos()], -1).view(1, 2 * T - 1, D)))
        q, k, v = heads(self.linear_q(x)), heads(self.linear_k(x)), heads(self.linear_v(x))
        by_place = (q + self.pos_bias_v[:, None]) @ p.transpose(-1, -2)  # [B,h,T,2T-1], column r is distance T-1-r
        by_place = F.pad(by_place, (1, 0)).view(B, self.heads, -1, T)[:, :, 1:].reshape(B, self.heads, T, 2 * T - 1)[..., :T]
        score = ((q + self.pos_bias_u[:, None]) @ k.transpose(-1, -2) + by_place) / math.sqrt(D // self.heads)
        o = (score + mask).softmax(-1) @ v
        return self.linear_out(o.transpose(1, 2).reshape(B, T, D))


class Feed(nn.Module):
    def __init__(self, d, inner):
        super().__init__()
        self.w_1, self.w_2 = nn.Linear(d, inner), nn.Linear(inner, d)
        self.w_2.weight.data.mul_(.3)

    def forward(self, x):
        return self.w_2(F.silu(self.w_1(x)))


class ConformerBlock(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.self_attn, self.feed_forward = RelativeAttention(d, HEADS), Feed(d, FEED)
        self.norm_mha, self.norm_ff = nn.LayerNorm(d, eps=1e-12), nn.LayerNorm(d, eps=1e-12)

    def forward(self, x, mask):
        x = x + self.self_attn(self.norm_mha(x), mask)
        return x + self.feed_forward(self.norm_ff(x))


def blockwise(n, block):
    """[n,n] additive mask: a position sees its own block and earlier ones; block 0 = everything."""
    b = torch.arange(n) // (block or n)
    return torch.zeros(n, n).masked_fill(b[None] > b[:, None], float("-inf"))


class FlowEncoder(nn.Module):
    """Token embeddings [B,T,d] -> states [B,2T,d] at the mel rate."""

    def __init__(self, d=WIDTH):
        super().__init__()
        self.embed, self.up_embed, self.after_norm = Embed(d), Embed(d), nn.LayerNorm(d)
        self.pre_lookahead_layer = nn.ModuleDict(dict(conv1=nn.Conv1d(d, d, 4), conv2=nn.Conv1d(d, d, 3)))
        self.up_layer = nn.ModuleDict(dict(conv=nn.Conv1d(d, d, 5)))
        self.encoders, self.up_encoders = (nn.ModuleList(ConformerBlock(d) for _ in range(n)) for n in (BLOCKS, UP_BLOCKS))

    def forward(self, x, block=0):
        x = self.embed(x)
        y = F.leaky_relu(self.pre_lookahead_layer["conv1"](F.pad(x.transpose(1, 2), (0, 3))))
        x = x + self.pre_lookahead_layer["conv2"](F.pad(y, (2, 0))).transpose(1, 2)
        mask = blockwise(x.shape[1], block)
        for layer in self.encoders:
            x = layer(x, mask)
        x = self.up_layer["conv"](F.pad(x.transpose(1, 2).repeat_interleave(2, 2), (4, 0))).transpose(1, 2)
        x, mask = self.up_embed(x), blockwise(2 * mask.shape[0], 2 * block)
        for layer in self.up_encoders:
            x = layer(x, mask)
        return self.after_norm(x)


class DiTAttention(nn.Module):
    def __init__(self, hidden, heads, head):
        super().__init__()
        self.heads = heads
        self.to_q, self.to_k, self.to_v = (nn.Linear(hidden, heads * head) for _ in range(3))
        self.q_norm, self.k_norm, self.proj = nn.LayerNorm(head), nn.LayerNorm(head), nn.Linear(heads * head, hidden)

    def forward(self, x, mask):
        B, T, _ = x.shape
        heads = lambda t: t.view(B, T, self.heads, -1).transpose(1, 2)
        q, k, v = self.q_norm(heads(self.to_q(x))), self.k_norm(heads(self.to_k(x))), heads(self.to_v(x))
        o = (q @ k.transpose(-1, -2) * q.shape[-1] ** -.5 + mask).softmax(-1) @ v
        return self.proj(o.transpose(1, 2).reshape(B, T, -1))


class DiTBlock(nn.Module):
    def __init__(self, hidden, heads, head):
        super().__init__()
        self.attn = DiTAttention(hidden, heads, head)
        self.mlp = nn.ModuleDict(dict(fc1=nn.Linear(hidden, 4 * hidden), fc2=nn.Linear(4 * hidden, hidden)))
        self.conv = nn.ModuleDict(dict(block=nn.ModuleDict({"1": nn.Conv1d(hidden, hidden, 3), "3": nn.LayerNorm(hidden), "6": nn.Conv1d(hidden, hidden, 3)})))
        self.adaLN_modulation = nn.ModuleDict({"1": nn.Linear(hidden, 9 * hidden)})
        nn.init.normal_(self.adaLN_modulation["1"].weight, 0, .02 / math.sqrt(hidden))
        for gate in (2, 5, 8):
            self.adaLN_modulation["1"].bias.data[gate * hidden:(gate + 1) * hidden] = .3

    def forward(self, x, c, mask):
        norm = lambda x, shift, scale: F.layer_norm(x, x.shape[-1:], eps=1e-6) * (1 + scale) + shift
        a, m, v = (part.chunk(3, -1) for part in self.adaLN_modulation["1"](c).chunk(3, -1))  # (shift, scale, gate) of attention, mlp, convolution
        x = x + a[2] * self.attn(norm(x, *a[:2]), mask)
        first, between, second = (self.conv["block"][k] for k in "136")
        y = first(F.pad(norm(x, *v[:2]).transpose(1, 2), (2, 0))).transpose(1, 2)
        x = x + v[2] * second(F.pad(F.mish(between(y)).transpose(1, 2), (2, 0))).transpose(1, 2)
        return x + m[2] * self.mlp["fc2"](F.gelu(self.mlp["fc1"](norm(x, *m[:2])), approximate="tanh"))


class DiT(nn.Module):
    """Velocity [B,T,80] of x at time t [B], given mu. The columns for speaker and prompt are zero."""

    def __init__(self, hidden, depth, heads, head):
        super().__init__()
        mlp = lambda i, o: nn.ModuleDict({"0": nn.Linear(i, o), "2": nn.Linear(o, o)})
        self.t_embedder, self.in_proj = nn.ModuleDict(dict(mlp=mlp(256, hidden))), nn.Linear(320, hidden)
        self.blocks = nn.ModuleList(DiTBlock(hidden, heads, head) for _ in range(depth))
        self.final_layer = nn.ModuleDict(dict(adaLN_modulation=nn.ModuleDict({"1": nn.Linear(hidden, 2 * hidden)}), linear=nn.Linear(hidden, 80)))
        self.in_proj.weight.data[:, 160:] = 0

    def forward(self, x, mu, t, block=0):
        a = (t * 1000)[:, None] * torch.exp(-math.log(10000) * torch.arange(128) / 128)
        c = self.t_embedder["mlp"]["0"](torch.cat([a.cos(), a.sin()], -1))
        c = F.silu(self.t_embedder["mlp"]["2"](F.silu(c)))[:, None]
        x = F.linear(torch.cat([x, mu], 2), self.in_proj.weight[:, :160], self.in_proj.bias)
        mask = blockwise(x.shape[1], block)
        for layer in self.blocks:
            x = layer(x, c, mask)
        shift, scale = self.final_layer["adaLN_modulation"]["1"](c).chunk(2, -1)
        return self.final_layer["linear"](F.layer_norm(x, x.shape[-1:], eps=1e-6) * (1 + scale) + shift)


class Flow(nn.Module):
    """The module behind flow.pt. During training a token's embedding is a linear map of its digits (`digit_map`). The
    export writes it out as a table of 6,561 rows, so that unseen codes mean something too."""

    def __init__(self):
        super().__init__()
        self.digit_map, self.encoder, self.encoder_proj = nn.Linear(DIGITS, WIDTH), FlowEncoder(), nn.Linear(WIDTH, 80)
        self.decoder = nn.ModuleDict(dict(estimator=DiT(**DIT)))

    def mu(self, digit, block=0):
        """Digits [B,T,8] -> [B,2T,80], the expected mel; block: how many tokens see each other while streaming."""
        return self.encoder_proj(self.encoder(self.digit_map(digit), block))

    @torch.no_grad()
    def mel(self, mu, noise, steps=5, block=0):
        """Solves the flow from noise [B,T,80], with the server's guidance."""
        ts = 1 - torch.cos(torch.linspace(0, 1, steps + 1) * .5 * torch.pi)
        x, both = noise, torch.cat([mu, torch.zeros_like(mu)])
        for k in range(steps):
            v, free = self.decoder["estimator"](x.repeat(2, 1, 1), both, ts[k].repeat(2 * len(mu)), block).chunk(2)
            x = x + (ts[k + 1] - ts[k]) * (1.7 * v - .7 * free)
        return x

    def state(self, silence):
        """Tensors of flow.pt. `silence`: the tokenizer's code for silence; token 4218 gets its embedding. A code whose
        unused digits are not 0 has the embedding of the one where they are."""
        table = self.digit_map(digits(torch.arange(CODES)) * (torch.arange(DIGITS) < ACTIVE)).detach().clone()
        table[SILENCE] = table[silence]
        state = {k: v for k, v in self.state_dict().items() if not k.startswith("digit_map")}
        return dict(state, **{"input_embedding.weight": table, "spk_embed_affine_layer.weight": torch.zeros(80, 192), "spk_embed_affine_layer.bias": torch.zeros(80)})
