# cutedsl: blocks write the same sum without atomics
# verdict: race|wrong values|unstable
# task: rows
# says: candidate.py:17

import cutlass
import cutlass.cute as cute


@cute.kernel
def rows_kernel(x: cute.Tensor, y: cute.Tensor):
    row, part, _ = cute.arch.block_idx()
    v = x[row, part * 32 + cute.arch.thread_idx()[0]]
    for step in cutlass.range_constexpr(5):
        v += cute.arch.shuffle_sync_bfly(v, offset=1 << step)
    if cute.arch.thread_idx()[0] == 0:
        y[row] = y[row] + v


@cute.jit
def rows(x: cute.Tensor, y: cute.Tensor):
    rows_kernel(x, y).launch(grid=(x.shape[0], x.shape[1] // 32, 1), block=(32, 1, 1))


def plan(p):
    rows(p.inputs[0], p.outputs[0].zero_())
