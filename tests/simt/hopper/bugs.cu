// Hopper kernels with one mistake each (OK false) and their correct twins. The
// line that a finding must name ends in "BUG:name". Parameters as in kernels.cu.
#include "common.h"

#define BUG(name)                                                                                  \
    template <bool OK> DI void name(const Map &ma, const Map &mb, const Map &mc, const uint8_t *a, const uint8_t *b, uint8_t *c, int M, int N, int K); \
    KERNEL name##_bug(PARAMS) { name<false>(ma, mb, mc, a, b, c, M, N, K); }                       \
    KERNEL name##_ok(PARAMS) { name<true>(ma, mb, mc, a, b, c, M, N, K); }                         \
    template <bool OK> DI void name(const Map &ma, const Map &mb, const Map &mc, const uint8_t *a, const uint8_t *b, uint8_t *c, int M, int N, int K)

// ---- transaction counts and phases ----
BUG(no_expect)
{
    uint32_t bar = bar_at(1024);
    if (threadIdx.x == 0) { if (OK) mb_expect(bar, 1024); tma2(su(sm), &ma, bar, 0, 0); }
    mb_wait(bar, 0); // BUG:no_expect
    dump(c, 0, 1024);
}
BUG(tx_small)
{
    uint32_t bar = bar_at(1024);
    if (threadIdx.x == 0) { mb_expect(bar, OK ? 1024 : 1008); tma2(su(sm), &ma, bar, 0, 0); }
    mb_wait(bar, 0); // BUG:tx_small
    dump(c, 0, 1024);
}
BUG(tx_large)
{
    uint32_t bar = bar_at(1024);
    if (threadIdx.x == 0) { mb_expect(bar, OK ? 1024 : 2048); tma2(su(sm), &ma, bar, 0, 0); }
    mb_wait(bar, 0); // BUG:tx_large
    dump(c, 0, 1024);
}
BUG(parity)
{
    uint32_t bar = bar_at(1024);
    if (threadIdx.x == 0) { mb_expect(bar, 1024); tma2(su(sm), &ma, bar, 0, 0); }
    mb_wait(bar, OK ? 0 : 1);
    if (threadIdx.x < 64) *(uint4 *)(c + 16 * threadIdx.x) = *(const uint4 *)(sm + 16 * threadIdx.x); // BUG:parity
}
BUG(no_wait)
{
    uint32_t bar = bar_at(1024);
    if (threadIdx.x == 0) { mb_expect(bar, 1024); tma2(su(sm), &ma, bar, 0, 0); }
    if (OK || threadIdx.x >= 64) mb_wait(bar, 0);
    if (threadIdx.x < 64) *(uint4 *)(c + 16 * threadIdx.x) = *(const uint4 *)(sm + 16 * threadIdx.x); // BUG:no_wait
}
BUG(init_no_sync)
{
    uint32_t bar = su(sm) + 1024;
    if (threadIdx.x == 0) { mb_init(bar, 128); mb_fence(); }
    if (OK) __syncthreads();
    mb_arrive(bar); // BUG:init_no_sync
    mb_wait(bar, 0);
    c[threadIdx.x] = 1;
}
BUG(not_initialised)
{
    uint32_t bar = su(sm) + 1024;
    if (threadIdx.x == 0 && OK) { mb_init(bar, 128); mb_fence(); }
    __syncthreads();
    mb_arrive(bar); // BUG:not_initialised
    c[threadIdx.x] = 1;
}
BUG(too_many)
{
    uint32_t bar = bar_at(1024, OK ? 128 : 127);
    if (threadIdx.x == 0) asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 16;" ::"r"(bar) : "memory");
    __syncthreads();
    mb_arrive(bar); // BUG:too_many
    c[threadIdx.x] = 1;
}
BUG(two_rounds)
{
    uint32_t bar = bar_at(1024);
    for (int i = 0; i < 2; i++) {
        if (threadIdx.x == 0) { mb_expect(bar, 1024); tma2(su(sm), &ma, bar, 0, 8 * i); }
        mb_wait(bar, OK ? i : 0);
        if (threadIdx.x < 64) *(uint4 *)(c + 1024 * i + 16 * threadIdx.x) = *(const uint4 *)(sm + 16 * threadIdx.x); // BUG:two_rounds
        fence_async();
        __syncthreads();
    }
}

// ---- rings ----
template <bool EMPTY, bool FENCE> DI void ring(const Map &ma, uint8_t *c)
{
    uint32_t full = su(sm) + 2048, empty = full + 16;
    if (threadIdx.x == 0) { for (int i = 0; i < 2; i++) { mb_init(full + 8 * i, 1); mb_init(empty + 8 * i, 3); } mb_fence(); }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int r = 0; r < 6; r++) {
            int s = r % 2;
            if (EMPTY) mb_wait(empty + 8 * s, (r / 2 & 1) ^ 1); // else the stage may be full
            mb_expect(full + 8 * s, 1024);
            tma2(su(sm) + 1024 * s, &ma, full + 8 * s, 0, r % 3 * 8); // BUG:ring
        }
    } else if (threadIdx.x >= 32) {
        int t = threadIdx.x - 32;
        for (int r = 0; r < 6; r++) {
            int s = r % 2;
            mb_wait(full + 8 * s, r / 2 & 1);
            for (int i = t; i < 256; i += 96) ((float *)c)[r * 256 + i] = ((const float *)(sm + 1024 * s))[i];
            if (FENCE) fence_async();
            __syncwarp();
            if (t % 32 == 0) mb_arrive(empty + 8 * s);
        }
    }
}
KERNEL ring_no_empty_bug(PARAMS) { ring<false, true>(ma, c); }
KERNEL ring_no_empty_ok(PARAMS) { ring<true, true>(ma, c); }
KERNEL ring_no_fence_bug(PARAMS) { ring<true, false>(ma, c); }
KERNEL ring_no_fence_ok(PARAMS) { ring<true, true>(ma, c); }

// ---- out of shared memory ----
BUG(store_no_fence)
{
    ((float *)sm)[threadIdx.x] = (float)threadIdx.x, ((float *)sm)[threadIdx.x + 128] = 1;
    if (OK) fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {
        tma_st2(&mc, su(sm), 0, 0); // BUG:store_no_fence
        commit(), wait_all<0>();
    }
}
BUG(store_no_sync)
{
    ((float *)sm)[threadIdx.x] = (float)threadIdx.x, ((float *)sm)[threadIdx.x + 128] = 1;
    fence_async();
    if (OK) __syncthreads();
    if (threadIdx.x == 127) {
        tma_st2(&mc, su(sm), 0, 0); // BUG:store_no_sync
        commit(), wait_all<0>();
    }
}
BUG(store_reuse)
{
    ((float *)sm)[threadIdx.x] = (float)threadIdx.x, ((float *)sm)[threadIdx.x + 128] = 1;
    fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {
        tma_st2(&mc, su(sm), 0, 0);
        commit();
        if (OK) wait_read<0>();
        ((float *)sm)[5] = 7; // BUG:store_reuse
        wait_all<0>();
    }
}
BUG(store_no_wait)
{
    ((float *)sm)[threadIdx.x] = (float)threadIdx.x, ((float *)sm)[threadIdx.x + 128] = 1;
    fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {
        tma_st2(&mc, su(sm), 0, 0); // BUG:store_no_wait
        commit();
        if (OK) wait_all<0>();
    }
}

// ---- wgmma ----
DI void operands(const uint8_t *a, const uint8_t *b)
{
    fill<1, 2, false>(sm, a, 64);
    fill<1, 2, false>(sm + 8192, b, 64);
}
#define STEPS(line)                                                                                \
    _Pragma("unroll") for (int s = 0; s < 4; s++) wg_n64_f32_f16_f16_ss_0_0(d, Layout<1>::k_desc(su(sm), 64, s), Layout<1>::k_desc(su(sm) + 8192, 64, s), s)
BUG(wgmma_no_fence)
{
    operands(a, b);
    if (OK) fence_async();
    __syncthreads();
    float d[32] = {};
    wg_fence();
    STEPS(); // BUG:wgmma_no_fence
    wg_commit(), wg_wait<0>();
    put_acc(c, d, 64, false);
}
BUG(wgmma_overwrite)
{
    operands(a, b);
    fence_async();
    __syncthreads();
    float d[32] = {};
    wg_fence();
    STEPS();
    wg_commit();
    if (OK) wg_wait<0>();
    if (OK) __syncthreads();
    if (threadIdx.x < 32) ((float *)sm)[threadIdx.x] = 3; // BUG:wgmma_overwrite
    wg_wait<0>();
    put_acc(c, d, 64, false);
}
BUG(wgmma_unfenced)
{
    operands(a, b);
    fence_async();
    __syncthreads();
    float d[32] = {};
    if (OK) wg_fence();
    STEPS(); // BUG:wgmma_unfenced
    wg_commit();
    wg_wait<0>();
    put_acc(c, d, 64, false);
}
BUG(wgmma_early)
{
    operands(a, b);
    fence_async();
    __syncthreads();
    float d[32] = {};
    wg_fence();
    STEPS();
    wg_commit();
    if (OK) wg_wait<0>();
    float sum; // volatile: the compiler would otherwise do it when it likes
    asm volatile("add.f32 %0, %1, %2;" : "=f"(sum) : "f"(d[0]), "f"(d[1])); // BUG:wgmma_early
    wg_wait<0>();
    put_acc(c, d, 64, false);
    __syncthreads();
    ((float *)c)[threadIdx.x] = sum;
}
BUG(wgmma_wait_one)
{
    operands(a, b);
    fence_async();
    __syncthreads();
    float d[32] = {};
    wg_fence();
    STEPS();
    wg_commit();
    wg_wait<OK ? 0 : 1>();
    float sum;
    asm volatile("add.f32 %0, %1, %2;" : "=f"(sum) : "f"(d[4]), "f"(d[7])); // BUG:wgmma_wait_one
    wg_wait<0>();
    put_acc(c, d, 64, false);
    __syncthreads();
    ((float *)c)[threadIdx.x] = sum;
}
BUG(wgmma_in_flight)
{
    uint32_t bar = bar_at(16384);
    if (threadIdx.x == 0) {
        mb_expect(bar, 16384);
        tma2(su(sm), &ma, bar, 0, 0), tma2(su(sm) + 8192, &mb, bar, 0, 0);
    }
    if (OK) mb_wait(bar, 0);
    float d[32] = {};
    wg_fence();
    STEPS(); // BUG:wgmma_in_flight
    wg_commit(), wg_wait<0>();
    mb_wait(bar, 0);
    put_acc(c, d, 64, false);
}
BUG(wgmma_refill)
{
    uint32_t bar = bar_at(16384);
    for (int i = 0; i < 2; i++) {
        if (threadIdx.x == 0) {
            mb_expect(bar, 16384);
            tma2(su(sm), &ma, bar, 0, 0); // BUG:wgmma_refill
            tma2(su(sm) + 8192, &mb, bar, 0, 0);
        }
        mb_wait(bar, i);
        float d[32] = {};
        wg_fence();
        STEPS();
        wg_commit();
        if (OK) wg_wait<0>();
        __syncthreads();
        if (i) { wg_wait<0>(); put_acc(c, d, 64, false); }
    }
}
BUG(wgmma_outside)
{
    operands(a, b);
    fence_async();
    __syncthreads();
    float d[32] = {};
    wg_fence();
    wg_n64_f32_f16_f16_ss_0_0(d, Layout<1>::k_desc(su(sm), 64, 0), Layout<1>::k_desc(su(sm) + (OK ? 8192 : 61440), 64, 0), 0); // BUG:wgmma_outside
    wg_commit(), wg_wait<0>();
    put_acc(c, d, 64, false);
}

// ---- clusters ----
BUG(cluster_start)
{
    float *s = (float *)sm;
    if (OK) cl_sync();
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(mapa(su(&s[threadIdx.x]), rank() ^ 1)), "f"(1.0f) : "memory"); // BUG:cluster_start
    cl_sync();
    ((float *)c)[blockIdx.x * 128 + threadIdx.x] = s[threadIdx.x];
}
BUG(cluster_exit)
{
    float *s = (float *)sm, v;
    s[threadIdx.x] = (float)threadIdx.x;
    cl_sync();
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(mapa(su(&s[threadIdx.x]), rank() ^ 1)) : "memory"); // BUG:cluster_exit
    ((float *)c)[blockIdx.x * 128 + threadIdx.x] = v;
    if (OK) cl_sync();
}
BUG(cluster_rank)
{
    float *s = (float *)sm;
    cl_sync();
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(mapa(su(&s[threadIdx.x]), OK ? rank() ^ 1 : rank() + 1)), "f"(1.0f) : "memory"); // BUG:cluster_rank
    cl_sync();
    ((float *)c)[blockIdx.x * 128 + threadIdx.x] = OK ? s[threadIdx.x] : 0;
}
BUG(cluster_mask)
{
    uint32_t bar = su(sm) + 1024;
    if (threadIdx.x == 0) { mb_init(bar, 1); mb_fence(); mb_expect(bar, 1024); }
    cl_sync();
    if (threadIdx.x == 0 && rank() == 0) tma2_mc(su(sm), &ma, bar, 0, 0, OK ? 3 : 7); // BUG:cluster_mask
    mb_wait(bar, 0);
    dump(c, blockIdx.x * 1024, 1024);
    cl_sync();
}
BUG(cluster_twice)
{
    cl_arrive();
    if (OK) cl_wait();
    cl_arrive(); // BUG:cluster_twice
    cl_wait();
    c[blockIdx.x * 128 + threadIdx.x] = 1;
}
BUG(cluster_bars)
{
    uint32_t bar = su(sm) + 1024, other = rank() ^ 1;
    if (threadIdx.x == 0) { mb_init(bar, 1); mb_fence(); mb_expect(bar, 128 * 4); }
    cl_sync();
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(mapa(su(sm) + 4 * threadIdx.x, other)), "r"(threadIdx.x), "r"(mapa(bar, OK ? other : rank())) : "memory"); // BUG:cluster_bars
    if (OK) mb_wait(bar, 0);
    c[blockIdx.x * 128 + threadIdx.x] = OK ? sm[4 * threadIdx.x] : 0;
    cl_sync();
}

BUG(cluster_race_read)
{
    float *s = (float *)sm, v;
    cl_sync();
    s[threadIdx.x] = (float)threadIdx.x;
    if (OK) cl_sync();
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(mapa(su(&s[threadIdx.x]), rank() ^ 1)) : "memory"); // BUG:cluster_race_read
    ((float *)c)[blockIdx.x * 128 + threadIdx.x] = v;
    cl_sync();
}
BUG(cluster_race_write)
{
    volatile float *s = (volatile float *)sm;
    s[threadIdx.x] = 0;
    cl_sync();
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(mapa(su((void *)&s[threadIdx.x]), rank() ^ 1)), "f"(1.0f) : "memory");
    if (OK) cl_sync();
    ((float *)c)[blockIdx.x * 128 + threadIdx.x] = s[threadIdx.x]; // BUG:cluster_race_write
    cl_sync();
}
BUG(cluster_race_reuse)
{
    volatile float *s = (volatile float *)sm;
    float v;
    s[threadIdx.x] = 2;
    cl_sync();
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(mapa(su((void *)&s[threadIdx.x]), rank() ^ 1)) : "memory");
    if (OK) cl_sync();
    s[threadIdx.x] = v + 1; // BUG:cluster_race_reuse
    ((float *)c)[blockIdx.x * 128 + threadIdx.x] = v;
    cl_sync();
}
BUG(cluster_race_arrive)
{
    volatile float *s = (volatile float *)sm;
    uint32_t bar = su(sm) + 1024, other = rank() ^ 1;
    s[threadIdx.x] = 0;
    if (threadIdx.x == 0) { mb_init(bar, 128); mb_fence(); }
    __syncthreads();
    cl_sync();
    if (!OK) mb_arrive_at(bar, other);
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(mapa(su((void *)&s[threadIdx.x]), other)), "f"(1.0f) : "memory");
    if (OK) mb_arrive_at(bar, other);
    mb_wait(bar, 0);
    ((float *)c)[blockIdx.x * 128 + threadIdx.x] = s[threadIdx.x]; // BUG:cluster_race_arrive
    cl_sync();
}

// ---- maps and alignment ----
BUG(tile_align)
{
    uint32_t bar = bar_at(4096);
    if (threadIdx.x == 0) { mb_expect(bar, 1024); tma2(su(sm) + (OK ? 128 : 64), &ma, bar, 0, 0); } // BUG:tile_align
    if (OK) mb_wait(bar, 0);
    c[threadIdx.x] = OK ? sm[128 + threadIdx.x] : 0;
}
BUG(bulk_size)
{
    uint32_t bar = bar_at(4096);
    if (threadIdx.x == 0) {
        mb_expect(bar, 1024);
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(su(sm)), "l"(a), "r"(OK ? 1024 : 1020), "r"(bar) : "memory"); // BUG:bulk_size
    }
    if (OK) mb_wait(bar, 0);
    c[threadIdx.x] = OK ? sm[threadIdx.x] : 0;
}
BUG(bulk_address)
{
    uint32_t bar = bar_at(4096);
    if (threadIdx.x == 0) {
        mb_expect(bar, 1024);
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(su(sm)), "l"(a + (OK ? 16 : 8)), "r"(1024), "r"(bar) : "memory"); // BUG:bulk_address
    }
    if (OK) mb_wait(bar, 0);
    c[threadIdx.x] = OK ? sm[threadIdx.x] : 0;
}
BUG(map_rank)
{
    uint32_t bar = bar_at(4096);
    if (threadIdx.x == 0) {
        mb_expect(bar, 1024);
        if (OK) tma2(su(sm), &ma, bar, 0, 0);
        else tma3(su(sm), &ma, bar, 0, 0, 0); // BUG:map_rank
    }
    if (OK) mb_wait(bar, 0);
    c[threadIdx.x] = OK ? sm[threadIdx.x] : 0;
}
BUG(map_none)
{
    uint32_t bar = bar_at(4096);
    if (threadIdx.x == 0) { mb_expect(bar, 1024); tma2(su(sm), OK ? &ma : (const Map *)a, bar, 0, 0); } // BUG:map_none
    if (OK) mb_wait(bar, 0);
    c[threadIdx.x] = OK ? sm[threadIdx.x] : 0;
}
BUG(map_too_large) // the test gives a map that is larger than its buffer to the first
{
    uint32_t bar = bar_at(4096);
    if (threadIdx.x == 0) { mb_expect(bar, 1024); tma2(su(sm), OK ? &ma : &mb, bar, 0, 16); } // BUG:map_too_large
    mb_wait(bar, 0);
    c[threadIdx.x] = sm[threadIdx.x];
}
BUG(coordinate) // an H200 calls it an illegal instruction
{
    uint32_t bar = bar_at(4096);
    if (threadIdx.x == 0) { mb_expect(bar, 1024); tma2(su(sm), &ma, bar, OK ? -4 : -3, 0); } // BUG:coordinate
    if (OK) mb_wait(bar, 0);
    c[threadIdx.x] = OK ? sm[threadIdx.x] : 0;
}
BUG(store_below) // likewise
{
    ((float *)sm)[threadIdx.x] = (float)threadIdx.x, ((float *)sm)[threadIdx.x + 128] = 1;
    fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {
        tma_st2(&mc, su(sm), 0, OK ? 3 : -3); // BUG:store_below
        commit(), wait_all<0>();
    }
}
