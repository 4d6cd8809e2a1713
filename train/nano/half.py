"""Mixed precision with a bfloat16 copy: the copy computes losses and gradients, the float32 weights learn.

On CPUs with bfloat16 products (AMX, AVX-512) a matrix product takes at most a fifth of the time. On others the copy is the model itself."""
import copy
import torch
from .feed import device


def worthwhile():
    """Whether bfloat16 products are faster than float32 here."""
    return device().type == "cuda" or torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported()


def compiled(function):
    """Fuses the operations between the products (half of a step's time). Compiling costs some 40 CPU seconds."""
    return torch.compile(function, dynamic=True) if worthwhile() else function


class Fast:
    """`net` does the computing. `collect` moves its gradients to the float32 weights; `refresh` copies those back after
    a step."""

    def __init__(self, full, use=None):
        self.full, self.own = full, worthwhile() if use is None else use
        self.net = copy.deepcopy(full).bfloat16() if self.own else full
        self.pairs = [(p, h) for p, h in zip(full.parameters(), self.net.parameters()) if p.requires_grad]

    def collect(self):
        if self.own:
            for p, h in self.pairs:
                p.grad, h.grad = None if h.grad is None else h.grad.float(), None

    @torch.no_grad()
    def refresh(self):
        if self.own:
            for p, h in self.pairs:
                h.copy_(p)
