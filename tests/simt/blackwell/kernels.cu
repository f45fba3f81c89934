// One tcgen05 product of each kind: factors and scales as they lie in shared memory come from the host.
#include "common.h"

// what: 0 one product, 1 two onto each other, 2 A goes through tensor memory, 3 the sums are stored and loaded again first
template <int KIND> DI void multiply(uint32_t d, uint64_t a, uint64_t b, uint32_t i, uint32_t sa, uint32_t sb, int accumulate)
{
    if constexpr (KIND == 0) MMA("f16.collector::a::lastuse"); // a hint
    if constexpr (KIND == 1) MMA("tf32");
    if constexpr (KIND == 2) MMA("i8");
    if constexpr (KIND == 3) MMA("f8f6f4");
    if constexpr (KIND == 4) MMA_SCALED("mxf8f6f4.block_scale.collector::a::discard");
    if constexpr (KIND == 5) MMA_SCALED("mxf4.block_scale.scale_vec::2X");
    if constexpr (KIND == 6) MMA_SCALED("mxf4nvf4.block_scale.scale_vec::4X");
    if constexpr (KIND == 7) MMA_MEMORY("f16");
}

template <int KIND> DI void product(const uint8_t *a, const uint8_t *b, const uint8_t *scales, uint32_t *out, uint32_t idesc, int m, int n, int what)
{
    uint32_t bar = su(sm) + AT_BAR, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    bring(0, a, m * 32);
    bring(AT_B, b, n * 32);
    bring(AT_SA, scales, 1536);
    if (threadIdx.x == 0) { mb_init(bar, 1); mb_fence(); }
    if (warp == 0) tc_alloc(su(sm) + AT_TM, 512);
    fence_async();
    __syncthreads();
    uint32_t t = *(volatile uint32_t *)(sm + AT_TM), row = t + (warp * 32 << 16), r[8];
    if (KIND == 7) { // A of f16: its 32 bytes of each row are eight columns
        for (int k = 0; k < 8; k++) r[k] = *(const uint32_t *)(sm + (threadIdx.x / 8) * 256 + k / 4 * 128 + threadIdx.x % 8 * 16 + k % 4 * 4);
        st8(row + 400, r);
        tc_wait_st();
        tc_before();
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        tc_after();
        if (KIND >= 4 && KIND <= 6) {
            tc_cp_scales(t + 480, rows_desc(su(sm) + AT_SA));
            for (int i = 0; i < 2; i++) tc_cp_scales(t + 484 + 4 * i, rows_desc(su(sm) + AT_SB + 512 * i));
        }
        for (int i = 0; i <= (what & 1); i++)
            multiply<KIND>(t, KIND == 7 ? t + 400 : plain_desc(su(sm)), plain_desc(su(sm) + AT_B), idesc, t + 480, t + 484, i);
        tc_commit(bar);
    }
    mb_wait(bar, 0);
    tc_after();
    uint32_t line = m == 64 ? warp * 16 + lane : threadIdx.x;
    for (int c = 0; c < n; c += 8) {
        if (what & 2) { // there and back
            ld8(row + c, r);
            tc_wait_ld();
            st8(row + c, r);
            tc_wait_st();
        }
        if (m == 64) { // sixteen lanes of each quarter
            asm volatile("tcgen05.ld.sync.aligned.16x64b.x4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(row + c));
            tc_wait_ld();
            for (int i = 0; i < 4; i++) out[(warp * 16 + 8 * (lane & 1) + lane / 4) * n + c + (lane >> 1 & 1) + 2 * i] = r[i];
        } else {
            ld8(row + c, r);
            tc_wait_ld();
            for (int i = 0; i < 8; i++) out[line * n + c + i] = r[i];
        }
    }
    tc_before();
    __syncthreads();
    if (warp == 0) { tc_relinquish(); tc_dealloc(t, 512); }
}

#define PRODUCT(name, kind)                                                                                                              \
    KERNEL name(const uint8_t *a, const uint8_t *b, const uint8_t *scales, uint32_t *out, uint32_t idesc, int m, int n, int what) \
    {                                                                                                                                    \
        product<kind>(a, b, scales, out, idesc, m, n, what);                                                                             \
    }
PRODUCT(f16, 0)
PRODUCT(tf32, 1)
PRODUCT(i8, 2)
PRODUCT(f8f6f4, 3)
PRODUCT(mxf8f6f4, 4)
PRODUCT(mxf4, 5)
PRODUCT(mxf4nvf4, 6)
PRODUCT(f16_memory, 7)

// Each shape of load and store: thread and register to lane and column and back. out: what lanes hold, column by column.
template <int SHAPE> DI void shapes(uint32_t *out)
{
    uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, r[8], v[8];
    if (warp == 0) tc_alloc(su(sm) + AT_TM, 32);
    __syncthreads();
    uint32_t t = *(volatile uint32_t *)(sm + AT_TM), row = t + (warp * 32 << 16);
    for (int i = 0; i < 8; i++) r[i] = 1000000 + threadIdx.x * 100 + i;
    for (int c = 0; c < 16; c += 8) st8(row + c, r);
    tc_wait_st();
    for (int i = 0; i < 8; i++) r[i] = SHAPE * 100000 + threadIdx.x * 100 + i;
    if constexpr (SHAPE == 1) asm volatile("tcgen05.st.sync.aligned.16x64b.x2.b32 [%0], {%1, %2};" ::"r"(row), "r"(r[0]), "r"(r[1]));
    if constexpr (SHAPE == 2) asm volatile("tcgen05.st.sync.aligned.16x128b.x1.b32 [%0], {%1, %2};" ::"r"(row), "r"(r[0]), "r"(r[1]));
    if constexpr (SHAPE == 3)
        asm volatile("tcgen05.st.sync.aligned.16x256b.x1.b32 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]));
    if constexpr (SHAPE == 5) asm volatile("tcgen05.st.sync.aligned.32x32b.x2.unpack::16b.b32 [%0], {%1, %2};" ::"r"(row), "r"(r[0]), "r"(r[1]));
    if constexpr (SHAPE == 6) asm volatile("tcgen05.st.sync.aligned.16x64b.x2.unpack::16b.b32 [%0], {%1, %2};" ::"r"(row), "r"(r[0]), "r"(r[1]));
    if constexpr (SHAPE == 7) asm volatile("tcgen05.st.sync.aligned.16x128b.x1.unpack::16b.b32 [%0], {%1, %2};" ::"r"(row), "r"(r[0]), "r"(r[1]));
    if constexpr (SHAPE == 8)
        asm volatile("tcgen05.st.sync.aligned.16x256b.x1.unpack::16b.b32 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]));
    if constexpr (SHAPE == 9) asm volatile("tcgen05.st.sync.aligned.16x32bx2.x2.unpack::16b.b32 [%0], 8, {%1, %2};" ::"r"(row), "r"(r[0]), "r"(r[1]));
    tc_wait_st();
    for (int i = 0; i < 8; i++) v[i] = 0;
    if constexpr (SHAPE == 1) asm volatile("tcgen05.ld.sync.aligned.16x64b.x2.b32 {%1, %2}, [%0];" : "+r"(row), "=r"(v[0]), "=r"(v[1]));
    if constexpr (SHAPE == 2) asm volatile("tcgen05.ld.sync.aligned.16x128b.x1.b32 {%1, %2}, [%0];" : "+r"(row), "=r"(v[0]), "=r"(v[1]));
    if constexpr (SHAPE == 3)
        asm volatile("tcgen05.ld.sync.aligned.16x256b.x1.b32 {%1, %2, %3, %4}, [%0];" : "+r"(row), "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]));
    if constexpr (SHAPE == 5) asm volatile("tcgen05.ld.sync.aligned.32x32b.x2.pack::16b.b32 {%1, %2}, [%0];" : "+r"(row), "=r"(v[0]), "=r"(v[1]));
    if constexpr (SHAPE == 6) asm volatile("tcgen05.ld.sync.aligned.16x64b.x2.pack::16b.b32 {%1, %2}, [%0];" : "+r"(row), "=r"(v[0]), "=r"(v[1]));
    if constexpr (SHAPE == 7) asm volatile("tcgen05.ld.sync.aligned.16x128b.x1.pack::16b.b32 {%1, %2}, [%0];" : "+r"(row), "=r"(v[0]), "=r"(v[1]));
    if constexpr (SHAPE == 8)
        asm volatile("tcgen05.ld.sync.aligned.16x256b.x1.pack::16b.b32 {%1, %2, %3, %4}, [%0];" : "+r"(row), "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]));
    if constexpr (SHAPE == 9) asm volatile("tcgen05.ld.sync.aligned.16x32bx2.x2.pack::16b.b32 {%1, %2}, [%0], 8;" : "+r"(row), "=r"(v[0]), "=r"(v[1]));
    tc_wait_ld();
    for (int i = 0; i < 4; i++) out[threadIdx.x * 20 + 16 + i] = v[i];
    for (int c = 0; c < 16; c += 8) {
        ld8(row + c, v);
        tc_wait_ld();
        for (int i = 0; i < 8; i++) out[threadIdx.x * 20 + c + i] = v[i];
    }
    __syncthreads();
    if (warp == 0) tc_dealloc(t, 32);
    (void)lane;
}
KERNEL shape_16x64(uint32_t *out) { shapes<1>(out); }
KERNEL shape_16x128(uint32_t *out) { shapes<2>(out); }
KERNEL shape_16x256(uint32_t *out) { shapes<3>(out); }
KERNEL shape_pack(uint32_t *out) { shapes<5>(out); }
KERNEL shape_pack_16x64(uint32_t *out) { shapes<6>(out); }
KERNEL shape_pack_16x128(uint32_t *out) { shapes<7>(out); }
KERNEL shape_pack_16x256(uint32_t *out) { shapes<8>(out); }
KERNEL shape_pack_16x32x2(uint32_t *out) { shapes<9>(out); }

// Columns are cleared by one store, as an epilogue does: registers that all threads share, as many as there may be.
#define SEVENS8 "%1, %2, %1, %2, %1, %2, %1, %2, "
#define SEVENS64 SEVENS8 SEVENS8 SEVENS8 SEVENS8 SEVENS8 SEVENS8 SEVENS8 SEVENS8
KERNEL constants(uint32_t *out, int seven)
{
    uint32_t r[8];
    WARP0 tc_alloc(su(sm) + AT_TM, 128);
    __syncthreads();
    uint32_t row = *(volatile uint32_t *)(sm + AT_TM) + (threadIdx.x / 32 * 32 << 16);
    asm volatile("tcgen05.st.sync.aligned.32x32b.x128.b32 [%0], {" SEVENS64 SEVENS8 SEVENS8 SEVENS8 SEVENS8 SEVENS8 SEVENS8 SEVENS8
                 "%1, %2, %1, %2, %1, %2, %1, %2};" ::"r"(row), "r"(0), "r"(seven));
    tc_wait_st();
    for (int c = 0; c < 128; c += 8) {
        ld8(row + c, r);
        tc_wait_ld();
        for (int i = 0; i < 8; i++) out[threadIdx.x * 128 + c + i] = r[i];
    }
    __syncthreads();
    WARP0 tc_dealloc(*(volatile uint32_t *)(sm + AT_TM), 128);
}

// Blocks that have not begun are taken over. out: how often each was done, then how many blocks began.
KERNEL cancel(uint32_t *out)
{
    uint32_t bar = su(sm) + AT_BAR, answer = su(sm) + AT_SA, x = blockIdx.x, y = blockIdx.y, x2, y2, z, more;
    THREAD0 { mb_init(bar, 1); mb_fence(); atomicAdd(out + gridDim.x * gridDim.y, 1); }
    __syncthreads();
    for (int phase = 0;; phase ^= 1) {
        THREAD0 {
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 16;" ::"r"(bar) : "memory");
            asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];" ::"r"(answer), "r"(bar) : "memory");
            atomicAdd(out + y * gridDim.x + x, 1);
        }
        mb_wait(bar, phase);
        asm volatile("{\n.reg .pred p;\n.reg .b128 q;\nld.shared.b128 q, [%6];\n"
                     "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, q;\nselp.u32 %5, 1, 0, p;\n"
                     "@p clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%0, %1, %4, _}, q;\n"
                     "@p clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %2, q;\n"
                     "@p clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %3, q;\n}"
                     : "+r"(x), "+r"(y), "=r"(x2), "=r"(y2), "=r"(z), "=r"(more)
                     : "r"(answer)
                     : "memory");
        fence_async();
        __syncthreads();
        if (!more) break;
        if (x2 != x || y2 != y || z) out[0] = 99;
    }
}

// A tile of four-bit elements by a tensor map: 64 of them in each of four rows, from (64, 1) on.
struct alignas(64) Map { uint8_t bytes[128]; };
KERNEL nibbles(const __grid_constant__ Map map, uint32_t *out)
{
    uint32_t bar = su(sm) + AT_BAR;
    THREAD0 { mb_init(bar, 1); mb_fence(); }
    __syncthreads();
    THREAD0 {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(bar) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(su(sm)), "l"(&map), "r"(64), "r"(1), "r"(bar) : "memory");
    }
    mb_wait(bar, 0);
    if (threadIdx.x < 32) out[threadIdx.x] = ((const uint32_t *)sm)[threadIdx.x];
}

// Two rows of 128 elements that are padded to bytes, from (128, 1) on; the mbarrier counts `bytes`, those that are read.
KERNEL padded(const __grid_constant__ Map map, uint32_t *out, int bytes)
{
    uint32_t bar = su(sm) + AT_BAR;
    THREAD0 { mb_init(bar, 1); mb_fence(); }
    __syncthreads();
    THREAD0 {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(su(sm)), "l"(&map), "r"(128), "r"(1), "r"(bar) : "memory");
    }
    mb_wait(bar, 0);
    if (threadIdx.x < 64) out[threadIdx.x] = ((const uint32_t *)sm)[threadIdx.x];
}

// Two blocks copy a tile each, as a pair: the mbarrier told is the even block's, or, with `own`, each block's own.
KERNEL pair_copy(const __grid_constant__ Map map, uint32_t *out, int own)
{
    uint32_t bar = su(sm) + AT_BAR;
    THREAD0 { mb_init(bar, 1); mb_fence(); }
    __syncthreads();
    cluster_sync();
    THREAD0 {
        if (own || !(rank() & 1)) asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(own ? 128 : 256) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(su(sm)), "l"(&map), "r"(64), "r"(rank()), "r"(own ? bar : in_even(bar)) : "memory");
    }
    if (own || !(rank() & 1)) mb_wait(bar, 0);
    cluster_sync();
    if (threadIdx.x < 32) out[rank() * 32 + threadIdx.x] = ((const uint32_t *)sm)[threadIdx.x];
}

// 32 bytes of each lane go to the next.
KERNEL shift(uint32_t *out)
{
    uint32_t bar = su(sm) + AT_BAR, r[8];
    THREAD0 { mb_init(bar, 1); mb_fence(); }
    WARP0 tc_alloc(su(sm) + AT_TM, 32);
    __syncthreads();
    uint32_t t = *(volatile uint32_t *)(sm + AT_TM), row = t + (threadIdx.x / 32 * 32 << 16);
    for (int i = 0; i < 8; i++) r[i] = threadIdx.x * 8 + i;
    st8(row, r);
    tc_wait_st();
    tc_before();
    __syncthreads();
    tc_after();
    THREAD0 {
        asm volatile("tcgen05.shift.cta_group::1.down [%0];" ::"r"(t) : "memory");
        tc_commit(bar);
    }
    mb_wait(bar, 0);
    ld8(row, r);
    tc_wait_ld();
    for (int i = 0; i < 8; i++) out[threadIdx.x * 8 + i] = r[i];
    __syncthreads();
    WARP0 tc_dealloc(t, 32);
}
