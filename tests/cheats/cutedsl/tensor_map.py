# cutedsl: rows fetched by TMA; the tensor map is the judge's own
# verdict: pass
# task: rows
# flags: --simt-arch 90a

import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import cpasync


@cute.kernel
def rows_kernel(atom: cute.CopyAtom, x: cute.Tensor, y: cute.Tensor, layout: cute.Layout):
    row, _, _ = cute.arch.block_idx()
    tid, _, _ = cute.arch.thread_idx()
    smem = cutlass.utils.SmemAllocator()
    full = smem.allocate_array(cutlass.Int64, 1)
    sX = smem.allocate_tensor(cutlass.Float32, layout, 128)  # (1,256)
    gX = cute.local_tile(x, (1, 256), (row, None))  # (1,256,n)
    tXsX, tXgX = cpasync.tma_partition(atom, 0, cute.make_layout(1), cute.group_modes(sX, 0, 2), cute.group_modes(gX, 0, 2))
    if tid == 0:
        cute.arch.mbarrier_init(full, 1)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    v = cutlass.Float32(0)
    for n in cutlass.range_constexpr(16):
        with cute.arch.elect_one():
            cute.arch.mbarrier_arrive_and_expect_tx(full, 1024)
        cute.copy(atom, tXgX[None, n], tXsX, tma_bar_ptr=full)
        cute.arch.mbarrier_wait(full, n % 2)
        for j in cutlass.range_constexpr(8):
            v += sX[0, tid + 32 * j]
        cute.arch.sync_threads()
    for step in cutlass.range_constexpr(5):
        v += cute.arch.shuffle_sync_bfly(v, offset=1 << step)
    if tid == 0:
        y[row] = v


@cute.jit
def rows(x: cute.Tensor, y: cute.Tensor):
    layout = cute.make_layout((1, 256), stride=(256, 1))
    atom, tensor = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), x, layout, (1, 256))
    rows_kernel(atom, tensor, y, layout).launch(grid=(x.shape[0], 1, 1), block=(32, 1, 1))


def plan(p):
    rows(p.inputs[0], p.outputs[0])
