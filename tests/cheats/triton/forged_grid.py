# triton: more threads than a device has
# verdict: bad launch
# says: block

import triton
import triton.language as tl


@triton.jit
def gate(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, v * tl.sigmoid(v), mask=i < n)


def plan(p):
    (x,), (y,) = p.inputs, p.outputs
    gate[(1,)](x, y, x.numel(), BLOCK=1024)
    p._ops[0]["block"] = [4096, 1, 1]
