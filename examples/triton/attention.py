"""softmax(Q K^T / sqrt(D)) V in Triton: a program owns a block of queries of one head; scores are never written.

Judge it:  cutegen eval examples/attention.py examples/triton/attention.py
"""
import math

import triton
import triton.language as tl


@triton.jit
def attention(
    q, k, v, o, q_head, q_row, k_head, k_row, v_head, v_row, o_head, o_row, queries, keys, scale,
    D: tl.constexpr, BQ: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0) * BQ + tl.arange(0, BQ)  # (BQ)
    column = tl.arange(0, BK)  # (BK)
    d = tl.arange(0, D)  # (D)
    qv = tl.load(q + head * q_head + row[:, None] * q_row + d[None, :], mask=row[:, None] < queries, other=0.0)  # (BQ,D)
    most = tl.full((BQ,), float("-inf"), tl.float32)  # (BQ) largest score so far
    total = tl.zeros((BQ,), tl.float32)  # (BQ) sum of the weights
    acc = tl.zeros((BQ, D), tl.float32)  # (BQ,D)
    for begin in range(0, keys, BK):
        inside = begin + column < keys  # (BK)
        at = (begin + column).to(tl.int64)
        kt = tl.load(k + head * k_head + at[None, :] * k_row + d[:, None], mask=inside[None, :], other=0.0)  # (D,BK)
        s = tl.dot(qv, kt, input_precision="ieee") * scale  # (BQ,BK) in powers of 2
        s = tl.where(inside[None, :], s, float("-inf"))
        higher = tl.maximum(most, tl.max(s, axis=1))  # (BQ)
        p = tl.exp2(s - higher[:, None])  # (BQ,BK)
        shrink = tl.exp2(most - higher)  # (BQ)
        total = total * shrink + tl.sum(p, axis=1)
        vv = tl.load(v + head * v_head + at[:, None] * v_row + d[None, :], mask=inside[:, None], other=0.0)  # (BK,D)
        acc = tl.dot(p.to(vv.dtype), vv, acc * shrink[:, None], input_precision="ieee")
        most = higher
    out = acc / total[:, None]  # (BQ,D)
    tl.store(o + head * o_head + row[:, None] * o_row + d[None, :], out.to(o.dtype.element_ty), mask=row[:, None] < queries)


def plan(p):
    (q, k, v), (o,) = p.inputs, p.outputs
    batch, heads, queries, d = q.shape
    p.require(k.shape[1] == heads and v.shape == k.shape, "as many heads of K and V as of Q")
    p.require(all(t.ndim == 4 and t.is_contiguous() for t in (q, k, v, o)), "Q, K, V must be [batch, heads, length, D]")
    p.require(d >= 16 and d & (d - 1) == 0, "the head size must be a power of two")
    attention[(triton.cdiv(queries, 64), batch * heads)](
        q, k, v, o, q.stride(1), q.stride(2), k.stride(1), k.stride(2), v.stride(1), v.stride(2), o.stride(1), o.stride(2),
        queries, k.shape[2], math.log2(math.e) / math.sqrt(d), D=d, BQ=64, BK=32, num_warps=4, num_stages=2,
    )  # fmt: skip
