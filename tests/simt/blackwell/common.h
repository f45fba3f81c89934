// tcgen05 by hand: one line of PTX each.
#pragma once
#include <cstdint>

#define DI     __device__ __forceinline__
#define KERNEL extern "C" __global__ void __launch_bounds__(128)

extern __shared__ __align__(1024) uint8_t sm[];

DI uint32_t su(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}
DI void mb_init(uint32_t bar, int n)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(n) : "memory");
}
DI void mb_fence()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
DI void mb_wait(uint32_t bar, int parity)
{
    asm volatile("{\n.reg .pred p;\nL: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p "
                 "bra L;\n}" ::"r"(bar),
                 "r"(parity)
                 : "memory");
}
DI void fence_async()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

DI void tc_alloc(uint32_t at, int n)
{
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(at),
                 "r"(n)
                 : "memory");
}
DI void tc_dealloc(uint32_t t, int n)
{
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(t), "r"(n));
}
DI void tc_relinquish()
{
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
}
DI void tc_commit(uint32_t bar)
{
    asm volatile(
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(bar)
        : "memory");
}
DI void tc_wait_ld()
{
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}
DI void tc_wait_st()
{
    asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
}
DI void tc_before()
{
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}
DI void tc_after()
{
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}
DI void tc_cp_scales(uint32_t t, uint64_t desc)
{
    asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(t), "l"(desc) : "memory");
}

#define MMA(kind)                                                                                  \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::" kind   \
                 " [%0], %1, %2, %3, p;\n}" ::"r"(d),                                              \
                 "l"(a), "l"(b), "r"(i), "r"(accumulate)                                           \
                 : "memory")
#define MMA_MEMORY(kind)                                                                           \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::" kind   \
                 " [%0], [%1], %2, %3, p;\n}" ::"r"(d),                                            \
                 "r"((uint32_t)a), "l"(b), "r"(i), "r"(accumulate)                                 \
                 : "memory")
#define MMA_SCALED(kind)                                                                           \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\ntcgen05.mma.cta_group::1.kind::" kind   \
                 " [%0], %1, %2, %3, [%4], [%5], p;\n}" ::"r"(d),                                  \
                 "l"(a), "l"(b), "r"(i), "r"(sa), "r"(sb), "r"(accumulate)                         \
                 : "memory")

// Factors of 32 bytes of K: cores of 8 rows and 16 bytes, two side by side, then the next 8 rows.
DI uint64_t plain_desc(uint32_t at)
{
    return (uint64_t)(at >> 4) | (uint64_t)(128 >> 4) << 16 | (uint64_t)(256 >> 4) << 32 |
           1ull << 46;
}
// Rows of 16 bytes, eight of them after each other.
DI uint64_t rows_desc(uint32_t at)
{
    return (uint64_t)(at >> 4) | (uint64_t)(128 >> 4) << 32 | 1ull << 46;
}

DI void ld8(uint32_t t, uint32_t (&r)[8])
{
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]),
                   "=r"(r[6]), "=r"(r[7])
                 : "r"(t));
}
DI void st8(uint32_t t, const uint32_t (&r)[8])
{
    asm volatile(
        "tcgen05.st.sync.aligned.32x32b.x8.b32 [%8], {%0, %1, %2, %3, %4, %5, %6, %7};" ::"r"(r[0]),
        "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[4]), "r"(r[5]), "r"(r[6]), "r"(r[7]), "r"(t)
        : "memory");
}

// Shared memory: A 4 KB, B 8 KB, scales 2 KB, mbarrier, address of tensor memory.
enum {
    AT_B = 4096,
    AT_SA = 12288,
    AT_SB = 12800,
    AT_BAR = 14336,
    AT_TM = 14352,
    AT_TM2 = 14356,
    SM_BYTES = 14368
};

DI void bring(uint32_t to, const uint8_t *from, int bytes)
{
    for (int i = threadIdx.x * 16; i < bytes; i += blockDim.x * 16)
        *(uint4 *)(sm + to + i) = *(const uint4 *)(from + i);
}

// ---- for bugs.cu: a finding names its line, not one of these ----
enum { N = 32, COLUMNS = 128 };
constexpr uint32_t IDESC = 1u << 4 | (N / 8) << 17 | 8u << 24; // f16 factors, f32 sums, M 128

#define WARP0   if (threadIdx.x < 32)
#define THREAD0 if (threadIdx.x == 0)

struct Begun {
    uint32_t t, row, bar;
};

// Columns, an mbarrier and, unless told otherwise, the factors in shared memory.
DI Begun start(const uint8_t *a, const uint8_t *b, bool fence = true, int columns = COLUMNS)
{
    Begun x;
    x.bar = su(sm) + AT_BAR;
    bring(0, a, 4096);
    bring(AT_B, b, N * 32);
    THREAD0
    {
        mb_init(x.bar, 1);
        mb_fence();
    }
    WARP0 tc_alloc(su(sm) + AT_TM, columns);
    if (fence)
        fence_async();
    __syncthreads();
    x.t = *(volatile uint32_t *)(sm + AT_TM);
    x.row = x.t + (threadIdx.x / 32 * 32 << 16);
    return x;
}

DI void one(uint32_t d, int accumulate, uint32_t i = IDESC, uint32_t at = 0)
{
    uint64_t a = plain_desc(su(sm) + at), b = plain_desc(su(sm) + AT_B);
    MMA("f16");
}

// ---- pairs of blocks: two of a cluster, of which the even one multiplies ----
constexpr uint32_t IDESC_PAIR = 1u << 4 | (N / 8) << 17 | 16u << 24; // M 256

#define EVEN if (!(rank() & 1))

DI uint32_t rank()
{
    uint32_t r;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}
DI void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}
// The same place in the even block: the rank is above bit 24 of shared addresses.
DI uint32_t in_even(uint32_t at)
{
    return at & 0xFEFFFFFF;
}
DI void mb_arrive(uint32_t bar)
{
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(bar) : "memory");
}
DI void tc_commit_both(uint32_t bar)
{
    asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::"
                 "cluster.b64 [%0], %1;" ::"r"(bar),
                 "h"((uint16_t)3)
                 : "memory");
}
DI void one_pair(uint32_t d)
{
    uint64_t a = plain_desc(su(sm)), b = plain_desc(su(sm) + AT_B);
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, 0, 0;\ntcgen05.mma.cta_group::2.kind::f16 [%0], %1, "
        "%2, %3, p;\n}" ::"r"(d),
        "l"(a), "l"(b), "r"(IDESC_PAIR)
        : "memory");
}

// An mbarrier for sums, one of `readers` arrivals behind it.
DI Begun start_pair(const uint8_t *a, const uint8_t *b, int readers)
{
    Begun x;
    x.bar = su(sm) + AT_BAR;
    bring(0, a, 4096);
    bring(AT_B, b, N / 2 * 32);
    THREAD0
    {
        mb_init(x.bar, 1);
        mb_init(x.bar + 8, readers);
        mb_fence();
    }
    WARP0 asm volatile(
        "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(su(sm) + AT_TM),
        "r"(COLUMNS)
        : "memory");
    fence_async();
    __syncthreads();
    cluster_sync();
    x.t = *(volatile uint32_t *)(sm + AT_TM);
    x.row = x.t + (threadIdx.x / 32 * 32 << 16);
    return x;
}

DI void finish_pair(const Begun &x)
{
    tc_before();
    __syncthreads();
    cluster_sync();
    WARP0 asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(x.t),
                       "r"(COLUMNS));
}

DI void finish(const Begun &x, uint32_t *out, int columns = COLUMNS)
{
    uint32_t r[8];
    ld8(x.row, r);
    tc_wait_ld();
    for (int i = 0; i < 8; i++)
        out[threadIdx.x * 8 + i] = r[i];
    tc_before();
    __syncthreads();
    WARP0 tc_dealloc(x.t, columns);
}
