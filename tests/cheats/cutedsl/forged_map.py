# cutedsl: a tensor map that reaches past its buffer
# verdict: bad launch
# flags: --simt-arch 90a
# says: reaches

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
    gate_kernel(gX, gY).launch(grid=(cute.ceil_div(cute.size(x), 256), 1, 1), block=(256, 1, 1))


def plan(p):
    gate(p.inputs[0], p.outputs[0])
    far = {"buffer": "in0", "offset": 0, "dtype": "f32", "dims": [1 << 20, 1 << 10], "strides_bytes": [1 << 22]}
    p._maps.append({**far, "box": [32, 8], "element_strides": [1, 1], "swizzle": "none", "fill": "zero", "l2": "none"})
