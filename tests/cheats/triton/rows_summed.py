# triton: a reduction over shared memory
# verdict: pass
# task: rows

import triton
import triton.language as tl


@triton.jit
def rows(x, y, cols, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)  # (BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for begin in range(0, cols, BLOCK):
        total += tl.load(x + tl.program_id(0) * cols + begin + at, mask=begin + at < cols, other=0.0)
    tl.store(y + tl.program_id(0), tl.sum(total, 0))


def plan(p):
    (x,), (y,) = p.inputs, p.outputs
    rows[(x.shape[0],)](x, y, x.shape[1], BLOCK=512)
