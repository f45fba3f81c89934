# triton: two kernels, one twice with other constants, through cleared workspace
# verdict: pass

import triton
import triton.language as tl


@triton.jit
def scale(x, y, n, by, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * by, mask=i < n)


@triton.jit
def gate(x, once, twice, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK)
    v = tl.load(x + i, mask=i < n)
    more = tl.load(once + i, mask=i < n) - 2 * tl.load(twice + i, mask=i < n)
    tl.store(y + i, v * tl.sigmoid(v) + more, mask=i < n)


def plan(p):
    (x,), (y,) = p.inputs, p.outputs
    n = x.numel()
    room = p.workspace(2, n).zero_()
    scale[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, room, n, 1.0, BLOCK=1024)
    scale[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, room.at(n), n, 0.5, BLOCK=256, num_warps=2)
    gate[(triton.cdiv(n, 512),)](x, room, room.at(n), y, n, BLOCK=512)
