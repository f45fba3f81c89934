# triton: computes in half precision
# verdict: imprecise|wrong values

import triton
import triton.language as tl


@triton.jit
def gate(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, (v.to(tl.float16) * tl.sigmoid(v).to(tl.float16)).to(tl.float32), mask=i < n)


def plan(p):
    (x,), (y,) = p.inputs, p.outputs
    n = x.numel()
    gate[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
