"""Softmax along rows, in Triton: one block per row, which it reads twice.

The first pass finds maximum and sum together (the sum is scaled when the maximum grows), the second
writes. Judge it:  cutegen eval examples/softmax.py examples/triton/softmax.py
"""
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)                                             # (BLOCK)
    top = tl.full((BLOCK,), float("-inf"), tl.float32)                   # (BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)                               # (BLOCK)
    for begin in range(0, cols, BLOCK):
        v = tl.load(x + row * cols + begin + at, mask=begin + at < cols, other=float("-inf"))
        higher = tl.maximum(top, v)
        shift = tl.where(higher == float("-inf"), 0.0, higher)           # no inf - inf
        total = total * tl.exp(top - shift) + tl.exp(v - shift)
        top = higher
    most = tl.max(top, 0)
    scale = 1.0 / tl.sum(total * tl.exp(top - most), 0)
    for begin in range(0, cols, BLOCK):
        inside = begin + at < cols
        v = tl.load(x + row * cols + begin + at, mask=inside)
        tl.store(y + row * cols + begin + at, tl.exp(v - most) * scale, mask=inside)


def plan(p):
    (x,), (y,) = p.inputs, p.outputs
    p.require(x.dtype == tl.float32 and x.ndim == 2 and x.is_contiguous(), "x must be f32[rows, columns], contiguous")
    rows, cols = x.shape
    softmax[(rows,)](x, y, cols, BLOCK=min(4096, triton.next_power_of_2(cols)), num_warps=8)
