// attacks_async.cu - as attacks.cu: asynchronous copies, mbarriers, clusters and wgmma.
#include <cooperative_groups.h>
#include <cuda_fp16.h>
#include <cuda_pipeline_primitives.h>
#include <stdint.h>
namespace cg = cooperative_groups;
#define K extern "C" __global__ void
#define ARGS const float *in, float *out, int *w, int n
#define T threadIdx.x
#define B blockIdx.x

__device__ __forceinline__ uint32_t su(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void mb_init(void *bar, int count) { asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(su(bar)), "r"(count) : "memory"); }
__device__ __forceinline__ void mb_arrive(void *bar) { asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" ::"r"(su(bar)) : "memory"); }
__device__ __forceinline__ void mb_expect(void *bar, int bytes) { asm volatile("{ .reg .b64 s; mbarrier.arrive.expect_tx.shared.b64 s, [%0], %1; }" ::"r"(su(bar)), "r"(bytes) : "memory"); }
__device__ __forceinline__ void mb_wait(void *bar, int parity)
{
    asm volatile("{ .reg .pred p; L%=: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra L%=; }" ::"r"(su(bar)), "r"(parity) : "memory");
}
__device__ __forceinline__ void bulk_in(void *to, const void *from, int bytes, void *bar)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(su(to)), "l"(from), "r"(bytes), "r"(su(bar)) : "memory");
}
__device__ __forceinline__ void bulk_out(void *to, const void *from, int bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(su(from)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ __forceinline__ void bulk_wait() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
__device__ __forceinline__ void proxy_fence() { asm volatile("fence.proxy.async;" ::: "memory"); }

// ---- asynchronous copies ----

K c_one_stage(ARGS)
{
    __shared__ __align__(16) float a[2][256];
    float x = 0;
    __pipeline_memcpy_async(a[0] + 4 * T, in + 4 * T, 16);
    __pipeline_commit();
    for (int k = 0; k < 3; k++) {
        __pipeline_memcpy_async(a[(k + 1) % 2] + 4 * T, in + 4 * T, 16);
        __pipeline_commit();
        __pipeline_wait_prior(2);
        x += a[k % 2][4 * T]; // BUG:c_one_stage async_not_waited
    }
    __pipeline_wait_prior(0);
    out[T] = x;
}
K c_one_stage_ok(ARGS)
{
    __shared__ __align__(16) float a[2][256];
    float x = 0;
    __pipeline_memcpy_async(a[0] + 4 * T, in + 4 * T, 16);
    __pipeline_commit();
    for (int k = 0; k < 3; k++) {
        __pipeline_memcpy_async(a[(k + 1) % 2] + 4 * T, in + 4 * T, 16);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        x += a[k % 2][4 * T];
    }
    __pipeline_wait_prior(0);
    out[T] = x;
}
K c_refill(ARGS)
{
    __shared__ __align__(16) float a[2][256];
    float x = 0;
    __pipeline_memcpy_async(a[0] + 4 * T, in + 4 * T, 16);
    __pipeline_commit();
    for (int k = 0; k < 3; k++) {
        __pipeline_wait_prior(0);
        __syncthreads();
        __pipeline_memcpy_async(a[k % 2] + 4 * (T ^ 32), in + 4 * T, 16);
        __pipeline_commit();
        x += a[k % 2][4 * T]; // BUG:c_refill race_shared|async_overwrite|async_not_waited
    }
    __pipeline_wait_prior(0);
    out[T] = x;
}
K c_refill_ok(ARGS)
{
    __shared__ __align__(16) float a[2][256];
    float x = 0;
    __pipeline_memcpy_async(a[0] + 4 * T, in + 4 * T, 16);
    __pipeline_commit();
    for (int k = 0; k < 3; k++) {
        __pipeline_wait_prior(0);
        __syncthreads();
        __pipeline_memcpy_async(a[(k + 1) % 2] + 4 * (T ^ 32), in + 4 * T, 16);
        __pipeline_commit();
        x += a[k % 2][4 * T];
    }
    __pipeline_wait_prior(0);
    out[T] = x;
}
K c_past(ARGS)
{
    __shared__ __align__(16) float a[256];
    __pipeline_memcpy_async(a + 4 * T, in + 4 * T + (n - 196), 16); // BUG:c_past out_of_bounds
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    out[T] = a[4 * T];
}
K c_past_ok(ARGS)
{
    __shared__ __align__(16) float a[256];
    __pipeline_memcpy_async(a + 4 * T, in + 4 * T + (n - 196), 16, T == 63 ? 16 : 0);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    out[T] = a[4 * T];
}
K c_bulk_bytes(ARGS)
{
    __shared__ __align__(16) float a[64];
    __shared__ __align__(8) uint64_t bar;
    if (T == 0) mb_init(&bar, 1);
    __syncthreads();
    if (T == 0) { mb_expect(&bar, 128); bulk_in(a, in, 256, &bar); }
    mb_wait(&bar, 0); // BUG:c_bulk_bytes mbarrier|async_not_waited
    out[T] = a[T];
}
K c_bulk_bytes_ok(ARGS)
{
    __shared__ __align__(16) float a[64];
    __shared__ __align__(8) uint64_t bar;
    if (T == 0) mb_init(&bar, 1);
    __syncthreads();
    if (T == 0) { mb_expect(&bar, 256); bulk_in(a, in, 256, &bar); }
    mb_wait(&bar, 0);
    out[T] = a[T];
}
K c_bulk_one_waits(ARGS)
{
    __shared__ __align__(16) float a[64];
    __shared__ __align__(8) uint64_t bar;
    if (T == 0) mb_init(&bar, 1);
    __syncthreads();
    if (T == 0) { mb_expect(&bar, 256); bulk_in(a, in, 256, &bar); }
    if (T < 32) mb_wait(&bar, 0);
    out[T] = a[T]; // BUG:c_bulk_one_waits async_not_waited|race_shared|uninitialised
}
K c_bulk_one_waits_ok(ARGS)
{
    __shared__ __align__(16) float a[64];
    __shared__ __align__(8) uint64_t bar;
    if (T == 0) mb_init(&bar, 1);
    __syncthreads();
    if (T == 0) { mb_expect(&bar, 256); bulk_in(a, in, 256, &bar); }
    if (T < 32) mb_wait(&bar, 0);
    __syncthreads();
    out[T] = a[T];
}
K c_bulk_source(ARGS)
{
    __shared__ __align__(16) float a[64];
    __shared__ __align__(8) uint64_t bar;
    if (T == 0) mb_init(&bar, 1);
    __syncthreads();
    if (T == 0) { mb_expect(&bar, 256); bulk_in(a, in + 224, 256, &bar); } // BUG:c_bulk_source out_of_bounds
    mb_wait(&bar, 0);
    out[T] = a[T];
}
K c_bulk_source_ok(ARGS)
{
    __shared__ __align__(16) float a[64];
    __shared__ __align__(8) uint64_t bar;
    if (T == 0) mb_init(&bar, 1);
    __syncthreads();
    if (T == 0) { mb_expect(&bar, 256); bulk_in(a, in + 192, 256, &bar); }
    mb_wait(&bar, 0);
    out[T] = a[T];
}
K c_bulk_fence(ARGS)
{
    __shared__ __align__(16) float a[64];
    a[T] = in[T];
    __syncthreads();
    if (T == 0) { bulk_out(out, a, 256); bulk_commit(); bulk_wait(); } // BUG:c_bulk_fence missing_proxy_fence
}
K c_bulk_fence_ok(ARGS)
{
    __shared__ __align__(16) float a[64];
    a[T] = in[T];
    proxy_fence();
    __syncthreads();
    if (T == 0) { bulk_out(out, a, 256); bulk_commit(); bulk_wait(); }
}
K c_bulk_reused(ARGS)
{
    __shared__ __align__(16) float a[64];
    a[T] = in[T];
    proxy_fence();
    __syncthreads();
    if (T == 0) { bulk_out(out, a, 256); bulk_commit(); }
    __syncthreads();
    a[T] = in[T + 64]; // BUG:c_bulk_reused async_overwrite|race_shared
    proxy_fence();
    __syncthreads();
    if (T == 0) { bulk_out(out + 64, a, 256); bulk_commit(); bulk_wait(); }
}
K c_bulk_reused_ok(ARGS)
{
    __shared__ __align__(16) float a[64];
    a[T] = in[T];
    proxy_fence();
    __syncthreads();
    if (T == 0) { bulk_out(out, a, 256); bulk_commit(); bulk_wait(); }
    __syncthreads();
    a[T] = in[T + 64];
    proxy_fence();
    __syncthreads();
    if (T == 0) { bulk_out(out + 64, a, 256); bulk_commit(); bulk_wait(); }
}
K c_bulk_result(ARGS)
{
    __shared__ __align__(16) float a[64];
    a[T] = in[T];
    proxy_fence();
    __syncthreads();
    if (T == 0) {
        bulk_out(out, a, 256);
        bulk_commit();
        out[100] = out[3]; // BUG:c_bulk_result async_not_waited|race_global|uninitialised
        bulk_wait();
    }
}
K c_bulk_result_ok(ARGS)
{
    __shared__ __align__(16) float a[64];
    a[T] = in[T];
    proxy_fence();
    __syncthreads();
    if (T == 0) {
        bulk_out(out, a, 256);
        bulk_commit();
        bulk_wait();
        out[100] = out[3];
    }
}

// ---- mbarriers ----

K e_count(ARGS)
{
    __shared__ __align__(8) uint64_t bar;
    __shared__ int a[64];
    if (T == 0) mb_init(&bar, 65);
    __syncthreads();
    a[T] = T;
    mb_arrive(&bar);
    mb_wait(&bar, 0); // BUG:e_count mbarrier
    out[T] = a[T ^ 32];
}
K e_count_ok(ARGS)
{
    __shared__ __align__(8) uint64_t bar;
    __shared__ int a[64];
    if (T == 0) mb_init(&bar, 64);
    __syncthreads();
    a[T] = T;
    mb_arrive(&bar);
    mb_wait(&bar, 0);
    out[T] = a[T ^ 32];
}
K e_few(ARGS)
{
    __shared__ __align__(8) uint64_t bar;
    __shared__ int a[64];
    if (T == 0) mb_init(&bar, 32);
    __syncthreads();
    if (T < 32) { a[T] = T; mb_arrive(&bar); a[T + 32] = T; }
    mb_wait(&bar, 0);
    out[T] = a[T]; // BUG:e_few race_shared
}
K e_few_ok(ARGS)
{
    __shared__ __align__(8) uint64_t bar;
    __shared__ int a[64];
    if (T == 0) mb_init(&bar, 32);
    __syncthreads();
    if (T < 32) { a[T] = T; a[T + 32] = T; mb_arrive(&bar); }
    mb_wait(&bar, 0);
    out[T] = a[T];
}
K e_reset(ARGS)
{
    __shared__ __align__(8) uint64_t bar;
    if (T == 0) mb_init(&bar, 64);
    __syncthreads();
    mb_arrive(&bar);
    if (T == 0) mb_init(&bar, 64);
    mb_wait(&bar, 0); // BUG:e_reset mbarrier
    out[T] = 1;
}
K e_reset_ok(ARGS)
{
    __shared__ __align__(8) uint64_t bar;
    if (T == 0) mb_init(&bar, 64);
    __syncthreads();
    mb_arrive(&bar);
    mb_wait(&bar, 0);
    out[T] = 1;
}
K e_overwritten(ARGS)
{
    __shared__ __align__(8) uint64_t bar[1];
    __shared__ int a[64];
    if (T == 0) mb_init(bar, 64);
    __syncthreads();
    if (T == 5) ((int *)bar)[0] = 0;
    a[T] = T;
    mb_arrive(bar); // BUG:e_overwritten mbarrier
    mb_wait(bar, 0);
    out[T] = a[T ^ 32];
}
K e_overwritten_ok(ARGS)
{
    __shared__ __align__(8) uint64_t bar[1];
    __shared__ int a[64];
    if (T == 0) mb_init(bar, 64);
    __syncthreads();
    a[T] = T;
    mb_arrive(bar);
    mb_wait(bar, 0);
    out[T] = a[T ^ 32];
}

// ---- clusters ----

K __cluster_dims__(2, 1, 1) d_no_sync(ARGS)
{
    __shared__ int a[64];
    auto all = cg::this_cluster();
    a[T] = T;
    __syncthreads();
    out[B * 64 + T] = *all.map_shared_rank(&a[T], all.block_rank() ^ 1); // BUG:d_no_sync race_shared|cluster|uninitialised grid=2 cluster=2
    all.sync();
}
K __cluster_dims__(2, 1, 1) d_no_sync_ok(ARGS)
{
    __shared__ int a[64];
    auto all = cg::this_cluster();
    a[T] = T;
    all.sync();
    out[B * 64 + T] = *all.map_shared_rank(&a[T], all.block_rank() ^ 1);
    all.sync();
}
K __cluster_dims__(2, 1, 1) d_left(ARGS)
{
    __shared__ int a[64];
    auto all = cg::this_cluster();
    a[T] = T;
    all.sync();
    if (all.block_rank() == 0) return;
    for (int i = 0; i < 4; i++)
        out[64 * i + T] = *all.map_shared_rank(&a[T], 0); // BUG:d_left cluster grid=2 cluster=2
}
K __cluster_dims__(2, 1, 1) d_left_ok(ARGS)
{
    __shared__ int a[64];
    auto all = cg::this_cluster();
    a[T] = T;
    all.sync();
    if (all.block_rank() != 0)
        for (int i = 0; i < 4; i++)
            out[64 * i + T] = *all.map_shared_rank(&a[T], 0);
    all.sync();
}
K __cluster_dims__(2, 1, 1) d_past(ARGS)
{
    __shared__ int a[64];
    auto all = cg::this_cluster();
    a[T] = T;
    all.sync();
    out[B * 64 + T] = *(all.map_shared_rank(&a[T], all.block_rank() ^ 1) + n); // BUG:d_past out_of_bounds|uninitialised|cluster grid=2 cluster=2
    all.sync();
}
K __cluster_dims__(2, 1, 1) d_past_ok(ARGS)
{
    __shared__ int a[64];
    auto all = cg::this_cluster();
    a[T] = T;
    all.sync();
    out[B * 64 + T] = *(all.map_shared_rank(&a[T], all.block_rank() ^ 1) + n - 200);
    all.sync();
}
K __cluster_dims__(2, 1, 1) d_atomic(ARGS)
{
    __shared__ int a;
    auto all = cg::this_cluster();
    if (T == 0) a = 0;
    all.sync();
    atomicAdd(all.map_shared_rank(&a, 0), 1); __syncthreads(); if (T == 0) out[B] = a; // BUG:d_atomic race_shared|cluster grid=2 cluster=2
    all.sync();
}
K __cluster_dims__(2, 1, 1) d_atomic_ok(ARGS)
{
    __shared__ int a;
    auto all = cg::this_cluster();
    if (T == 0) a = 0;
    all.sync();
    atomicAdd(all.map_shared_rank(&a, 0), 1);
    all.sync();
    if (T == 0) out[B] = a;
}

// ---- wgmma ----

__device__ __forceinline__ uint64_t tile(const void *p)
{
    return ((uint64_t)(su(p) & 0x3ffff) >> 4) | (uint64_t)(128 >> 4) << 16 | (uint64_t)(256 >> 4) << 32;
}
__device__ __forceinline__ void product(float *d, const void *a, const void *b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(tile(a)), "l"(tile(b)) : "memory");
}
#define FENCE asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define COMMIT asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define WAIT(n) asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(n) : "memory")

K z_not_fenced(ARGS)
{
    __shared__ __align__(128) __half a[64 * 16], b[8 * 16];
    float d[4] = {0, 0, 0, 0};
    for (int i = T; i < 1024; i += 128) a[i] = 1;
    b[T] = 1;
    __syncthreads();
    FENCE;
    product(d, a, b); // BUG:z_not_fenced missing_proxy_fence block=128
    COMMIT;
    WAIT(0);
    out[T] = d[0] + d[1] + d[2] + d[3];
}
K z_not_fenced_ok(ARGS)
{
    __shared__ __align__(128) __half a[64 * 16], b[8 * 16];
    float d[4] = {0, 0, 0, 0};
    for (int i = T; i < 1024; i += 128) a[i] = 1;
    b[T] = 1;
    proxy_fence();
    __syncthreads();
    FENCE;
    product(d, a, b);
    COMMIT;
    WAIT(0);
    out[T] = d[0] + d[1] + d[2] + d[3];
}
K z_two_groups(ARGS)
{
    __shared__ __align__(128) __half a[64 * 16], b[2][8 * 16];
    float d[4] = {0, 0, 0, 0}, e[4] = {0, 0, 0, 0};
    for (int i = T; i < 1024; i += 128) a[i] = 1;
    b[0][T] = 1;
    b[1][T] = 2;
    proxy_fence();
    __syncthreads();
    FENCE;
    product(d, a, b[0]);
    COMMIT;
    product(e, a, b[1]);
    COMMIT;
    WAIT(1);
    b[1][T] = 3; // BUG:z_two_groups async_overwrite|race_shared|wgmma_not_waited block=128
    WAIT(0);
    out[T] = d[0] + d[1] + e[2] + e[3];
}
K z_two_groups_ok(ARGS)
{
    __shared__ __align__(128) __half a[64 * 16], b[2][8 * 16];
    float d[4] = {0, 0, 0, 0}, e[4] = {0, 0, 0, 0};
    for (int i = T; i < 1024; i += 128) a[i] = 1;
    b[0][T] = 1;
    b[1][T] = 2;
    proxy_fence();
    __syncthreads();
    FENCE;
    product(d, a, b[0]);
    COMMIT;
    product(e, a, b[1]);
    COMMIT;
    WAIT(1);
    __syncthreads();
    b[0][T] = 3;
    WAIT(0);
    out[T] = d[0] + d[1] + e[2] + e[3];
}
K z_one_warp(ARGS)
{
    __shared__ __align__(128) __half a[64 * 16], b[8 * 16];
    float d[4] = {0, 0, 0, 0};
    for (int i = T; i < 1024; i += 128) a[i] = 1;
    b[T] = 1;
    proxy_fence();
    __syncthreads();
    if (T < 96) {
        FENCE;
        product(d, a, b); // BUG:z_one_warp wgmma_not_waited|divergent_collective|deadlock|wgmma|divergent_barrier block=128
        COMMIT;
        WAIT(0);
    }
    out[T] = d[0] + d[1] + d[2] + d[3];
}
K z_one_warp_ok(ARGS)
{
    __shared__ __align__(128) __half a[64 * 16], b[8 * 16];
    float d[4] = {0, 0, 0, 0};
    for (int i = T; i < 1024; i += 128) a[i] = 1;
    b[T] = 1;
    proxy_fence();
    __syncthreads();
    FENCE;
    product(d, a, b);
    COMMIT;
    WAIT(0);
    out[T] = d[0] + d[1] + d[2] + d[3];
}
