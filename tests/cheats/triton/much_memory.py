# triton: allocates until it is stopped
# verdict: bad plan

import triton
import triton.language as tl

HELD = []
while True:
    HELD.append(bytearray(b"x") * (64 << 20))


@triton.jit
def gate(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, v * tl.sigmoid(v), mask=i < n)


def plan(p):
    (x,), (y,) = p.inputs, p.outputs
    n = x.numel()
    gate[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
