# triton: a function of Triton's own library rejects what it is given: the line is that of the call
# verdict: compile error
# says: candidate.py:13.*fp16

import triton
import triton.language as tl


@triton.jit
def gate(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, v * tl.sigmoid(v.to(tl.float16)), mask=i < n)


def plan(p):
    (x,), (y,) = p.inputs, p.outputs
    n = x.numel()
    gate[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
