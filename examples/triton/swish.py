"""Swish, y = x * sigmoid(x), in Triton: one block of neighbouring elements per program.

Judge it:  cutegen eval examples/swish.py examples/triton/swish.py
"""
import triton
import triton.language as tl


@triton.jit
def swish(x, y, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK)
    if EVEN:  # no program reaches past the end: no masks
        v = tl.load(x + i).to(tl.float32)  # (BLOCK)
        tl.store(y + i, v * tl.sigmoid(v))
    else:
        inside = i < n
        v = tl.load(x + i, mask=inside).to(tl.float32)  # (BLOCK)
        tl.store(y + i, v * tl.sigmoid(v), mask=inside)


def plan(p):
    (x,), (y,) = p.inputs, p.outputs
    p.require(x.is_contiguous() and y.is_contiguous(), "x must be contiguous")
    n, block = x.numel(), 1024
    swish[(triton.cdiv(n, block),)](x, y, n, BLOCK=block, EVEN=n % block == 0, num_warps=4)
