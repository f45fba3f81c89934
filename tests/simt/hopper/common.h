// common.h - what the Hopper kernels share: PTX by name, and where wgmma wants its operands.
#pragma once
#include <cooperative_groups.h>
#include <cuda_fp16.h>
#include <stdint.h>
namespace cg = cooperative_groups;
#include "wgmma.inc"

struct alignas(64) Map {
    uint64_t w[16];
};
#define PARAMS                                                                                     \
    const __grid_constant__ Map ma, const __grid_constant__ Map mb,                                \
        const __grid_constant__ Map mc, const uint8_t *a, const uint8_t *b, uint8_t *c, int M,     \
        int N, int K
#define KERNEL extern "C" __global__ void __launch_bounds__(384)
#define DI     __device__ __forceinline__

extern __shared__ __align__(1024) uint8_t sm[];

DI uint32_t su(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}
DI void mb_init(uint32_t b, int n)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(b), "r"(n) : "memory");
}
DI void mb_fence()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
DI void mb_expect(uint32_t b, int n)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b), "r"(n)
                 : "memory");
}
DI void mb_arrive(uint32_t b)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(b) : "memory");
}
DI void mb_arrive_at(uint32_t b, uint32_t cta)
{
    asm volatile("{\n.reg .b32 r;\nmapa.shared::cluster.u32 r, %0, "
                 "%1;\nmbarrier.arrive.release.cluster.shared::cluster.b64 _, [r];\n}" ::"r"(b),
                 "r"(cta)
                 : "memory");
}
DI void mb_wait(uint32_t b, int parity)
{
    asm volatile("{\n.reg .pred P;\nW:\nmbarrier.try_wait.parity.shared::cta.b64 P, [%0], %1;\n@P "
                 "bra D;\nbra W;\nD:\n}" ::"r"(b),
                 "r"(parity)
                 : "memory");
}
DI void tma1(uint32_t d, const Map *m, uint32_t bar, int x)
{
    asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3}], [%2];" ::"r"(d),
                 "l"(m), "r"(bar), "r"(x)
                 : "memory");
}
DI void tma2(uint32_t d, const Map *m, uint32_t bar, int x, int y)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4}], [%2];" ::"r"(d),
                 "l"(m), "r"(bar), "r"(x), "r"(y)
                 : "memory");
}
DI void tma2_mc(uint32_t d, const Map *m, uint32_t bar, int x, int y, uint16_t mask)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes."
                 "multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(d),
                 "l"(m), "r"(bar), "r"(x), "r"(y), "h"(mask)
                 : "memory");
}
DI void tma3(uint32_t d, const Map *m, uint32_t bar, int x, int y, int z)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(d),
                 "l"(m), "r"(bar), "r"(x), "r"(y), "r"(z)
                 : "memory");
}
DI void tma4(uint32_t d, const Map *m, uint32_t bar, int x, int y, int z, int w)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(d),
                 "l"(m), "r"(bar), "r"(x), "r"(y), "r"(z), "r"(w)
                 : "memory");
}
DI void tma5(uint32_t d, const Map *m, uint32_t bar, int x, int y, int z, int w, int v)
{
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(d),
                 "l"(m), "r"(bar), "r"(x), "r"(y), "r"(z), "r"(w), "r"(v)
                 : "memory");
}
DI void tma_im2col4(uint32_t d, const Map *m, uint32_t bar, int ch, int w, int h, int n,
                    uint16_t ow, uint16_t oh)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::"
                 "bytes [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(d),
                 "l"(m), "r"(bar), "r"(ch), "r"(w), "r"(h), "r"(n), "h"(ow), "h"(oh)
                 : "memory");
}
DI void tma_st2(const Map *m, uint32_t s, int x, int y)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(m),
        "r"(s), "r"(x), "r"(y)
        : "memory");
}
DI void commit()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
template <int N> DI void wait_read()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}
template <int N> DI void wait_all()
{
    asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory");
}
DI void fence_async()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
DI uint32_t rank()
{
    uint32_t r;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}
DI uint32_t ranks()
{
    uint32_t r;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(r));
    return r;
}
DI void cl_arrive()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
DI void cl_wait()
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
DI void cl_sync()
{
    cl_arrive();
    cl_wait();
}
DI uint32_t mapa(uint32_t p, uint32_t r)
{
    uint32_t q;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(q) : "r"(p), "r"(r));
    return q;
}
DI void wg_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
DI void wg_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int N> DI void wg_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
DI int elect()
{
    uint32_t p;
    asm volatile("{\n.reg .pred P;\nelect.sync _|P, 0xffffffff;\nselp.u32 %0, 1, 0, P;\n}"
                 : "=r"(p));
    return (int)p;
}
// one barrier at the very end of what the kernel uses, ready for everybody
DI uint32_t bar_at(int bytes, int count = 1)
{
    uint32_t bar = su(sm) + bytes;
    if (threadIdx.x == 0) {
        mb_init(bar, count);
        mb_fence();
    }
    __syncthreads();
    return bar;
}
// N bytes of shared memory from 0 on, as they lie there, to c + at
DI void dump(uint8_t *c, size_t at, int bytes)
{
    for (int i = threadIdx.x * 16; i < bytes; i += blockDim.x * 16)
        *(uint4 *)(c + at + i) = *(const uint4 *)(sm + i);
}

// wgmma operands: 64 rows of A, N of B, 128 bytes of K each
// SW: 0 none, 1: 128 bytes, 2: 64, 3: 32, as the descriptor has it
template <int SW> struct Layout {
    static constexpr int W = SW == 0 ? 16 : SW == 1 ? 128 : SW == 2 ? 64 : 32;
    static constexpr int BITS = SW == 0 ? 0 : SW == 1 ? 3 : SW == 2 ? 2 : 1;
    static DI uint32_t sw(uint32_t x)
    {
        return x ^ (x >> 3 & (((1u << BITS) - 1) << 4));
    }
    // K-major: row r, byte kb along K
    static DI uint32_t k_at(int rows, int r, int kb)
    {
        return sw((kb / W) * (rows * W) + (r / 8) * 8 * W + (r % 8) * W + kb % W);
    }
    static DI uint64_t k_desc(uint32_t base, int rows, int step)
    {
        uint32_t kb = 32 * step, at = base + (kb / W) * (rows * W) + kb % W;
        return (uint64_t)((at & 0x3ffff) >> 4) | (uint64_t)(rows * W >> 4) << 16 |
               (uint64_t)(8 * W >> 4) << 32 | (uint64_t)SW << 62;
    }
    // MN-major, 16-bit elements: 64 of K in all
    static DI uint32_t mn_at(int m, int k)
    {
        if (SW == 0)
            return (m / 8) * (64 * 16) + (k / 8) * 128 + (k % 8) * 16 + (m % 8) * 2;
        return sw((m / (W / 2)) * (64 * W) + (k / 8) * (8 * W) + (k % 8) * W + (m % (W / 2)) * 2);
    }
    static DI uint64_t mn_desc(uint32_t base, int step)
    {
        uint32_t at = base + step * 2 * (SW == 0 ? 128 : 8 * W);
        uint32_t lead = SW == 0 ? 128 : 64 * W, stride = SW == 0 ? 64 * 16 : 8 * W;
        return (uint64_t)((at & 0x3ffff) >> 4) | (uint64_t)(lead >> 4) << 16 |
               (uint64_t)(stride >> 4) << 32 | (uint64_t)SW << 62;
    }
};
template <int SW, int ES, bool MN> DI void fill(uint8_t *to, const uint8_t *from, int rows)
{
    using L = Layout<SW>;
    for (int i = threadIdx.x; i < rows * 128 / ES; i += blockDim.x) {
        int r = i / (128 / ES), k = i % (128 / ES);
        uint8_t *p = to + (MN ? L::mn_at(r, k) : L::k_at(rows, r, k * ES));
        for (int q = 0; q < ES; q++)
            p[q] = from[(size_t)i * ES + q];
    }
}
template <class T, int R> DI void put_acc(uint8_t *c, const T (&d)[R], int n, bool pairs)
{
    int w = threadIdx.x / 32, l = threadIdx.x % 32;
    for (int i = 0; i < R; i++) {
        int e = pairs ? 2 * i : i, row = 16 * w + l / 4 + 8 * (e / 2 % 2),
            col = 8 * (e / 4) + l % 4 * 2 + e % 2;
        if (pairs)
            *(uint32_t *)(c + ((size_t)row * n + col) * 2) = *(const uint32_t *)&d[i];
        else
            ((T *)c)[(size_t)row * n + col] = d[i];
    }
}
