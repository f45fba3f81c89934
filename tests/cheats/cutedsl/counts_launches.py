# cutedsl: assembly reads which launch it is
# verdict: refused
# says: gridid

import cutlass
import cutlass.cute as cute
from cutlass._mlir.dialects import llvm
from cutlass.cutlass_dsl import T, dsl_user_op


@dsl_user_op
def assembly(*, loc=None, ip=None):
    text = "{ .reg .b64 t; mov.u64 t, %gridid; mov.b32 $0, 0; }"
    return cutlass.Float32(llvm.inline_asm(T.f32(), [], text, "=f", has_side_effects=True, loc=loc, ip=ip))


@cute.kernel
def gate_kernel(x: cute.Tensor, y: cute.Tensor):
    i = cute.arch.block_idx()[0] * 256 + cute.arch.thread_idx()[0]
    if i < cute.size(x):
        v = x[i] + assembly()
        y[i] = v / (1.0 + cute.math.exp(-v))


@cute.jit
def gate(x: cute.Tensor, y: cute.Tensor):
    flat = cute.make_layout(cute.size(x))
    gX = cute.make_tensor(x.iterator, flat)  # (n)
    gY = cute.make_tensor(y.iterator, flat)  # (n)
    gate_kernel(gX, gY).launch(grid=(cute.ceil_div(cute.size(x), 256), 1, 1), block=(256, 1, 1))


def plan(p):
    gate(p.inputs[0], p.outputs[0])
