# cutedsl: a grid of more blocks than any device takes
# verdict: bad launch
# says: blocks

import cutlass.cute as cute


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
    gate_kernel(gX, gY).launch(grid=(2147483647, 65535, 65535), block=(256, 1, 1))


def plan(p):
    gate(p.inputs[0], p.outputs[0])
