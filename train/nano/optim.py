"""Muon for the matrices inside layers and of the audio projector, AdamW for tables, heads, norms and convolutions; one learning-rate knob for both.

The projector needs Muon: at the same rate, one step of AdamW moves its rows by more than the length of an embedding, and the token CTC loss stalls."""
import torch
from .half import worthwhile

# Odd polynomials whose five steps drive singular values to 1 (the first steps are the steepest).
POLYNOMIALS = [(4.0848, -6.8946, 2.9270), (3.9505, -6.3029, 2.6377), (3.7418, -5.5913, 2.3037), (2.8769, -3.1427, 1.2046), (2.8366, -3.0525, 1.2012)]


def orthogonal(m):
    """m [N,a,b] -> nearest matrices whose singular values are all equal; in bfloat16 only where that is fast."""
    wide = m.shape[-2] <= m.shape[-1]
    m = m.bfloat16() if worthwhile() else m
    x = m if wide else m.transpose(-1, -2)
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for a, b, c in POLYNOMIALS:
        g = x @ x.transpose(-1, -2)
        x = torch.baddbmm(x, torch.baddbmm(g, g, g, beta=b, alpha=c), x, beta=a)
    return x if wide else x.transpose(-1, -2)


class Muon:
    """Orthogonalised momentum, scaled to the update size of Adam. Matrices of the same shape are processed together."""

    def __init__(self, params, momentum=.95, decay=.03):
        self.params, self.momentum, self.decay = params, momentum, decay
        self.buffers = [torch.zeros_like(p) for p in params]
        shapes = sorted({tuple(p.shape) for p in params})
        self.groups = [[i for i, p in enumerate(params) if tuple(p.shape) == s] for s in shapes]

    @torch.no_grad()
    def step(self, lr):
        for group in self.groups:
            updates = []
            for i in group:
                self.buffers[i].lerp_(self.params[i].grad, 1 - self.momentum)
                updates.append(torch.lerp(self.params[i].grad, self.buffers[i], self.momentum))
            for i, u in zip(group, orthogonal(torch.stack(updates))):
                self.params[i].mul_(1 - lr * self.decay).add_(u, alpha=-lr * .2 * max(u.shape) ** .5)
                self.params[i].grad = None


class Optimizer:
    def __init__(self, module, prefixes, decay=.03):
        chosen = [(n, p) for n, p in module.named_parameters() if p.requires_grad and any(n.startswith(x) for x in prefixes)]
        matrices = [p for n, p in chosen if p.dim() == 2 and any(part in n for part in ("layers", "audio_projection_layer", "resampler.attn", "resampler.kv", "resampler.proj"))]
        ids = {id(p) for p in matrices}
        self.params = [p for _, p in chosen]
        self.muon = Muon(matrices, decay=decay)
        self.adam = torch.optim.AdamW([p for p in self.params if id(p) not in ids], lr=1e-3, betas=(.9, .97), weight_decay=0, fused=True)

    def step(self, lr, clip=1.0):
        norm = torch.nn.utils.clip_grad_norm_(self.params, clip)
        for group in self.adam.param_groups:
            group["lr"] = lr
        self.adam.step()
        self.adam.zero_grad()
        self.muon.step(lr)
        return norm

    def state_dict(self):
        return dict(muon=self.muon.buffers, adam=self.adam.state_dict())

    def load_state_dict(self, state):
        for mine, theirs in zip(self.muon.buffers, state["muon"]):
            mine.copy_(theirs)  # also across devices
        self.adam.load_state_dict(state["adam"])


def schedule(done, step, peak, warm=50, flat=.4, floor=.03):
    """Warm-up, then flat, then linear decay; `done` is the completed share of the run (0 … 1)."""
    return peak * min(1, (step + 1) / warm) * (1 if done < flat else max(floor, (1 - done) / (1 - flat)))
