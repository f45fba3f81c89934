"""blackwell.py - CuTe DSL kernels for Blackwell against NumPy.

    blackwell.py [NAME...]          prints `NAME ok`; exit 1 when a result is wrong
    blackwell.py --bug NAME...      the same with a mistake at the line marked `here: NAME KIND`

f16, tf32, i8 and grouped are tcgen05 products (sm_100a): TMA, sums in tensor memory. attention runs on every GPU.
"""

import sys

import cutlass
import cutlass.cute as cute
import cutlass.utils.blackwell_helpers as sm100
import numpy as np
from cutlass.cute.nvgpu import cpasync, tcgen05
from cutlass.cute.runtime import from_dlpack

BUG = "--bug" in sys.argv
NO_BUG = not BUG
M, N = 128, 64  # of a tile


def device(array):
    return from_dlpack(array, assumed_align=16)


# ---- products: C(m,n) = sum over k of A(m,k) * B(n,k,group), where tiles of rows have a group each ----------------------


@cute.kernel
def product_kernel(
    mma: cute.TiledMma,
    atom_a: cute.CopyAtom,
    a: cute.Tensor,
    atom_b: cute.CopyAtom,
    b: cute.Tensor,
    c: cute.Tensor,
    groups: cute.Tensor,
    layout_a: cute.ComposedLayout,
    layout_b: cute.ComposedLayout,
    dtype: cutlass.Constexpr,
):
    tid, _, _ = cute.arch.thread_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    bx, by, _ = cute.arch.block_idx()
    smem = cutlass.utils.SmemAllocator()
    full = smem.allocate_array(cutlass.Int64, 1)
    done = smem.allocate_array(cutlass.Int64, 1)
    columns = smem.allocate_array(cutlass.Int32, 1)
    sA = smem.allocate_tensor(dtype, layout_a.outer, 1024, layout_a.inner)  # (MMA,1,k,1)
    sB = smem.allocate_tensor(dtype, layout_b.outer, 1024, layout_b.inner)  # (MMA,1,k,1)
    k_tile = cute.size(sA, mode=[0, 1]) * cute.size(sA, mode=[2])
    gA = cute.local_tile(a, (M, k_tile), (bx, None))  # (M,k_tile,k)
    gB = cute.local_tile(b, (N, k_tile), (by, None, groups[bx]))  # (N,k_tile,k)
    mine = mma.get_slice(0)
    tCgC = mine.partition_C(cute.local_tile(c, (M, N), (bx, by)))  # (MMA,1,1)
    one = cute.make_layout(1)
    tAsA, tAgA = cpasync.tma_partition(
        atom_a, 0, one, cute.group_modes(sA, 0, 3), cute.group_modes(mine.partition_A(gA), 0, 3)
    )
    tBsB, tBgB = cpasync.tma_partition(
        atom_b, 0, one, cute.group_modes(sB, 0, 3), cute.group_modes(mine.partition_B(gB), 0, 3)
    )
    tCrA, tCrB = mma.make_fragment_A(sA), mma.make_fragment_B(sB)
    if warp == 0:
        cute.arch.alloc_tmem(64, columns)
        with cute.arch.elect_one():
            cute.arch.mbarrier_init(full, 1)
            cute.arch.mbarrier_init(done, 1)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    base = cute.arch.retrieve_tmem_ptr(c.element_type, 16, columns)
    acc = cute.make_tensor(base, mma.make_fragment_C(mma.partition_shape_C((M, N))).layout)  # (MMA,1,1)
    mma.set(tcgen05.Field.ACCUMULATE, False)
    for k in cutlass.range_constexpr(cute.size(gA, mode=[2])):
        if warp == 0:
            with cute.arch.elect_one():
                cute.arch.mbarrier_arrive_and_expect_tx(full, (M + N) * k_tile * dtype.width // 8)
            cute.copy(atom_a, tAgA[None, k], tAsA[None, 0], tma_bar_ptr=full)
            cute.copy(atom_b, tBgB[None, k], tBsB[None, 0], tma_bar_ptr=full)
            cute.arch.mbarrier_wait(full, k % 2)
            for i in cutlass.range_constexpr(cute.size(tCrA, mode=[2])):
                cute.gemm(mma, acc, tCrA[None, None, i, 0], tCrB[None, None, i, 0], acc)
                mma.set(tcgen05.Field.ACCUMULATE, True)
            with cute.arch.elect_one():
                tcgen05.commit(done)
        if cutlass.const_expr(NO_BUG):
            cute.arch.mbarrier_wait(done, k % 2)
        cute.arch.sync_threads()
    load = tcgen05.make_tmem_copy(
        cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), c.element_type), acc
    )
    mine_too = load.get_slice(tid)
    tCgD = mine_too.partition_D(tCgC)
    out = cute.make_rmem_tensor(tCgD.shape, c.element_type)
    cute.copy(load, mine_too.partition_S(acc), out)  # here: f16 async_not_waited
    cute.arch.fence_view_async_tmem_load()
    cute.autovec_copy(out, tCgD)
    cute.arch.sync_threads()
    if warp == 0:
        cute.arch.relinquish_tmem_alloc_permit()
        cute.arch.dealloc_tmem(base, 64)


@cute.jit
def product_host(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, groups: cute.Tensor, k_tile: cutlass.Constexpr):
    along_k, dtype, tile = tcgen05.OperandMajorMode.K, a.element_type, (M, N, k_tile)
    mma = sm100.make_trivial_tiled_mma(
        dtype, dtype, along_k, along_k, c.element_type, tcgen05.CtaGroup.ONE, (M, N)
    )
    layout_a = sm100.make_smem_layout_a(mma, tile, dtype, 1)
    layout_b = sm100.make_smem_layout_b(mma, tile, dtype, 1)
    op = cpasync.CopyBulkTensorTileG2SOp(tcgen05.CtaGroup.ONE)
    atom_a, tensor_a = cute.nvgpu.make_tiled_tma_atom_A(
        op, a, cute.slice_(layout_a, (None, None, None, 0)), tile, mma, (1, 1, 1, 1)
    )
    atom_b, tensor_b = cute.nvgpu.make_tiled_tma_atom_B(
        op, b, cute.slice_(layout_b, (None, None, None, 0)), tile, mma, (1, 1, 1, 1)
    )
    product_kernel(mma, atom_a, tensor_a, atom_b, tensor_b, c, groups, layout_a, layout_b, dtype).launch(
        grid=(a.shape[0] // M, b.shape[0] // N, 1), block=(128, 1, 1)
    )


def product(draw, sums, k_tile, groups, kind=None):
    groups = np.array(groups, np.int32)
    a, b = draw(M * len(groups), 2 * k_tile), draw(groups.max() + 1, 2 * N, 2 * k_tile)
    c = np.zeros((len(a), 2 * N), sums)
    ta, tb = device(a), device(b.transpose(1, 2, 0))
    if kind is not None:
        ta.element_type = tb.element_type = kind
    product_host(ta, tb, device(c), device(groups), k_tile)
    a, b = a.astype(np.float64), b.astype(np.float64)
    return c, np.concatenate([a[M * i : M * (i + 1)] @ b[g].T for i, g in enumerate(groups)])


def f16(g):
    return product(lambda *s: g.standard_normal(s).astype(np.float16), np.float32, 64, [0, 0])


def tf32(g):
    draw = lambda *s: g.integers(-99, 99, s).astype(np.float32)  # exact in TF32
    return product(draw, np.float32, 32, [0], cutlass.TFloat32)


def i8(g):
    return product(lambda *s: g.integers(-128, 128, s).astype(np.int8), np.int32, 128, [0])


def grouped(g):
    return product(lambda *s: g.standard_normal(s).astype(np.float16), np.float32, 64, [2, 0, 1, 1])


# ---- attention: a warp for each query, one pass over the keys ----------------------------------------------------------


@cute.kernel
def attention_kernel(q: cute.Tensor, k: cute.Tensor, v: cute.Tensor, out: cute.Tensor, scale: cutlass.Float32):
    row, lane = cute.arch.block_idx()[0], cute.arch.thread_idx()[0]
    q0, q1 = q[row, lane], q[row, lane + 32]
    largest, total = cutlass.Float32(-1e30), cutlass.Float32(0)
    o0, o1 = cutlass.Float32(0), cutlass.Float32(0)
    last = cute.size(k, mode=[0])
    if cutlass.const_expr(BUG):
        last += 1
    for j in cutlass.range(last):
        score = q0 * k[j, lane] + q1 * k[j, lane + 32]  # here: attention out_of_bounds
        for step in cutlass.range_constexpr(5):
            score += cute.arch.shuffle_sync_bfly(score, offset=1 << step)
        higher = cutlass.max(largest, score * scale)
        p, old = cute.math.exp(score * scale - higher), cute.math.exp(largest - higher)
        total = total * old + p
        o0, o1 = o0 * old + p * v[j, lane], o1 * old + p * v[j, lane + 32]
        largest = higher
    out[row, lane], out[row, lane + 32] = o0 / total, o1 / total


@cute.jit
def attention_host(q: cute.Tensor, k: cute.Tensor, v: cute.Tensor, out: cute.Tensor, scale: cutlass.Float32):
    attention_kernel(q, k, v, out, scale).launch(grid=(q.shape[0], 1, 1), block=(32, 1, 1))


def attention(g):
    q, k, v = (g.standard_normal((n, 64), dtype=np.float32) for n in (12, 40, 40))
    out = np.zeros((12, 64), np.float32)
    attention_host(device(q), device(k), device(v), device(out), 0.125)
    e = np.exp(q @ k.T * 0.125)
    return out, e / e.sum(1, keepdims=True) @ v


def main():
    wrong = 0
    names = [a for a in sys.argv[1:] if not a.startswith("-")]
    for kernel in [f16, tf32, i8, grouped, attention]:
        if names and kernel.__name__ not in names:
            continue
        out, want = kernel(np.random.default_rng(1))
        ok = np.allclose(out, want, rtol=1e-3, atol=1e-3)
        print(kernel.__name__, "ok" if ok else f"WRONG by {np.abs(out - want).max()}")
        wrong += not ok
    return wrong > 0 and not BUG


if __name__ == "__main__":
    sys.exit(main())
