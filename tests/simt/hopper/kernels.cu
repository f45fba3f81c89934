// Kernels that use what sm_90a adds, each a few lines around one thing. All take
// the same parameters: three tensor maps, two inputs, one output, three sizes.
// cases.def says how they are launched, on simt and on a GPU.
#include "common.h"

// ---- tensor maps: the tile as it lies in shared memory; N is its size in bytes ----
KERNEL tma_raw1(PARAMS)
{
    uint32_t bar = bar_at(N);
    if (threadIdx.x == 0) { mb_expect(bar, N); tma1(su(sm), &ma, bar, (int)blockIdx.x * K + M); }
    mb_wait(bar, 0);
    dump(c, (size_t)blockIdx.x * N, N);
}
KERNEL tma_raw2(PARAMS) // a narrow row leaves a gap up to the swizzle's width
{
    uint32_t bar = bar_at(2 * N);
    for (int i = threadIdx.x; i < N / 2; i += blockDim.x) ((uint32_t *)sm)[i] = 0;
    fence_async();
    __syncthreads();
    if (threadIdx.x == 0) { mb_expect(bar, N); tma2(su(sm), &ma, bar, (int)blockIdx.x * K + M, (int)blockIdx.y * 8 - 3 * (M != 0)); }
    mb_wait(bar, 0);
    dump(c, (size_t)(blockIdx.y * gridDim.x + blockIdx.x) * N, N);
}
KERNEL tma_raw3(PARAMS)
{
    uint32_t bar = bar_at(N);
    if (threadIdx.x == 0) { mb_expect(bar, N); tma3(su(sm), &ma, bar, (int)blockIdx.x * K + M, -1, (int)blockIdx.y); }
    mb_wait(bar, 0);
    dump(c, (size_t)(blockIdx.y * gridDim.x + blockIdx.x) * N, N);
}
KERNEL tma_raw4(PARAMS)
{
    uint32_t bar = bar_at(N);
    if (threadIdx.x == 0) { mb_expect(bar, N); tma4(su(sm), &ma, bar, (int)blockIdx.x * K + M, 1, -1, (int)blockIdx.y); }
    mb_wait(bar, 0);
    dump(c, (size_t)(blockIdx.y * gridDim.x + blockIdx.x) * N, N);
}
KERNEL tma_raw5(PARAMS)
{
    uint32_t bar = bar_at(N);
    if (threadIdx.x == 0) { mb_expect(bar, N); tma5(su(sm), &ma, bar, (int)blockIdx.x * K + M, 1, -1, 0, (int)blockIdx.y); }
    mb_wait(bar, 0);
    dump(c, (size_t)(blockIdx.y * gridDim.x + blockIdx.x) * N, N);
}
KERNEL tma_im2col(PARAMS)
{
    uint32_t bar = bar_at(N);
    if (threadIdx.x == 0) { mb_expect(bar, N); tma_im2col4(su(sm), &ma, bar, 0, M, M, 0, (uint16_t)(blockIdx.x % 3), (uint16_t)(blockIdx.x / 3)); }
    mb_wait(bar, 0);
    dump(c, (size_t)blockIdx.x * N, N);
}
// one tile from, or to, coordinates M and K
KERNEL tma_at(PARAMS)
{
    uint32_t bar = bar_at(N);
    if (threadIdx.x == 0) { mb_expect(bar, N); tma2(su(sm), &ma, bar, M, K); }
    mb_wait(bar, 0);
    dump(c, 0, N);
}
KERNEL tma_to(PARAMS)
{
    for (int i = threadIdx.x; i < N / 4; i += blockDim.x) ((uint32_t *)sm)[i] = ((const uint32_t *)a)[i];
    fence_async();
    __syncthreads();
    if (threadIdx.x == 0) { tma_st2(&mc, su(sm), M, K); commit(); wait_read<0>(); }
}
// f32 32 x 32 tiles through a 128-byte swizzle: columns are read without conflicts
KERNEL tma_transpose(PARAMS)
{
    uint32_t bar = bar_at(8192);
    float *out = (float *)(sm + 4096);
    if (threadIdx.x == 0) { mb_expect(bar, 4096); tma2(su(sm), &ma, bar, (int)blockIdx.x * 32, (int)blockIdx.y * 32); }
    mb_wait(bar, 0);
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) {
        int y = i % 32, x = i / 32;
        out[x * 32 + y] = *(const float *)(sm + (y * 128 + (((x / 4) ^ (y & 7)) * 16) + (x % 4) * 4));
    }
    fence_async();
    __syncthreads();
    if (threadIdx.x == 0) { tma_st2(&mc, su(out), (int)blockIdx.y * 32, (int)blockIdx.x * 32); commit(); wait_all<0>(); }
}
// the same through a tile of any swizzle, 2^K chunks of 16 bytes wide: N columns by 32 rows
KERNEL tma_transpose_any(PARAMS)
{
    uint32_t bar = bar_at(12288);
    float *out = (float *)(sm + 8192);
    int bytes = N * 32 * 4;
    if (threadIdx.x == 0) { mb_expect(bar, bytes); tma2(su(sm), &ma, bar, (int)blockIdx.x * N, (int)blockIdx.y * 32); }
    mb_wait(bar, 0);
    for (int i = threadIdx.x; i < 32 * N; i += blockDim.x) {
        int y = i % 32, x = i / 32, at = (y * N + x) * 4;
        at ^= (at >> 7 & ((1 << K) - 1)) << 4;
        out[x * 32 + y] = *(const float *)(sm + at);
    }
    fence_async();
    __syncthreads();
    if (threadIdx.x == 0) { tma_st2(&mc, su(out), (int)blockIdx.y * 32, (int)blockIdx.x * N); commit(); wait_all<0>(); }
}
// in by one swizzle, out by the same: what a swizzle does must cancel
KERNEL tma_round(PARAMS)
{
    uint32_t bar = bar_at(N);
    if (threadIdx.x == 0) {
        mb_expect(bar, N);
        tma2(su(sm), &ma, bar, (int)blockIdx.x * K, (int)blockIdx.y * 16);
        mb_wait(bar, 0);
        tma_st2(&mc, su(sm), (int)blockIdx.x * K, (int)blockIdx.y * 16 + M);
        commit();
        wait_read<0>();
    }
}
#define REDUCE(name, op)                                                                           \
    KERNEL name(PARAMS)                                                                            \
    {                                                                                              \
        uint32_t bar = bar_at(N);                                                                  \
        if (threadIdx.x == 0) {                                                                    \
            mb_expect(bar, N);                                                                     \
            tma2(su(sm), &ma, bar, (int)blockIdx.x * K, 0);                                        \
            mb_wait(bar, 0);                                                                       \
            for (int i = 0; i < 2; i++)                                                            \
                asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta." op               \
                             ".bulk_group [%0, {%2, %3}], [%1];" ::"l"(&mc),                       \
                             "r"(su(sm)), "r"((int)blockIdx.x * K), "r"(4 * i)                     \
                             : "memory");                                                          \
            commit();                                                                              \
            wait_all<0>();                                                                         \
        }                                                                                          \
    }
REDUCE(tma_red_add, "add")
REDUCE(tma_red_min, "min")
REDUCE(tma_red_max, "max")
REDUCE(tma_red_and, "and")
REDUCE(tma_red_or, "or")
REDUCE(tma_red_xor, "xor")

// ---- bulk copies of plain bytes ----
KERNEL bulk_copy(PARAMS)
{
    uint32_t bar = bar_at(N);
    size_t at = (size_t)blockIdx.x * N;
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(a + at), "r"(N) : "memory");
        mb_expect(bar, N);
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(su(sm)), "l"(a + at), "r"(N), "r"(bar) : "memory");
        mb_wait(bar, 0);
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(c + at), "r"(su(sm)), "r"(N) : "memory");
        commit();
        wait_all<0>();
    }
}
#define BULK_REDUCE(name, op)                                                                      \
    KERNEL name(PARAMS)                                                                            \
    {                                                                                              \
        for (int i = threadIdx.x; i < N / 4; i += blockDim.x)                                      \
            ((uint32_t *)sm)[i] = ((const uint32_t *)a)[blockIdx.x * (N / 4) + i];                 \
        fence_async();                                                                             \
        __syncthreads();                                                                           \
        if (threadIdx.x == 0) {                                                                    \
            asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group." op                  \
                         " [%0], [%1], %2;" ::"l"(c),                                              \
                         "r"(su(sm)), "r"(N)                                                       \
                         : "memory");                                                              \
            commit();                                                                              \
            wait_read<0>();                                                                        \
        }                                                                                          \
    }
BULK_REDUCE(bulk_add_u32, "add.u32")
BULK_REDUCE(bulk_add_f32, "add.f32")
BULK_REDUCE(bulk_add_f16, "add.noftz.f16")
BULK_REDUCE(bulk_min_s32, "min.s32")
BULK_REDUCE(bulk_max_u64, "max.u64")
BULK_REDUCE(bulk_xor_b32, "xor.b32")
// a ring of four stages, filled by one warp, emptied by the others
KERNEL bulk_ring(PARAMS)
{
    const int stage = 2048, rounds = K;
    uint32_t full = su(sm) + 4 * stage, empty = full + 32;
    if (threadIdx.x == 0) {
        for (int i = 0; i < 4; i++) { mb_init(full + 8 * i, 1); mb_init(empty + 8 * i, 3); }
        mb_fence();
    }
    __syncthreads();
    size_t base = (size_t)blockIdx.x * rounds * stage;
    if (threadIdx.x < 32) {
        if (elect())
            for (int r = 0; r < rounds; r++) {
                int s = r % 4;
                mb_wait(empty + 8 * s, (r / 4 & 1) ^ 1);
                mb_expect(full + 8 * s, stage);
                asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(su(sm) + s * stage), "l"(a + base + r * stage), "r"(stage), "r"(full + 8 * s) : "memory");
            }
    } else {
        int t = threadIdx.x - 32;
        for (int r = 0; r < rounds; r++) {
            int s = r % 4;
            mb_wait(full + 8 * s, r / 4 & 1);
            for (int i = t; i < stage / 4; i += 96)
                ((float *)(c + base + r * stage))[i] = 2.0f * ((const float *)(sm + s * stage))[i];
            fence_async();
            __syncwarp();
            if (t % 32 == 0) mb_arrive(empty + 8 * s);
        }
    }
}

// ---- clusters ----
KERNEL cluster_read(PARAMS)
{
    float *s = (float *)sm;
    uint32_t r = rank(), n = ranks();
    s[threadIdx.x] = ((const float *)a)[blockIdx.x * blockDim.x + threadIdx.x];
    cl_sync();
    float sum = 0;
    for (uint32_t q = 0; q < n; q++) {
        float v;
        asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(mapa(su(&s[threadIdx.x]), (r + q) % n)) : "memory");
        sum += v;
    }
    ((float *)c)[blockIdx.x * blockDim.x + threadIdx.x] = sum;
    cl_sync();
}
KERNEL cluster_write(PARAMS)
{
    float *s = (float *)sm;
    uint32_t r = rank(), n = ranks();
    cl_sync();
    float v = ((const float *)a)[blockIdx.x * blockDim.x + threadIdx.x];
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(mapa(su(&s[threadIdx.x]), (r + 1) % n)), "f"(v) : "memory");
    cl_sync();
    ((float *)c)[blockIdx.x * blockDim.x + threadIdx.x] = s[threadIdx.x];
}
KERNEL cluster_atomics(PARAMS)
{
    uint32_t *s = (uint32_t *)sm;
    if (threadIdx.x < 4) s[threadIdx.x] = 0;
    cl_sync();
    uint32_t v = ((const uint32_t *)a)[blockIdx.x * blockDim.x + threadIdx.x] & 0xffff;
    asm volatile("red.relaxed.cluster.shared::cluster.add.u32 [%0], %1;" ::"r"(mapa(su(s), 0)), "r"(v) : "memory");
    uint32_t old;
    asm volatile("atom.relaxed.cluster.shared::cluster.max.u32 %0, [%1], %2;" : "=r"(old) : "r"(mapa(su(s + 1), ranks() - 1)), "r"(v) : "memory");
    cl_sync();
    if (threadIdx.x < 2) ((uint32_t *)c)[blockIdx.x * 2 + threadIdx.x] = s[threadIdx.x];
}
KERNEL cluster_generic(PARAMS)
{
    cg::cluster_group g = cg::this_cluster();
    float *s = (float *)sm;
    s[threadIdx.x] = ((const float *)a)[blockIdx.x * blockDim.x + threadIdx.x];
    g.sync();
    float *other = g.map_shared_rank(s, (g.block_rank() + 1) % g.num_blocks());
    float v = other[threadIdx.x ^ 1];
    g.sync();
    ((float *)c)[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
// every warp sends a pair to every block of the cluster; all fold them
KERNEL cluster_async(PARAMS)
{
    uint32_t n = ranks(), r = rank(), warps = blockDim.x / 32, w = threadIdx.x / 32, lane = threadIdx.x % 32;
    uint32_t bar = su(sm) + 4096;
    if (threadIdx.x == 0) { mb_init(bar, 1); mb_fence(); mb_expect(bar, (int)(n * warps * 8)); }
    cl_arrive();
    float v = ((const float *)a)[blockIdx.x * blockDim.x + threadIdx.x], mx = v;
    for (int o = 16; o; o >>= 1) { v += __shfl_xor_sync(~0u, v, o); mx = fmaxf(mx, __shfl_xor_sync(~0u, mx, o)); }
    cl_wait();
    if (lane < n) {
        uint64_t pair;
        asm("mov.b64 %0, {%1, %2};" : "=l"(pair) : "f"(v), "f"(mx));
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(mapa(su(sm) + (r * warps + w) * 8, lane)), "l"(pair), "r"(mapa(bar, lane)) : "memory");
    }
    mb_wait(bar, 0);
    float sum = 0, top = -1e30f;
    for (uint32_t i = 0; i < n * warps; i++) { float2 p = ((const float2 *)sm)[i]; sum += p.x; top = fmaxf(top, p.y); }
    if (threadIdx.x == 0) ((float2 *)c)[blockIdx.x] = make_float2(sum, top);
    cl_sync();
}
KERNEL cluster_red_async(PARAMS)
{
    uint32_t n = ranks(), bar = su(sm) + 4096;
    if (threadIdx.x < 64) ((uint32_t *)sm)[threadIdx.x] = 0;
    if (threadIdx.x == 0) { mb_init(bar, 1); mb_fence(); mb_expect(bar, (int)(n * blockDim.x * 4)); }
    cl_sync();
    uint32_t v = ((const uint32_t *)a)[blockIdx.x * blockDim.x + threadIdx.x] & 0xffff;
    for (uint32_t q = 0; q < n; q++)
        asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];" ::"r"(mapa(su(sm) + 4 * (threadIdx.x % 64), q)), "r"(v), "r"(mapa(bar, q)) : "memory");
    mb_wait(bar, 0);
    if (threadIdx.x < 64) ((uint32_t *)c)[blockIdx.x * 64 + threadIdx.x] = ((uint32_t *)sm)[threadIdx.x];
    cl_sync();
}
KERNEL cluster_bulk(PARAMS)
{
    uint32_t n = ranks(), r = rank(), bar = su(sm) + 4096;
    if (threadIdx.x == 0) { mb_init(bar, 1); mb_fence(); mb_expect(bar, 1024); }
    ((uint32_t *)sm)[threadIdx.x] = ((const uint32_t *)a)[blockIdx.x * 256 + threadIdx.x];
    fence_async();
    cl_sync();
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(mapa(su(sm) + 1024, (r + 1) % n)), "r"(su(sm)), "r"(1024), "r"(mapa(bar, (r + 1) % n)) : "memory");
    mb_wait(bar, 0);
    ((uint32_t *)c)[blockIdx.x * 256 + threadIdx.x] = ((uint32_t *)(sm + 1024))[threadIdx.x];
    cl_sync();
}
KERNEL multicast(PARAMS)
{
    uint32_t n = ranks(), r = rank(), bar = su(sm) + N * 4;
    if (threadIdx.x == 0) { mb_init(bar, 1); mb_fence(); mb_expect(bar, N * (int)n); }
    cl_sync();
    if (threadIdx.x == 0) tma2_mc(su(sm) + r * N, &ma, bar, (int)(blockIdx.x / n) * K, (int)r * 8, (uint16_t)((1 << n) - 1));
    mb_wait(bar, 0);
    dump(c, (size_t)blockIdx.x * N * n, N * (int)n);
    cl_sync();
}
KERNEL cluster_ids(PARAMS)
{
    if (threadIdx.x) return;
    uint32_t v[10];
    asm volatile("mov.u32 %0, %%cluster_ctaid.x;" : "=r"(v[0]));
    asm volatile("mov.u32 %0, %%cluster_ctaid.y;" : "=r"(v[1]));
    asm volatile("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(v[2]));
    asm volatile("mov.u32 %0, %%cluster_nctaid.y;" : "=r"(v[3]));
    asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(v[4]));
    asm volatile("mov.u32 %0, %%clusterid.y;" : "=r"(v[5]));
    asm volatile("mov.u32 %0, %%nclusterid.x;" : "=r"(v[6]));
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(v[7]));
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(v[8]));
    uint32_t p = mapa(su(sm), v[8] - 1);
    asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(v[9]) : "r"(p));
    for (int i = 0; i < 10; i++) ((uint32_t *)c)[(blockIdx.y * gridDim.x + blockIdx.x) * 10 + i] = v[i];
}

// ---- wgmma: 64 x N by four steps of K; A is 64 rows, B N rows, 128 bytes of K each ----
#define WG_SS(name, FN, N_, T, R, ES, SW, MNA, MNB, PAIRS)                                         \
    KERNEL name(PARAMS)                                                                            \
    {                                                                                              \
        uint8_t *pa = sm, *pb = sm + 8192;                                                         \
        fill<SW, ES, MNA>(pa, a, 64);                                                              \
        fill<SW, ES, MNB>(pb, b, N_);                                                              \
        fence_async();                                                                             \
        __syncthreads();                                                                           \
        T d[R];                                                                                    \
        for (int i = 0; i < R; i++) d[i] = 0;                                                      \
        wg_fence();                                                                                \
        _Pragma("unroll") for (int s = 0; s < 4; s++)                                              \
            FN(d, MNA ? Layout<SW>::mn_desc(su(pa), s) : Layout<SW>::k_desc(su(pa), 64, s),        \
               MNB ? Layout<SW>::mn_desc(su(pb), s) : Layout<SW>::k_desc(su(pb), N_, s), s);       \
        wg_commit();                                                                               \
        wg_wait<0>();                                                                              \
        put_acc(c, d, N_, PAIRS);                                                                  \
    }
#define WG_SWIZZLES(pre, FN, N_, T, R, ES, PAIRS)                                                  \
    WG_SS(pre##_sw0, FN, N_, T, R, ES, 0, false, false, PAIRS)                                     \
    WG_SS(pre##_sw128, FN, N_, T, R, ES, 1, false, false, PAIRS)                                   \
    WG_SS(pre##_sw64, FN, N_, T, R, ES, 2, false, false, PAIRS)                                    \
    WG_SS(pre##_sw32, FN, N_, T, R, ES, 3, false, false, PAIRS)
WG_SWIZZLES(wg_f16, wg_n64_f32_f16_f16_ss_0_0, 64, float, 32, 2, false)
WG_SS(wg_bf16, wg_n64_f32_bf16_bf16_ss_0_0, 64, float, 32, 2, 1, false, false, false)
WG_SWIZZLES(wg_tf32, wg_n64_f32_tf32_tf32_ss, 64, float, 32, 4, false)
WG_SWIZZLES(wg_e4m3, wg_n64_f32_e4m3_e4m3_ss, 64, float, 32, 1, false)
WG_SS(wg_e5m2, wg_n64_f32_e5m2_e5m2_ss, 64, float, 32, 1, 1, false, false, false)
WG_SS(wg_mixed8, wg_n64_f32_e4m3_e5m2_ss, 64, float, 32, 1, 1, false, false, false)
WG_SS(wg_e4m3_h, wg_n64_f16_e4m3_e4m3_ss, 64, uint32_t, 16, 1, 1, false, false, true)
WG_SWIZZLES(wg_s8, wg_n64_s32_s8_s8_ss, 64, uint32_t, 32, 1, false)
WG_SS(wg_u8, wg_n64_s32_u8_u8_ss, 64, uint32_t, 32, 1, 1, false, false, false)
WG_SS(wg_s8u8, wg_n64_s32_s8_u8_ss, 64, uint32_t, 32, 1, 1, false, false, false)
WG_SS(wg_f16_h, wg_n64_f16_f16_f16_ss_0_0, 64, uint32_t, 16, 2, 1, false, false, true)
WG_SS(wg_n8, wg_n8_f32_f16_f16_ss_0_0, 8, float, 4, 2, 1, false, false, false)
WG_SS(wg_n16_neg, wg_n16_f32_f16_f16_ss_0_0, 16, float, 8, 2, 1, false, false, false)
WG_SS(wg_n256, wg_n256_f32_f16_f16_ss_0_0, 256, float, 128, 2, 1, false, false, false)
// both majors, every swizzle
WG_SS(wg_tn_sw0, wg_n64_f32_f16_f16_ss_0_1, 64, float, 32, 2, 0, false, true, false)
WG_SS(wg_nt_sw0, wg_n64_f32_f16_f16_ss_1_0, 64, float, 32, 2, 0, true, false, false)
WG_SS(wg_tt_sw128, wg_n64_f32_f16_f16_ss_1_1, 64, float, 32, 2, 1, true, true, false)
WG_SS(wg_tt_sw64, wg_n64_f32_f16_f16_ss_1_1, 64, float, 32, 2, 2, true, true, false)
WG_SS(wg_tt_sw32, wg_n64_f32_f16_f16_ss_1_1, 64, float, 32, 2, 3, true, true, false)
WG_SS(wg_n256_mn, wg_n256_f32_f16_f16_ss_0_1, 256, float, 128, 2, 1, false, true, false)
WG_SS(wg_bf16_mn, wg_n64_f32_bf16_bf16_ss_1_1, 64, float, 32, 2, 1, true, true, false)
// A in registers
#define WG_RS(name, FN, N_, T, R, ES, SW, MNB, PAIRS)                                              \
    KERNEL name(PARAMS)                                                                            \
    {                                                                                              \
        fill<SW, ES, MNB>(sm, b, N_);                                                              \
        fence_async();                                                                             \
        __syncthreads();                                                                           \
        int w = threadIdx.x / 32, l = threadIdx.x % 32;                                            \
        uint32_t r[4][4];                                                                          \
        for (int s = 0; s < 4; s++)                                                                \
            for (int q = 0; q < 4; q++)                                                            \
                r[s][q] = *(const uint32_t *)(a + (size_t)(16 * w + l / 4 + 8 * (q & 1)) * 128 + s * 32 + (l & 3) * 4 + 16 * (q >> 1)); \
        T d[R];                                                                                    \
        for (int i = 0; i < R; i++) d[i] = 0;                                                      \
        wg_fence();                                                                                \
        _Pragma("unroll") for (int s = 0; s < 4; s++)                                              \
            FN(d, r[s], MNB ? Layout<SW>::mn_desc(su(sm), s) : Layout<SW>::k_desc(su(sm), N_, s), s); \
        wg_commit();                                                                               \
        wg_wait<0>();                                                                              \
        put_acc(c, d, N_, PAIRS);                                                                  \
    }
WG_RS(wg_rs_f16, wg_n64_f32_f16_f16_rs_0, 64, float, 32, 2, 1, false, false)
WG_RS(wg_rs_f16_mn, wg_n64_f32_f16_f16_rs_1, 64, float, 32, 2, 1, true, false)
WG_RS(wg_rs_bf16, wg_n64_f32_bf16_bf16_rs_0, 64, float, 32, 2, 1, false, false)
WG_RS(wg_rs_tf32, wg_n64_f32_tf32_tf32_rs, 64, float, 32, 4, 1, false, false)
WG_RS(wg_rs_e4m3, wg_n64_f32_e4m3_e4m3_rs, 64, float, 32, 1, 1, false, false)
WG_RS(wg_rs_e5m2, wg_n64_f32_e5m2_e5m2_rs, 64, float, 32, 1, 1, false, false)
WG_RS(wg_rs_s8, wg_n64_s32_s8_s8_rs, 64, uint32_t, 32, 1, 1, false, false)
WG_RS(wg_rs_f16_h, wg_n64_f16_f16_f16_rs_0, 64, uint32_t, 16, 2, 1, false, true)

// ---- GEMMs of every type: 64 x 64 tiles of C, a warpgroup each, K by 128 bytes through TMA ----
// Tiles of C lie one after the other. K is 128-byte chunks of a row; A from shared memory or registers.
#define WG_GEMM(name, FN, T, R, ES, PAIRS, RS)                                                     \
    KERNEL name(PARAMS)                                                                            \
    {                                                                                              \
        uint32_t bar = su(sm) + 32768;                                                             \
        int w = threadIdx.x / 32, l = threadIdx.x % 32;                                            \
        if (threadIdx.x == 0) { mb_init(bar, 1); mb_init(bar + 8, 1); mb_fence(); }                \
        __syncthreads();                                                                           \
        T d[R];                                                                                    \
        for (int i = 0; i < R; i++) d[i] = 0;                                                      \
        auto fetch = [&](int k) {                                                                  \
            uint32_t at = su(sm) + (k & 1) * 16384, full = bar + (k & 1) * 8;                      \
            if (threadIdx.x) return;                                                               \
            mb_expect(full, RS ? 8192 : 16384);                                                    \
            if (!RS) tma2(at, &ma, full, k * (128 / ES), (int)blockIdx.y * 64);                    \
            tma2(at + 8192, &mb, full, k * (128 / ES), (int)blockIdx.x * 64);                      \
        };                                                                                         \
        fetch(0);                                                                                  \
        for (int k = 0; k < K; k++) {                                                              \
            uint32_t pa = su(sm) + (k & 1) * 16384, pb = pa + 8192, r[4][4];                       \
            if (k + 1 < K) fetch(k + 1);                                                           \
            for (int s = 0; RS && s < 4; s++)                                                      \
                for (int q = 0; q < 4; q++)                                                        \
                    r[s][q] = *(const uint32_t *)(a + ((size_t)blockIdx.y * 64 + 16 * w + l / 4 + 8 * (q & 1)) * K * 128 + k * 128 + s * 32 + (l & 3) * 4 + 16 * (q >> 1)); \
            mb_wait(bar + (k & 1) * 8, k >> 1 & 1);                                                \
            wg_fence();                                                                            \
            _Pragma("unroll") for (int s = 0; s < 4; s++)                                          \
                FN(d, WG_A_##RS, Layout<1>::k_desc(pb, 64, s), 1);                                 \
            wg_commit();                                                                           \
            wg_wait<0>();                                                                          \
            __syncthreads();                                                                       \
        }                                                                                          \
        put_acc(c + (size_t)(blockIdx.y * gridDim.x + blockIdx.x) * 4096 * (PAIRS ? 2 : 4), d, 64, PAIRS); \
    }
#define WG_A_0 Layout<1>::k_desc(pa, 64, s)
#define WG_A_1 r[s]
WG_GEMM(gemm_f16, wg_n64_f32_f16_f16_ss_0_0, float, 32, 2, false, 0)
WG_GEMM(gemm_bf16, wg_n64_f32_bf16_bf16_ss_0_0, float, 32, 2, false, 0)
WG_GEMM(gemm_tf32, wg_n64_f32_tf32_tf32_ss, float, 32, 4, false, 0)
WG_GEMM(gemm_e4m3, wg_n64_f32_e4m3_e4m3_ss, float, 32, 1, false, 0)
WG_GEMM(gemm_e5m2, wg_n64_f32_e5m2_e5m2_ss, float, 32, 1, false, 0)
WG_GEMM(gemm_s8, wg_n64_s32_s8_s8_ss, uint32_t, 32, 1, false, 0)
WG_GEMM(gemm_f16_half, wg_n64_f16_f16_f16_ss_0_0, uint32_t, 16, 2, true, 0)
WG_GEMM(gemm_rs_f16, wg_n64_f32_f16_f16_rs_0, float, 32, 2, false, 1)
WG_GEMM(gemm_rs_bf16, wg_n64_f32_bf16_bf16_rs_0, float, 32, 2, false, 1)
WG_GEMM(gemm_rs_tf32, wg_n64_f32_tf32_tf32_rs, float, 32, 4, false, 1)
WG_GEMM(gemm_rs_e4m3, wg_n64_f32_e4m3_e4m3_rs, float, 32, 1, false, 1)
WG_GEMM(gemm_rs_e5m2, wg_n64_f32_e5m2_e5m2_rs, float, 32, 1, false, 1)
WG_GEMM(gemm_rs_s8, wg_n64_s32_s8_s8_rs, uint32_t, 32, 1, false, 1)

// ---- a warp-specialised pipeline: C = A (M x K) by B (N x K), f16, 128 x 128 x 64 tiles ----
// Warpgroup 0 copies, 1 and 2 multiply; the grid is persistent; with a cluster of two along M
// each block brings half of B's tile to both.
template <bool CLUSTER> DI void pipeline(const Map &ma, const Map &mb, const Map &mc, uint8_t *c, int M, int N, int K)
{
    const int S = 3, TILE = 128 * 64 * 2;
    uint8_t *base = sm;
    uint32_t sA = su(base), sB = sA + S * TILE, sC = sB + S * TILE, full = sC + 128 * 128 * 2, empty = full + 8 * S;
    uint32_t r = CLUSTER ? rank() : 0, n = CLUSTER ? 2 : 1;
    int wg = threadIdx.x / 128;
    if (threadIdx.x == 0) {
        for (int i = 0; i < S; i++) { mb_init(full + 8 * i, 1); mb_init(empty + 8 * i, 2 * (int)n); }
        mb_fence();
    }
    if (CLUSTER) cl_sync(); else __syncthreads();
    asm volatile("griddepcontrol.wait;" ::: "memory");
    int tm = M / 128 / (int)n, tn = N / 128, kb = K / 64, clusters = (int)(gridDim.x / n), me = (int)(blockIdx.x / n);
    if (wg == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x < 32 && elect()) {
            int st = 0, ph = 1;
            for (int t = me; t < tm * tn; t += clusters)
                for (int k = 0; k < kb; k++) {
                    int m0 = ((t % tm) * (int)n + (int)r) * 128, n0 = t / tm * 128;
                    mb_wait(empty + 8 * st, ph);
                    mb_expect(full + 8 * st, 2 * TILE);
                    tma2(sA + st * TILE, &ma, full + 8 * st, k * 64, m0);
                    if (CLUSTER) tma2_mc(sB + st * TILE + r * (TILE / 2), &mb, full + 8 * st, k * 64, n0 + (int)r * 64, 3);
                    else { tma2(sB + st * TILE, &mb, full + 8 * st, k * 64, n0); tma2(sB + st * TILE + TILE / 2, &mb, full + 8 * st, k * 64, n0 + 64); }
                    if (++st == S) { st = 0; ph ^= 1; }
                }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        int g = wg - 1, t128 = threadIdx.x % 128, w = t128 / 32, l = t128 % 32, st = 0, ph = 0;
        for (int t = me; t < tm * tn; t += clusters) {
            float d[64];
            for (int i = 0; i < 64; i++) d[i] = 0;
            for (int k = 0; k < kb; k++) {
                mb_wait(full + 8 * st, ph);
                wg_fence();
#pragma unroll
                for (int s = 0; s < 4; s++)
                    wg_n128_f32_f16_f16_ss_0_0(d, Layout<1>::k_desc(sA + st * TILE + g * 8192, 64, s), Layout<1>::k_desc(sB + st * TILE, 128, s), 1);
                wg_commit();
                wg_wait<0>();
                if (CLUSTER) { if (t128 < 2) mb_arrive_at(empty + 8 * st, t128); }
                else if (t128 == 0) mb_arrive(empty + 8 * st);
                if (++st == S) { st = 0; ph ^= 1; }
            }
            // f16 through stmatrix and a TMA store
            uint32_t out = sC + g * (64 * 128 * 2);
            if (t128 == 0) wait_read<0>();
            asm volatile("bar.sync %0, 128;" ::"r"(1 + g) : "memory");
            for (int j = 0; j < 16; j++) {
                uint32_t q[2];
                for (int h = 0; h < 2; h++) { __half2 v = __floats2half2_rn(d[4 * j + 2 * h], d[4 * j + 2 * h + 1]); q[h] = *(uint32_t *)&v; }
                uint32_t p = out + (16 * w + l % 16) * 256 + j * 16;
                asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(p), "r"(q[0]), "r"(q[1]) : "memory");
            }
            fence_async();
            asm volatile("bar.sync %0, 128;" ::"r"(1 + g) : "memory");
            if (t128 == 0) {
                int m0 = ((t % tm) * (int)n + (int)r) * 128 + g * 64, n0 = t / tm * 128;
                tma_st2(&mc, out, n0, m0);
                commit();
            }
        }
        if (t128 == 0) wait_all<0>();
    }
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    if (CLUSTER) cl_sync();
}
KERNEL gemm_ws(PARAMS) { pipeline<false>(ma, mb, mc, c, M, N, K); }
KERNEL gemm_ws_cluster(PARAMS) { pipeline<true>(ma, mb, mc, c, M, N, K); }
