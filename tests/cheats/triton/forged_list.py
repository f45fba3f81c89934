# triton: a launch list with buffers and sizes that do not exist
# verdict: bad launch
# says: buffer that does not exist

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
    p._ops[0]["args"][1] = {"buffer": "in7", "offset": -4096}
