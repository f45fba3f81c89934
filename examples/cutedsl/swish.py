"""Swish, y = x * sigmoid(x), in the CuTe DSL: each thread loads, computes and stores 16 bytes.

Judge it:  cutegen eval examples/swish.py examples/cutedsl/swish.py
"""
import cutlass
import cutlass.cute as cute

THREADS = 256


@cute.kernel
def swish_kernel(x: cute.Tensor, y: cute.Tensor):
    i = cute.arch.block_idx()[0] * THREADS + cute.arch.thread_idx()[0]
    if i < cute.size(x, mode=[1]):
        v = x[None, i].load().to(cutlass.Float32)                        # (V)
        y[None, i].store((v / (1.0 + cute.math.exp(-v))).to(y.element_type))


@cute.jit
def swish(x: cute.Tensor, y: cute.Tensor, vector: cutlass.Constexpr):
    flat = cute.make_layout(cute.size(x))
    gX = cute.zipped_divide(cute.make_tensor(x.iterator, flat), (vector,))  # (V,n/V)
    gY = cute.zipped_divide(cute.make_tensor(y.iterator, flat), (vector,))  # (V,n/V)
    blocks = cute.ceil_div(cute.size(gX, mode=[1]), THREADS)
    swish_kernel(gX, gY).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1))


def plan(p):
    (x,), (y,) = p.inputs, p.outputs
    p.require(x.is_contiguous() and y.is_contiguous(), "x must be contiguous")
    n, most = x.numel(), 16 // x.element_size()
    swish(x, y, most if n % most == 0 else 1)
