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
