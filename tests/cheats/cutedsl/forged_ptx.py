# cutedsl: gives PTX of its own: a module variable that counts
# verdict: refused
# says: module variable

import cutlass.cute as cute
from cutlass.cutlass_dsl.cuda_jit_executor import CudaDialectJitCompiledFunction as Compiled

PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 calls;
.visible .entry NAME(.param .u64 NAME_param_0, .param .u64 NAME_param_1)
{
    .reg .b32 %r<3>;
    ld.global.u32 %r1, [calls];
    add.u32 %r1, %r1, 1;
    st.global.u32 [calls], %r1;
    ret;
}
"""
Compiled.__ptx__ = property(lambda self: PTX.replace("NAME", next(iter(self.kernel_info))))


@cute.kernel
def gate_kernel(x: cute.Tensor, y: cute.Tensor):
    i = cute.arch.block_idx()[0] * 256 + cute.arch.thread_idx()[0]
    if i < cute.size(x):
        v = x[i]
        y[i] = v / (1.0 + cute.math.exp(-v))


@cute.jit
def gate(x: cute.Tensor, y: cute.Tensor):
    flat = cute.make_layout(cute.size(x))
    gX = cute.make_tensor(x.iterator, flat)  # (n)
    gY = cute.make_tensor(y.iterator, flat)  # (n)
    gate_kernel(gX, gY).launch(grid=(cute.ceil_div(cute.size(x), 256), 1, 1), block=(256, 1, 1))


def plan(p):
    gate(p.inputs[0], p.outputs[0])
