# cutedsl: two kernels in one function, compiled twice, and sizes known only at run time
# verdict: pass

import cutlass
import cutlass.cute as cute


@cute.kernel
def scale_kernel(x: cute.Tensor, y: cute.Tensor, by: cutlass.Float32):
    i = cute.arch.block_idx()[0] * 256 + cute.arch.thread_idx()[0]
    if i < cute.size(x):
        y[i] = x[i] * by


@cute.kernel
def gate_kernel(x: cute.Tensor, once: cute.Tensor, twice: cute.Tensor, y: cute.Tensor):
    i = cute.arch.block_idx()[0] * 256 + cute.arch.thread_idx()[0]
    if i < cute.size(x):
        v = x[i]
        y[i] = v / (1.0 + cute.math.exp(-v)) + (once[i] - 2 * twice[i])


@cute.jit
def scale(x: cute.Tensor, room: cute.Tensor, by: cutlass.Float32):
    n = cute.size(room)
    flat = cute.make_tensor(x.iterator, cute.make_layout(n))  # (n)
    scale_kernel(flat, room, by).launch(grid=(cute.ceil_div(n, 256), 1, 1), block=(256, 1, 1))


@cute.jit
def gate(x: cute.Tensor, once: cute.Tensor, twice: cute.Tensor, y: cute.Tensor, n: cutlass.Int32):
    flat = cute.make_layout(n)  # known at run time: tensors are structs of a pointer and a size
    gX, gY = cute.make_tensor(x.iterator, flat), cute.make_tensor(y.iterator, flat)  # (n)
    scale_kernel(gX, twice, cutlass.Float32(0.5)).launch(grid=(cute.ceil_div(n, 256), 1, 1), block=(256, 1, 1))
    gate_kernel(gX, once, twice, gY).launch(grid=(cute.ceil_div(n, 256), 1, 1), block=(256, 1, 1))


def plan(p):
    (x,), (y,) = p.inputs, p.outputs
    once, twice = p.workspace(x.numel()).zero_(), p.workspace(x.numel())
    scale(x, once, 2.0)
    scale(x, once, 1.0)
    gate(x, once, twice.mark_layout_dynamic(), y, x.numel())
