"""A chunked state-space scan as Mamba-2 writes it: segment sums and einsums over blocks of 64 steps."""
import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH, STEPS, HEADS, WIDTH, STATE, CHUNK = 64, 512, 8, 64, 16, 64


def segment_sums(x):
    size = x.size(-1)
    sums = torch.cumsum(x, -1)
    sums = sums[..., :, None] - sums[..., None, :]
    return sums.masked_fill(~torch.tril(torch.ones(size, size, dtype=torch.bool, device=x.device)), float("-inf"))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.rand(BATCH, STEPS, HEADS) * -0.1)
        self.b = nn.Parameter(torch.randn(BATCH, STEPS, HEADS, STATE))
        self.c = nn.Parameter(torch.randn(BATCH, STEPS, HEADS, STATE))

    def forward(self, x):
        chunks = STEPS // CHUNK
        x, b, c = (y.reshape(BATCH, chunks, CHUNK, HEADS, -1) for y in (x, self.b, self.c))
        a = self.a.reshape(BATCH, chunks, CHUNK, HEADS).permute(0, 3, 1, 2)
        sums = torch.cumsum(a, -1)
        inner = torch.einsum("bclhn,bcshn,bhcls,bcshp->bclhp", c, b, torch.exp(segment_sums(a)), x)
        states = torch.einsum("bclhn,bhcl,bclhp->bchpn", b, torch.exp(sums[..., -1:] - sums), x)
        states = torch.cat([torch.zeros_like(states[:, :1]), states], 1)
        decay = torch.exp(segment_sums(F.pad(sums[..., -1], (1, 0))))
        states = torch.einsum("bhzc,bchpn->bzhpn", decay, states)[:, :-1]
        outer = torch.einsum("bclhn,bchpn,bhcl->bclhp", c, states, torch.exp(sums))
        return (inner + outer).reshape(BATCH, STEPS, HEADS, WIDTH)


def get_inputs():
    return [torch.randn(BATCH, STEPS, HEADS, WIDTH)]


def get_init_inputs():
    return []
