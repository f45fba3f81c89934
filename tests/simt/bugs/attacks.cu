// attacks.cu - more injected bugs and correct twins, as in bugs.cu: those that a stranger to the checker thought of, by
// area. For sm_90a; "shared=BYTES" is dynamic shared memory, "cluster=N" blocks per cluster, "cooperative=1" a
// cooperative grid.
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

// ---- flags, locks and counters between blocks ----

K f_block_fence(ARGS)
{
    volatile int *flag = w + 1000;
    if (B == 0) {
        w[T] = T;
        __threadfence_block();
        __syncthreads();
        if (T == 0) *flag = 1;
    } else {
        while (!*flag) {}
        __threadfence();
        out[T] = w[T]; // BUG:f_block_fence missing_fence grid=2
    }
}
K f_block_fence_ok(ARGS)
{
    volatile int *flag = w + 1000;
    if (B == 0) {
        w[T] = T;
        __threadfence();
        __syncthreads();
        if (T == 0) *flag = 1;
    } else {
        while (!*flag) {}
        __threadfence();
        out[T] = w[T];
    }
}
K f_early_fence(ARGS)
{
    volatile int *flag = w + 1000;
    if (B == 0) {
        __threadfence();
        w[T] = T;
        __syncthreads();
        if (T == 0) *flag = 1;
    } else {
        while (!*flag) {}
        __threadfence();
        out[T] = w[T]; // BUG:f_early_fence missing_fence grid=2
    }
}
K f_early_fence_ok(ARGS)
{
    volatile int *flag = w + 1000;
    if (B == 0) {
        w[T] = T;
        __syncthreads();
        __threadfence();
        if (T == 0) *flag = 1;
    } else {
        while (!*flag) {}
        __threadfence();
        out[T] = w[T];
    }
}
K f_scope(ARGS) { if (T == 0) atomicAdd_block(&w[0], 1); } // BUG:f_scope race_global grid=3
K f_scope_ok(ARGS) { if (T == 0) atomicAdd(&w[0], 1); }
K f_unlock(ARGS)
{
    if (T == 0) {
        while (atomicCAS(&w[1000], 0, 1) != 0) {}
        __threadfence();
        atomicAdd(&w[0], 1);
        w[1000] = 0; // BUG:f_unlock race_global|missing_fence grid=3
    }
}
K f_unlock_ok(ARGS)
{
    if (T == 0) {
        while (atomicCAS(&w[1000], 0, 1) != 0) {}
        __threadfence();
        atomicAdd(&w[0], 1);
        __threadfence();
        atomicExch(&w[1000], 0);
    }
}
K f_first_sets(ARGS)
{
    if (B == 0 && T == 0) w[0] = n;
    if (T == 0) atomicMax(&w[0], (int)B); // BUG:f_first_sets race_global grid=3
}
K f_first_sets_ok(ARGS) { if (T == 0) atomicMax(&w[0], (int)B); }
K f_acquire(ARGS)
{
    int seen = 0;
    if (B == 0) {
        w[T] = T;
        __syncthreads();
        if (T == 0) asm volatile("st.relaxed.gpu.global.s32 [%0], 1;" ::"l"(w + 1000) : "memory");
    } else {
        while (!seen) asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(w + 1000) : "memory");
        out[T] = w[T]; // BUG:f_acquire missing_fence grid=2
    }
}
K f_acquire_ok(ARGS)
{
    int seen = 0;
    if (B == 0) {
        w[T] = T;
        __syncthreads();
        if (T == 0) asm volatile("st.release.gpu.global.s32 [%0], 1;" ::"l"(w + 1000) : "memory");
    } else {
        while (!seen) asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(w + 1000) : "memory");
        out[T] = w[T];
    }
}
K f_last_block(ARGS)
{
    __shared__ int last;
    w[B * 64 + T] = T;
    __threadfence();
    if (T == 0) last = atomicAdd(&w[1000], 1) == gridDim.x - 1;
    __syncthreads();
    if (last) out[T] = w[T] + w[64 + (T ^ 32)]; // BUG:f_last_block race_global|missing_fence grid=2
}
K f_last_block_ok(ARGS)
{
    __shared__ int last;
    w[B * 64 + T] = T;
    __threadfence();
    __syncthreads();
    if (T == 0) last = atomicAdd(&w[1000], 1) == gridDim.x - 1;
    __syncthreads();
    if (last) out[T] = w[T] + w[64 + (T ^ 32)];
}
K f_other_thread(ARGS)
{
    volatile int *flag = w + 1000;
    if (B == 0) {
        w[T] = T;
        if (T == 0) { __threadfence(); *flag = 1; }
    } else {
        while (!*flag) {}
        __threadfence();
        out[T] = w[T]; // BUG:f_other_thread race_global|missing_fence grid=2
    }
}
K f_other_thread_ok(ARGS)
{
    volatile int *flag = w + 1000;
    if (B == 0) {
        w[T] = T;
        __syncthreads();
        if (T == 0) { __threadfence(); *flag = 1; }
    } else {
        while (!*flag) {}
        __threadfence();
        out[T] = w[T];
    }
}
K f_grid_sync(ARGS)
{
    w[B * 64 + T] = T;
    __syncthreads();
    out[B * 64 + T] = w[(B * 64 + T + 64) % 192]; // BUG:f_grid_sync race_global|missing_fence grid=3 cooperative=1
    cg::this_grid().sync();
}
K f_grid_sync_ok(ARGS)
{
    w[B * 64 + T] = T;
    cg::this_grid().sync();
    out[B * 64 + T] = w[(B * 64 + T + 64) % 192];
}

// ---- global memory ----

K g_far(ARGS)
{
    w[T] = T;
    for (int i = 0; i < 400; i++) out[(i % 8) * 64 + T] = i;
    out[512 + T] = w[T ^ 32]; // BUG:g_far race_global
}
K g_far_ok(ARGS)
{
    w[T] = T;
    for (int i = 0; i < 400; i++) out[(i % 8) * 64 + T] = i;
    __syncthreads();
    out[512 + T] = w[T ^ 32];
}
K g_wide(ARGS)
{
    w[64 + T] = T;
    if (T < 8) ((int4 *)w)[T] = make_int4(T, T, T, T); else if (T >= 32) out[T] = w[T - 32]; // BUG:g_wide race_global
}
K g_wide_ok(ARGS)
{
    w[64 + T] = T;
    if (T < 8) ((int4 *)w)[T] = make_int4(T, T, T, T);
    __syncthreads();
    if (T >= 32) out[T] = w[T - 32];
}
K g_cached(ARGS) { out[T] = T; __syncthreads(); out[512 + T] = __ldg(&out[T ^ 32]); } // BUG:g_cached race_global
K g_cached_ok(ARGS) { out[T] = T; __syncthreads(); out[512 + T] = out[T ^ 32]; }
K g_in_place(ARGS)
{
    for (int i = B * 64 + T; i < 512; i += gridDim.x * 64)
        w[i] = w[i + 1] + 1; // BUG:g_in_place race_global grid=2
}
K g_in_place_ok(ARGS)
{
    for (int i = B * 64 + T; i < 512; i += gridDim.x * 64)
        w[512 + i] = w[i + (i < 511)] + 1;
}
K g_half_pairs(ARGS) { ((__half *)out)[T] = T; __syncwarp(); if (T < 32) ((__half2 *)out)[T] = __floats2half2_rn(1, 2); } // BUG:g_half_pairs race_global
K g_half_pairs_ok(ARGS) { ((__half *)out)[T] = T; __syncthreads(); if (T < 32) ((__half2 *)out)[T] = __floats2half2_rn(1, 2); }
K g_scatter(ARGS) { w[(T * 7) % 60] = T; } // BUG:g_scatter race_global
K g_scatter_ok(ARGS) { w[(T * 7) % 64] = T; }
K g_transposed(ARGS)
{
    int x = T % 8, y = T / 8;
    w[y * 8 + x] = T;
    if (x < y) { int t = w[y * 8 + x]; w[y * 8 + x] = w[x * 8 + y]; w[x * 8 + y] = t; } // BUG:g_transposed race_global
}
K g_transposed_ok(ARGS)
{
    int x = T % 8, y = T / 8;
    w[y * 8 + x] = T;
    __syncthreads();
    if (x < y) { int t = w[y * 8 + x]; w[y * 8 + x] = w[x * 8 + y]; w[x * 8 + y] = t; }
}

// ---- shared memory ----

K h_volatile(ARGS)
{
    __shared__ volatile float a[32];
    a[T] = in[T];
    for (int o = 16; o > 0; o /= 2)
        if (T < o) a[T] += a[T + o]; // BUG:h_volatile race_shared block=32
    if (T == 0) out[0] = a[0];
}
K h_volatile_ok(ARGS)
{
    __shared__ volatile float a[32];
    a[T] = in[T];
    __syncwarp();
    for (int o = 16; o > 0; o /= 2) {
        float x = T < o ? a[T + o] : 0;
        __syncwarp();
        if (T < o) a[T] += x;
        __syncwarp();
    }
    if (T == 0) out[0] = a[0];
}
K h_carved(ARGS)
{
    extern __shared__ __align__(16) char sm[];
    float *a = (float *)sm, *b = (float *)(sm + 192);
    a[T] = T + 1; b[T] = in[T + 64]; // BUG:h_carved race_shared shared=512
    __syncthreads();
    out[T] = a[T] + b[T];
}
K h_carved_ok(ARGS)
{
    extern __shared__ __align__(16) char sm[];
    float *a = (float *)sm, *b = (float *)(sm + 256);
    a[T] = in[T];
    b[T] = in[T + 64];
    __syncthreads();
    out[T] = a[T] + b[T];
}
K h_dynamic_end(ARGS)
{
    extern __shared__ __align__(16) char sm[];
    ((float *)sm)[T + 64] = in[T]; // BUG:h_dynamic_end out_of_bounds shared=256
    __syncthreads();
    out[T] = ((float *)sm)[T + 64];
}
K h_dynamic_end_ok(ARGS)
{
    extern __shared__ __align__(16) char sm[];
    ((float *)sm)[T] = in[T];
    __syncthreads();
    out[T] = ((float *)sm)[T];
}
K h_two_bars(ARGS)
{
    __shared__ int a[128];
    a[T] = T;
    if (T < 64) asm volatile("bar.sync 1, 64;" ::: "memory");
    else asm volatile("bar.sync 2, 64;" ::: "memory");
    out[T] = a[T ^ 64]; // BUG:h_two_bars race_shared block=128
}
K h_two_bars_ok(ARGS)
{
    __shared__ int a[128];
    a[T] = T;
    if (T < 64) asm volatile("bar.sync 1, 64;" ::: "memory");
    else asm volatile("bar.sync 2, 64;" ::: "memory");
    out[T] = a[T ^ 32];
}
K h_producer(ARGS)
{
    __shared__ int a[32];
    for (int k = 0; k < 3; k++) {
        if (T < 32) {
            if (k) asm volatile("bar.sync 2, 64;" ::: "memory");
            a[T] = T + k; // BUG:h_producer race_shared
            asm volatile("bar.arrive 1, 64;" ::: "memory");
        } else {
            asm volatile("bar.sync 1, 64;" ::: "memory");
            if (k < 2) asm volatile("bar.arrive 2, 64;" ::: "memory");
            out[T + 64 * k] = a[T - 32];
        }
    }
}
K h_producer_ok(ARGS)
{
    __shared__ int a[32];
    for (int k = 0; k < 3; k++) {
        if (T < 32) {
            if (k) asm volatile("bar.sync 2, 64;" ::: "memory");
            a[T] = T + k;
            asm volatile("bar.arrive 1, 64;" ::: "memory");
        } else {
            asm volatile("bar.sync 1, 64;" ::: "memory");
            out[T + 64 * k] = a[T - 32];
            if (k < 2) asm volatile("bar.arrive 2, 64;" ::: "memory");
        }
    }
}
K h_union(ARGS)
{
    __shared__ uint64_t a[64];
    a[T] = T;
    __syncwarp();
    out[T] = ((int *)a)[2 * (T ^ 32) + 1]; // BUG:h_union race_shared
}
K h_union_ok(ARGS)
{
    __shared__ uint64_t a[64];
    a[T] = T;
    __syncthreads();
    out[T] = ((int *)a)[2 * (T ^ 32) + 1];
}
K h_part_set(ARGS)
{
    __shared__ __align__(4) char a[256];
    a[T * 4] = T; a[T * 4 + 1] = T; a[T * 4 + 2] = T;
    __syncthreads();
    out[T] = *(int *)(a + 4 * T); // BUG:h_part_set uninitialised
}
K h_part_set_ok(ARGS)
{
    __shared__ __align__(4) char a[256];
    a[T * 4] = T; a[T * 4 + 1] = T; a[T * 4 + 2] = T; a[T * 4 + 3] = 0;
    __syncthreads();
    out[T] = *(int *)(a + 4 * T);
}
K h_matrix(ARGS)
{
    __shared__ __align__(16) uint16_t a[64][8];
    int r;
    for (int i = 0; i < 8; i++) a[T][i] = T;
    __syncwarp();
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r) : "r"(su(a[T ^ 32])) : "memory"); // BUG:h_matrix race_shared
    out[T] = r;
}
K h_matrix_ok(ARGS)
{
    __shared__ __align__(16) uint16_t a[64][8];
    int r;
    for (int i = 0; i < 8; i++) a[T][i] = T;
    __syncthreads();
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r) : "r"(su(a[T ^ 32])) : "memory");
    out[T] = r;
}
K h_row_end(ARGS)
{
    __shared__ float a[8][8];
    a[T / 8][T % 8] = in[T];
    __syncthreads();
    out[T] = a[T / 8 + (n == 200)][T % 8]; // BUG:h_row_end out_of_bounds|uninitialised
}
K h_row_end_ok(ARGS)
{
    __shared__ float a[8][8];
    a[T / 8][T % 8] = in[T];
    __syncthreads();
    out[T] = a[(T / 8 + (n == 200)) % 8][T % 8];
}
K h_carry(ARGS)
{
    __shared__ int total;
    int sum = 0;
    for (int k = 0; k < 3; k++) {
        if (T == 63) total = sum + k;
        __syncthreads();
        sum += total; // BUG:h_carry race_shared
    }
    out[T] = sum;
}
K h_carry_ok(ARGS)
{
    __shared__ int total;
    int sum = 0;
    for (int k = 0; k < 3; k++) {
        if (T == 63) total = sum + k;
        __syncthreads();
        sum += total;
        __syncthreads();
    }
    out[T] = sum;
}
K h_local_pointer(ARGS)
{
    __shared__ int *a[64];
    int x[2] = {(int)T, n};
    a[T] = x;
    __syncthreads();
    out[T] = a[T ^ 1][n - 200]; // BUG:h_local_pointer out_of_bounds|race_shared
}
K h_local_pointer_ok(ARGS)
{
    __shared__ int *a[64];
    int x[2] = {(int)T, n};
    a[T] = x;
    __syncthreads();
    out[T] = a[T][n - 200];
}

// ---- warps and groups ----

K v_not_named(ARGS)
{
    __shared__ int a[32];
    a[T] = T;
    if (T < 16) __syncwarp(0x0000ffff);
    else __syncwarp(0x00ffff00); // BUG:v_not_named divergent_collective|shuffle_outside_mask block=32
    out[T] = a[T];
}
K v_not_named_ok(ARGS)
{
    __shared__ int a[32];
    a[T] = T;
    if (T < 16) __syncwarp(0x0000ffff);
    else __syncwarp(0xffff0000);
    out[T] = a[T];
}
K v_reduce(ARGS)
{
    if (T < 20) out[T] = __reduce_add_sync(0xffffffff, (int)T); // BUG:v_reduce divergent_collective block=32
    else out[T] = __popc(n);
}
K v_reduce_ok(ARGS)
{
    if (T < 20) out[T] = __reduce_add_sync(0x000fffff, (int)T);
    else out[T] = __popc(n);
}
K v_match(ARGS)
{
    for (int i = 0; i < T % 3; i++) w[T + 32 * i] = __match_any_sync(0xffffffff, (int)T / 4); // BUG:v_match divergent_collective block=32
    __syncwarp();
    out[T] = w[T];
}
K v_match_ok(ARGS)
{
    for (int i = 0; i < 3; i++) w[T + 32 * i] = __match_any_sync(0xffffffff, (int)T / 4);
    __syncwarp();
    out[T] = w[T];
}
K v_tile(ARGS)
{
    auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    int x = T;
    if (T % 32 < 16) x = tile.shfl_down(x, 1); // BUG:v_tile divergent_collective|shuffle_outside_mask
    else x = n;
    out[T] = x;
}
K v_tile_ok(ARGS)
{
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    int x = T;
    if (T % 32 < 16) x = tile.shfl_down(x, 1);
    else x = n;
    out[T] = x;
}
K v_half_mask(ARGS)
{
    unsigned mask = __ballot_sync(0xffffffff, T < 10);
    if (T < 12) out[T] = __shfl_sync(mask, (int)T, 0); // BUG:v_half_mask shuffle_outside_mask|divergent_collective block=32
}
K v_half_mask_ok(ARGS)
{
    unsigned mask = __ballot_sync(0xffffffff, T < 12);
    if (T < 12) out[T] = __shfl_sync(mask, (int)T, 0);
}

// ---- barriers ----

K q_loop(ARGS)
{
    __shared__ int a[64];
    for (int k = 0; k < 1 + T / 32; k++) {
        a[T] = k;
        __syncthreads(); // BUG:q_loop divergent_barrier|deadlock|barrier_after_exit
    }
    out[T] = a[T];
}
K q_loop_ok(ARGS)
{
    __shared__ int a[64];
    for (int k = 0; k < 2; k++) {
        a[T] = k;
        __syncthreads();
    }
    out[T] = a[T];
}
K q_or(ARGS)
{
    if (T % 32 < 20) out[T] = __syncthreads_or(T == 3); // BUG:q_or divergent_barrier|divergent_collective
    else out[T] = n;
}
K q_or_ok(ARGS)
{
    int x = __syncthreads_or(T == 3);
    out[T] = T % 32 < 20 ? x : n;
}
K q_swapped(ARGS)
{
    if (T < 32) {
        asm volatile("bar.sync 1, 64;" ::: "memory"); // BUG:q_swapped deadlock
        asm volatile("bar.sync 2, 64;" ::: "memory");
    } else {
        asm volatile("bar.sync 2, 64;" ::: "memory");
        asm volatile("bar.sync 1, 64;" ::: "memory");
    }
    out[T] = 1;
}
K q_swapped_ok(ARGS)
{
    asm volatile("bar.sync 1, 64;" ::: "memory");
    asm volatile("bar.sync 2, 64;" ::: "memory");
    out[T] = 1;
}

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
