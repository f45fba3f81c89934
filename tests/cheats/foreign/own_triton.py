# own_triton: no cheat; a kernel of its own in Triton, compiled by its first launch
# verdict: pass, unattested
# device: cuda
import torch
import triton
import triton.language as tl


@triton.jit
def swish(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(y + at, value * tl.sigmoid(value), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        swish[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
