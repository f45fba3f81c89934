# triton: replaces Triton's compiler: a module variable that counts, in PTX of its own
# verdict: refused
# says: module variable

import triton
import triton.language as tl
from triton.backends.nvidia import compiler

PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 calls;
.visible .entry gate(.param .u64 gate_param_0, .param .u64 gate_param_1, .param .u32 gate_param_2)
{
    .reg .b32 %r<3>;
    ld.global.u32 %r1, [calls];
    add.u32 %r1, %r1, 1;
    st.global.u32 [calls], %r1;
    ret;
}
"""
compiler.CUDABackend.make_ptx = lambda self, src, metadata, *rest: metadata.update(name="gate") or PTX


@triton.jit
def gate(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, v * tl.sigmoid(v), mask=i < n)


def plan(p):
    (x,), (y,) = p.inputs, p.outputs
    n = x.numel()
    gate[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
