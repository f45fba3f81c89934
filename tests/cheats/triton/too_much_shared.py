# triton: more shared memory than a block has
# verdict: bad launch|compile error
# task: rows
# says: fit|shared

import triton
import triton.language as tl


@triton.jit
def rows(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)  # (BLOCK)
    a = tl.load(x + i[:, None] * BLOCK + i[None, :])
    tl.store(y + i[:, None] * BLOCK + i[None, :], tl.dot(a, a))


def plan(p):
    (x,), (y,) = p.inputs, p.outputs
    rows[(1,)](x, y, BLOCK=256)
