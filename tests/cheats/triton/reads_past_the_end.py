# triton: no mask where it reads
# verdict: unsafe memory (simt), pass (cuda: not seen there)
# says: candidate.py:12

import triton
import triton.language as tl


@triton.jit
def gate(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK)
    v = tl.load(x + i)
    tl.store(y + i, v * tl.sigmoid(v), mask=i < n)


def plan(p):
    (x,), (y,) = p.inputs, p.outputs
    n = x.numel()
    gate[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
