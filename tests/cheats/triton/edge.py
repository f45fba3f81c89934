# triton: no mask where it writes: past the end of the output
# verdict: unsafe memory (simt), guard hit (cuda)
# says: candidate.py:13

import triton
import triton.language as tl


@triton.jit
def gate(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, v * tl.sigmoid(v))


def plan(p):
    (x,), (y,) = p.inputs, p.outputs
    n = x.numel()
    gate[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
