# cutedsl: a reduction over shared memory
# verdict: pass
# task: rows

import cutlass
import cutlass.cute as cute


@cute.kernel
def rows_kernel(x: cute.Tensor, y: cute.Tensor):
    tid, row = cute.arch.thread_idx()[0], cute.arch.block_idx()[0]
    parts = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(8), 16)  # (8)
    v = cutlass.Float32(0)
    for j in range(tid, cute.size(x, mode=[1]), 256):
        v += x[row, j]
    for step in cutlass.range_constexpr(5):
        v += cute.arch.shuffle_sync_bfly(v, offset=1 << step)
    if tid % 32 == 0:
        parts[tid // 32] = v
    cute.arch.sync_threads()
    if tid == 0:
        for w in cutlass.range_constexpr(1, 8):
            v += parts[w]
        y[row] = v


@cute.jit
def rows(x: cute.Tensor, y: cute.Tensor):
    rows_kernel(x, y).launch(grid=(x.shape[0], 1, 1), block=(256, 1, 1))


def plan(p):
    rows(p.inputs[0], p.outputs[0])
