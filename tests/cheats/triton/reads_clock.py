# triton: a clock tells one launch from another, or one day from the next
# verdict: refused
# says: globaltimer

import triton
import triton.language as tl


@triton.jit
def gate(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK)
    v = tl.load(x + i, mask=i < n)
    v += tl.inline_asm_elementwise("""{ .reg .b64 t; mov.u64 t, %globaltimer; mov.b32 $0, 0; }""", "=r,r", [v], dtype=tl.float32, is_pure=False, pack=1)
    tl.store(y + i, v * tl.sigmoid(v), mask=i < n)


def plan(p):
    (x,), (y,) = p.inputs, p.outputs
    n = x.numel()
    gate[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
