# triton: blocks write the same sum without atomics
# verdict: race|wrong values|unstable
# task: rows
# says: candidate.py:

import triton
import triton.language as tl


@triton.jit
def rows(x, y, cols, BLOCK: tl.constexpr):
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK)
    part = tl.sum(tl.load(x + tl.program_id(0) * cols + at, mask=at < cols, other=0.0), 0)
    tl.store(y + tl.program_id(0), tl.load(y + tl.program_id(0)) + part)


def plan(p):
    (x,), (y,) = p.inputs, p.outputs
    y.zero_()
    rows[(x.shape[0], triton.cdiv(x.shape[1], 512))](x, y, x.shape[1], BLOCK=512)
