"""kernels.py - eight CuTe DSL kernels, five for Ampere and later, three for Hopper, against NumPy.

    kernels.py [NAME...]          prints `NAME ok`; exit 1 when a result is wrong
    kernels.py --bug NAME...      the same with a mistake at the line marked `here: NAME KIND`

On a GPU only `device` is another: it copies arrays there.
"""

import sys

import cutlass
import cutlass.cute as cute
import cutlass.utils.hopper_helpers as sm90
import numpy as np
from cutlass.cute.nvgpu import cpasync, warp, warpgroup
from cutlass.cute.runtime import from_dlpack

BUG = "--bug" in sys.argv
NO_BUG = not BUG


def device(array):
    return from_dlpack(array, assumed_align=16)


# ---- Ampere and later -----------------------------------------------------------------------------------------------


@cute.kernel
def add_kernel(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor):
    i = cute.arch.block_idx()[0] * 128 + cute.arch.thread_idx()[0]
    if cutlass.const_expr(BUG):
        out[i] = x[i] + y[i]  # here: add out_of_bounds
    else:
        if i < cute.size(x):
            out[i] = x[i] + y[i]


@cute.jit
def add_host(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor):
    add_kernel(x, y, out).launch(grid=((cute.size(x) + 127) // 128, 1, 1), block=(128, 1, 1))


def add(random):
    x, y, out = random(1000), random(1000), np.zeros(1000, np.float32)
    add_host(device(x), device(y), device(out))
    return out, x + y


@cute.kernel
def softmax_kernel(x: cute.Tensor, out: cute.Tensor):
    row, lane = cute.arch.block_idx()[0], cute.arch.thread_idx()[0]
    v = cute.make_rmem_tensor((4,), cutlass.Float32)
    largest = cutlass.Float32(-1e30)
    for j in cutlass.range_constexpr(4):
        if cutlass.const_expr(BUG):
            v[j] = x[row, lane + 32 * j + 96]  # here: softmax out_of_bounds
        else:
            v[j] = x[row, lane + 32 * j]
        largest = cutlass.max(largest, v[j])
    for step in cutlass.range_constexpr(5):
        largest = cutlass.max(largest, cute.arch.shuffle_sync_bfly(largest, offset=1 << step))
    total = cutlass.Float32(0)
    for j in cutlass.range_constexpr(4):
        v[j] = cute.math.exp(v[j] - largest)
        total += v[j]
    for step in cutlass.range_constexpr(5):
        total += cute.arch.shuffle_sync_bfly(total, offset=1 << step)
    for j in cutlass.range_constexpr(4):
        out[row, lane + 32 * j] = v[j] / total


@cute.jit
def softmax_host(x: cute.Tensor, out: cute.Tensor):
    softmax_kernel(x, out).launch(grid=(x.shape[0], 1, 1), block=(32, 1, 1))


def softmax(random):
    x, out = random(9, 128), np.zeros((9, 128), np.float32)
    softmax_host(device(x), device(out))
    e = np.exp(x - x.max(1, keepdims=True))
    return out, e / e.sum(1, keepdims=True)


@cute.kernel
def norm_kernel(x: cute.Tensor, weight: cute.Tensor, out: cute.Tensor):
    row, i = cute.arch.block_idx()[0], cute.arch.thread_idx()[0]
    sums = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(4), 16)
    v = x[row, i]
    part = v * v
    for step in cutlass.range_constexpr(5):
        part += cute.arch.shuffle_sync_bfly(part, offset=1 << step)
    if i % 32 == 0:
        sums[i // 32] = part
    if cutlass.const_expr(NO_BUG):
        cute.arch.sync_threads()
    mean = (sums[0] + sums[1] + sums[2] + sums[3]) / 128  # here: norm race_shared
    out[row, i] = v * cute.math.rsqrt(mean + 1e-5) * weight[i]


@cute.jit
def norm_host(x: cute.Tensor, weight: cute.Tensor, out: cute.Tensor):
    norm_kernel(x, weight, out).launch(grid=(x.shape[0], 1, 1), block=(128, 1, 1))


def norm(random):
    x, weight, out = random(7, 128), random(128), np.zeros((7, 128), np.float32)
    norm_host(device(x), device(weight), device(out))
    return out, x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * weight


@cute.kernel
def transpose_kernel(x: cute.Tensor, out: cute.Tensor):
    bx, by, _ = cute.arch.block_idx()
    tx, ty, _ = cute.arch.thread_idx()
    layout = cute.make_layout((32, 32), stride=(33, 1))
    tile = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, layout, 16)  # (32,32)
    for j in cutlass.range_constexpr(4):
        tile[ty + 8 * j, tx] = x[by * 32 + ty + 8 * j, bx * 32 + tx]
    if cutlass.const_expr(NO_BUG):
        cute.arch.sync_threads()
    for j in cutlass.range_constexpr(4):
        out[bx * 32 + ty + 8 * j, by * 32 + tx] = tile[tx, ty + 8 * j]  # here: transpose race_shared


@cute.jit
def transpose_host(x: cute.Tensor, out: cute.Tensor):
    transpose_kernel(x, out).launch(grid=(x.shape[1] // 32, x.shape[0] // 32, 1), block=(32, 8, 1))


def transpose(random):
    x, out = random(64, 96), np.zeros((96, 64), np.float32)
    transpose_host(device(x), device(out))
    return out, x.T


@cute.kernel
def mma_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, mma: cute.TiledMma, fetch: cute.TiledCopy):
    bx, by, _ = cute.arch.block_idx()
    tid, _, _ = cute.arch.thread_idx()
    smem = cutlass.utils.SmemAllocator()
    layout = cute.make_layout((64, 32), stride=(40, 1))
    sA = smem.allocate_tensor(cutlass.Float16, layout, 16)  # (64,32)
    sB = smem.allocate_tensor(cutlass.Float16, layout, 16)  # (64,32)
    gA = cute.local_tile(a, (64, 32), (bx, None))  # (64,32,k)
    gB = cute.local_tile(b, (64, 32), (by, None))  # (64,32,k)
    gC = cute.local_tile(c, (64, 64), (bx, by))  # (64,64)
    mine, copy = mma.get_slice(tid), fetch.get_slice(tid)
    tCsA, tCsB, tCgC = mine.partition_A(sA), mine.partition_B(sB), mine.partition_C(gC)
    tCrA, tCrB = mma.make_fragment_A(tCsA), mma.make_fragment_B(tCsB)
    acc = mma.make_fragment_C(tCgC)
    acc.fill(0.0)
    for k in cutlass.range(cute.size(gA, mode=[2])):
        cute.copy(fetch, copy.partition_S(gA[None, None, k]), copy.partition_D(sA))
        cute.copy(fetch, copy.partition_S(gB[None, None, k]), copy.partition_D(sB))
        cute.arch.cp_async_commit_group()
        if cutlass.const_expr(NO_BUG):
            cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        cute.autovec_copy(tCsA, tCrA)  # here: mma async_not_waited
        cute.autovec_copy(tCsB, tCrB)
        cute.gemm(mma, acc, tCrA, tCrB, acc)
        cute.arch.sync_threads()
    cute.autovec_copy(acc, tCgC)


@cute.jit
def mma_host(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    mma = cute.make_tiled_mma(warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16)), (2, 2, 1))
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float16, num_bits_per_copy=128)
    fetch = cute.make_tiled_copy_tv(atom, cute.make_layout((32, 4), stride=(4, 1)), cute.make_layout((1, 8)))
    mma_kernel(a, b, c, mma, fetch).launch(grid=(a.shape[0] // 64, b.shape[0] // 64, 1), block=(128, 1, 1))


def mma(random):
    a, b = random(128, 96).astype(np.float16), random(64, 96).astype(np.float16)
    c = np.zeros((128, 64), np.float32)
    mma_host(device(a), device(b), device(c))
    return c, a.astype(np.float32) @ b.astype(np.float32).T


# ---- Hopper ----------------------------------------------------------------------------------------------------------


@cute.kernel
def fetch_kernel(atom: cute.CopyAtom, x: cute.Tensor, out: cute.Tensor, layout: cute.Layout):
    bx, by, _ = cute.arch.block_idx()
    tid, _, _ = cute.arch.thread_idx()
    smem = cutlass.utils.SmemAllocator()
    full = smem.allocate_array(cutlass.Int64, 1)
    sX = smem.allocate_tensor(cutlass.Float32, layout, 128)  # (32,32)
    gX = cute.local_tile(x, (32, 32), (bx, by))  # (32,32)
    tXsX, tXgX = cpasync.tma_partition(atom, 0, cute.make_layout(1), cute.group_modes(sX, 0, 2), cute.group_modes(gX, 0, 2))
    if tid == 0:
        cute.arch.mbarrier_init(full, 1)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    if tid < 32:
        with cute.arch.elect_one():
            cute.arch.mbarrier_arrive_and_expect_tx(full, 32 * 32 * 4)
        cute.copy(atom, tXgX, tXsX, tma_bar_ptr=full)
    if cutlass.const_expr(NO_BUG):
        cute.arch.mbarrier_wait(full, 0)
    for j in cutlass.range_constexpr(8):
        i = tid + 128 * j
        out[bx * 32 + i // 32, by * 32 + i % 32] = sX[i // 32, i % 32] * 2  # here: fetch async_not_waited
    if cutlass.const_expr(BUG):
        cute.arch.mbarrier_wait(full, 0)


@cute.jit
def fetch_host(x: cute.Tensor, out: cute.Tensor):
    layout = cute.make_layout((32, 32), stride=(32, 1))
    atom, tensor = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), x, layout, (32, 32))
    fetch_kernel(atom, tensor, out, layout).launch(grid=(x.shape[0] // 32, x.shape[1] // 32, 1), block=(128, 1, 1))


def fetch(random):
    x, out = random(64, 96), np.zeros((64, 96), np.float32)
    fetch_host(device(x), device(out))
    return out, x * 2


@cute.kernel
def store_kernel(atom: cute.CopyAtom, x: cute.Tensor, out: cute.Tensor, layout: cute.Layout):
    bx, by, _ = cute.arch.block_idx()
    tid, _, _ = cute.arch.thread_idx()
    sX = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, layout, 128)  # (32,32)
    gX = cute.local_tile(out, (32, 32), (bx, by))  # (32,32)
    tXsX, tXgX = cpasync.tma_partition(atom, 0, cute.make_layout(1), cute.group_modes(sX, 0, 2), cute.group_modes(gX, 0, 2))
    for j in cutlass.range_constexpr(8):
        i = tid + 128 * j
        sX[i // 32, i % 32] = x[bx * 32 + i // 32, by * 32 + i % 32] + 1
    if cutlass.const_expr(NO_BUG):
        cute.arch.fence_proxy("async.shared", space="cta")
    cute.arch.sync_threads()
    if tid < 32:
        cute.copy(atom, tXsX, tXgX)  # here: store missing_proxy_fence
        cute.arch.cp_async_bulk_commit_group()
        cute.arch.cp_async_bulk_wait_group(0, read=True)


@cute.jit
def store_host(x: cute.Tensor, out: cute.Tensor):
    layout = cute.make_layout((32, 32), stride=(32, 1))
    atom, tensor = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), out, layout, (32, 32))
    store_kernel(atom, x, tensor, layout).launch(grid=(x.shape[0] // 32, x.shape[1] // 32, 1), block=(128, 1, 1))


def store(random):
    x, out = random(64, 32), np.zeros((64, 32), np.float32)
    store_host(device(x), device(out))
    return out, x + 1


@cute.kernel
def wgmma_kernel(
    mma: cute.TiledMma, atom_a: cute.CopyAtom, a: cute.Tensor, atom_b: cute.CopyAtom, b: cute.Tensor, c: cute.Tensor,
    layout_a: cute.ComposedLayout, layout_b: cute.ComposedLayout,
):
    tid, _, _ = cute.arch.thread_idx()
    smem = cutlass.utils.SmemAllocator()
    full = smem.allocate_array(cutlass.Int64, 1)
    sA = smem.allocate_tensor(cutlass.Float16, layout_a.outer, 1024, layout_a.inner)  # (64,64,1)
    sB = smem.allocate_tensor(cutlass.Float16, layout_b.outer, 1024, layout_b.inner)  # (64,64,1)
    gA = cute.local_tile(a, (64, 64), (cute.arch.block_idx()[0], None))  # (64,64,k)
    gB = cute.local_tile(b, (64, 64), (cute.arch.block_idx()[1], None))  # (64,64,k)
    gC = cute.local_tile(c, (64, 64), (cute.arch.block_idx()[0], cute.arch.block_idx()[1]))  # (64,64)
    tAsA, tAgA = cpasync.tma_partition(atom_a, 0, cute.make_layout(1), cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2))
    tBsB, tBgB = cpasync.tma_partition(atom_b, 0, cute.make_layout(1), cute.group_modes(sB, 0, 2), cute.group_modes(gB, 0, 2))
    mine = mma.get_slice(tid)
    tCrA, tCrB = mma.make_fragment_A(mine.partition_A(sA)), mma.make_fragment_B(mine.partition_B(sB))
    tCgC = mine.partition_C(gC)
    acc = cute.make_rmem_tensor(tCgC.shape, cutlass.Float32)
    if tid == 0:
        cute.arch.mbarrier_init(full, 1)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    mma.set(warpgroup.Field.ACCUMULATE, False)
    for k in cutlass.range_constexpr(cute.size(gA, mode=[2])):
        if tid < 32:
            with cute.arch.elect_one():
                cute.arch.mbarrier_arrive_and_expect_tx(full, 2 * 64 * 64 * 2)
            cute.copy(atom_a, tAgA[None, k], tAsA[None, 0], tma_bar_ptr=full)
            cute.copy(atom_b, tBgB[None, k], tBsB[None, 0], tma_bar_ptr=full)
        cute.arch.mbarrier_wait(full, k % 2)
        warpgroup.fence()
        for i in cutlass.range_constexpr(cute.size(tCrA, mode=[2])):
            cute.gemm(mma, acc, tCrA[None, None, i, 0], tCrB[None, None, i, 0], acc)
            mma.set(warpgroup.Field.ACCUMULATE, True)
        warpgroup.commit_group()
        if cutlass.const_expr(NO_BUG):
            warpgroup.wait_group(0)
        cute.arch.sync_threads()
    cute.autovec_copy(acc, tCgC)  # here: wgmma wgmma_not_waited


@cute.jit
def wgmma_host(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    row, k = cutlass.utils.LayoutEnum.ROW_MAJOR, warpgroup.OperandMajorMode.K
    mma = sm90.make_trivial_tiled_mma(cutlass.Float16, cutlass.Float16, k, k, cutlass.Float32, (1, 1, 1), (64, 64))
    layout_a = sm90.make_smem_layout_a(row, (64, 64, 64), cutlass.Float16, 1)
    layout_b = sm90.make_smem_layout_b(row, (64, 64, 64), cutlass.Float16, 1)
    op = cpasync.CopyBulkTensorTileG2SOp()
    atom_a, tensor_a = cpasync.make_tiled_tma_atom(op, a, cute.slice_(layout_a, (None, None, 0)), (64, 64))
    atom_b, tensor_b = cpasync.make_tiled_tma_atom(op, b, cute.slice_(layout_b, (None, None, 0)), (64, 64))
    wgmma_kernel(mma, atom_a, tensor_a, atom_b, tensor_b, c, layout_a, layout_b).launch(
        grid=(a.shape[0] // 64, b.shape[0] // 64, 1), block=(128, 1, 1)
    )


def wgmma(random):
    a, b = random(128, 128).astype(np.float16), random(64, 128).astype(np.float16)
    c = np.zeros((128, 64), np.float32)
    wgmma_host(device(a), device(b), device(c))
    return c, a.astype(np.float32) @ b.astype(np.float32).T


AMPERE = [add, softmax, norm, transpose, mma]
HOPPER = [fetch, store, wgmma]


def main():
    wrong = 0
    names = [a for a in sys.argv[1:] if not a.startswith("-")]
    generator = np.random.default_rng(1)
    for kernel in AMPERE + HOPPER:
        if names and kernel.__name__ not in names:
            continue
        out, want = kernel(lambda *shape: generator.standard_normal(shape, dtype=np.float32))
        ok = np.allclose(out, want, rtol=1e-3, atol=1e-3)
        print(kernel.__name__, "ok" if ok else f"WRONG by {np.abs(out - want).max()}")
        wrong += not ok
    return wrong > 0 and not BUG


if __name__ == "__main__":
    sys.exit(main())
