"""Softmax along rows, in the CuTe DSL: one block per row, which it reads twice.

The first pass finds maximum and sum together (the sum is scaled when the maximum grows), the second
writes. Threads hold 16 bytes at a time; warps combine by shuffles, the block through shared memory.
Judge it:  cutegen eval examples/softmax.py examples/cutedsl/softmax.py
"""
import cutlass
import cutlass.cute as cute

THREADS, WARPS = 256, 8
NEVER = -float("inf")


@cute.jit
def scaled(total: cutlass.Float32, top: cutlass.Float32, higher: cutlass.Float32):
    """A sum relative to `top`, relative to `higher`."""
    shift = 0.0 if higher == NEVER else higher                           # no inf - inf
    return total * cute.math.exp(top - shift)


@cute.jit
def both(top: cutlass.Float32, total: cutlass.Float32, top2: cutlass.Float32, total2: cutlass.Float32):
    higher = cutlass.max(top, top2)
    return higher, scaled(total, top, higher) + scaled(total2, top2, higher)


@cute.kernel
def softmax_kernel(x: cute.Tensor, y: cute.Tensor):
    row, tid = cute.arch.block_idx()[0], cute.arch.thread_idx()[0]
    smem = cutlass.utils.SmemAllocator()
    tops = smem.allocate_tensor(cutlass.Float32, cute.make_layout(WARPS))    # (WARPS)
    totals = smem.allocate_tensor(cutlass.Float32, cute.make_layout(WARPS))  # (WARPS)
    pieces = cute.size(x, mode=[1, 1])
    top, total = cutlass.Float32(NEVER), cutlass.Float32(0)
    for c in range(tid, pieces, THREADS):
        v = x[(None, None), (row, c)].load()                             # (1,V)
        most = v.reduce(cute.ReductionOp.MAX, cutlass.Float32(NEVER), 0)
        higher = cutlass.max(top, most)
        shift = cutlass.Float32(0) if higher == NEVER else higher
        part = cute.math.exp(v - shift).reduce(cute.ReductionOp.ADD, cutlass.Float32(0), 0)
        top, total = higher, scaled(total, top, higher) + part
    for step in cutlass.range_constexpr(5):
        top2 = cute.arch.shuffle_sync_bfly(top, offset=1 << step)
        total2 = cute.arch.shuffle_sync_bfly(total, offset=1 << step)
        top, total = both(top, total, top2, total2)
    if tid % 32 == 0:
        tops[tid // 32] = top
        totals[tid // 32] = total
    cute.arch.sync_threads()
    top, total = cutlass.Float32(NEVER), cutlass.Float32(0)
    for w in cutlass.range_constexpr(WARPS):
        top, total = both(top, total, tops[w], totals[w])
    scale = 1.0 / total
    for c in range(tid, pieces, THREADS):
        v = x[(None, None), (row, c)].load()                             # (1,V)
        y[(None, None), (row, c)].store(cute.math.exp(v - top) * scale)


@cute.jit
def softmax(x: cute.Tensor, y: cute.Tensor, vector: cutlass.Constexpr):
    gX = cute.zipped_divide(x, (1, vector))                              # ((1,V),(rows,cols/V))
    gY = cute.zipped_divide(y, (1, vector))                              # ((1,V),(rows,cols/V))
    softmax_kernel(gX, gY).launch(grid=(x.shape[0], 1, 1), block=(THREADS, 1, 1))


def plan(p):
    (x,), (y,) = p.inputs, p.outputs
    p.require(x.dtype == cutlass.Float32 and x.ndim == 2 and x.is_contiguous(), "x must be f32[rows, columns], contiguous")
    softmax(x, y, 4 if x.shape[1] % 4 == 0 else 1)
