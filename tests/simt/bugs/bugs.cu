// bugs.cu - injected bugs, one per kernel, and a correct twin of each (suffix _ok). The line of the
// mistake ends in "// BUG:kernel kind [grid=N] [block=N]"; table.c reads that. `in` is an input of 256
// floats, `out` 1024 floats nothing has written, `w` 1024 ints that are 0, n is 200.
#include <cuda_pipeline_primitives.h>
#define K extern "C" __global__ void
#define ARGS const float *in, float *out, int *w, int n
#define T threadIdx.x
#define B blockIdx.x

// ---- global memory, threads of one block ----

K g_lanes(ARGS) { out[T] = in[T]; out[T + 512] = out[T ^ 1]; } // BUG:g_lanes race_global block=32
K g_lanes_ok(ARGS) { out[T] = in[T]; __syncwarp(); out[T + 512] = out[T ^ 1]; }
K g_warps(ARGS) { w[T] = T; out[T] = w[T ^ 32]; } // BUG:g_warps race_global
K g_warps_ok(ARGS) { w[T] = T; __syncthreads(); out[T] = w[T ^ 32]; }
K g_shift(ARGS)
{
    w[T] = T;
    __syncthreads();
    int x = w[(T + 1) % 64];
    w[T] = x; // BUG:g_shift race_global
}
K g_shift_ok(ARGS)
{
    w[T] = T;
    __syncthreads();
    int x = w[(T + 1) % 64];
    __syncthreads();
    w[T] = x;
}
K g_half(ARGS) { ((short *)w)[T] = T; ((short *)w)[T ^ 32] = 7; } // BUG:g_half race_global
K g_half_ok(ARGS) { ((short *)w)[T] = T; __syncthreads(); ((short *)w)[T ^ 32] = 7; }
K g_byte(ARGS) { ((char *)w)[T] = T; ((char *)w)[T ^ 32] = 7; } // BUG:g_byte race_global
K g_byte_ok(ARGS) { ((char *)w)[T] = T; ((char *)w)[T + 64] = 7; }
K g_one_place(ARGS) { w[T / 2] = T; } // BUG:g_one_place race_global
K g_one_place_ok(ARGS) { if (T % 2 == 0) w[T / 2] = T; }
K g_same(ARGS) { w[0] = n; } // BUG:g_same same_value_store
K g_same_ok(ARGS) { if (T == 0) w[0] = n; }
K g_sum(ARGS) { w[0] += T; } // BUG:g_sum race_global
K g_sum_ok(ARGS) { atomicAdd(&w[0], T); }
K g_counted(ARGS) { atomicAdd(&w[0], 1); out[T] = w[0]; } // BUG:g_counted race_global
K g_counted_ok(ARGS) { atomicAdd(&w[0], 1); __syncthreads(); out[T] = w[0]; }
K g_zeroed(ARGS)
{
    if (T == 0) w[0] = n;
    atomicAdd(&w[0], 1); // BUG:g_zeroed race_global
}
K g_zeroed_ok(ARGS)
{
    if (T == 0) w[0] = n;
    __syncthreads();
    atomicAdd(&w[0], 1);
}
K g_scan(ARGS)
{
    w[T] = T;
    __syncthreads();
    for (int o = 1; o < 64; o *= 2) {
        int x = T >= o ? w[T - o] : 0;
        w[T] += x; // BUG:g_scan race_global
        __syncthreads();
    }
}
K g_scan_ok(ARGS)
{
    w[T] = T;
    __syncthreads();
    for (int o = 1; o < 64; o *= 2) {
        int x = T >= o ? w[T - o] : 0;
        __syncthreads();
        w[T] += x;
        __syncthreads();
    }
}

// ---- global memory, blocks ----

K b_overlap(ARGS) { out[B * 48 + T] = B; } // BUG:b_overlap race_global grid=3
K b_overlap_ok(ARGS) { out[B * 64 + T] = B; }
K b_bytes(ARGS) { ((char *)w)[T] = B + 1; } // BUG:b_bytes race_global grid=2
K b_bytes_ok(ARGS) { ((char *)w)[T * 2 + B] = B + 1; }
K b_halo(ARGS)
{
    w[B * 64 + T] = T;
    out[B * 64 + T] = w[(B * 64 + T + 127) % 128]; // BUG:b_halo race_global grid=2
}
K b_halo_ok(ARGS)
{
    w[B * 64 + T] = T;
    __syncthreads();
    out[B * 64 + T] = w[B * 64 + (T + 63) % 64];
}
K b_counted(ARGS)
{
    if (T == 0) atomicAdd(&w[0], 1);
    if (T == 0) out[B] = w[0]; // BUG:b_counted race_global grid=3
}
K b_counted_ok(ARGS) { if (T == 0) out[B] = atomicAdd(&w[0], 1); }
K b_last(ARGS)
{
    w[B * 64 + T] = T;
    __syncthreads();
    __shared__ int last;
    if (T == 0) last = atomicAdd(&w[1000], 1) == gridDim.x - 1;
    __syncthreads();
    if (last) out[T] = w[T] + w[64 + T]; // BUG:b_last race_global grid=2
}
K b_last_ok(ARGS)
{
    w[B * 64 + T] = T;
    __threadfence();
    __syncthreads();
    __shared__ int last;
    if (T == 0) last = atomicAdd(&w[1000], 1) == gridDim.x - 1;
    __syncthreads();
    if (last) out[T] = w[T] + w[64 + T];
}
K b_flag(ARGS)
{
    volatile int *flag = w + 1000;
    if (B == 0) {
        w[T] = T;
        __syncthreads();
        if (T == 0) *flag = 1;
    } else {
        while (!*flag) {}
        out[T] = w[T]; // BUG:b_flag missing_fence grid=2
    }
}
K b_flag_ok(ARGS)
{
    volatile int *flag = w + 1000;
    if (B == 0) {
        w[T] = T;
        __threadfence();
        __syncthreads();
        if (T == 0) *flag = 1;
    } else {
        while (!*flag) {}
        out[T] = w[T];
    }
}
K b_lock(ARGS)
{
    if (T == 0) {
        while (atomicCAS(&w[1000], 0, 1) != 0) {}
        w[0] += B + 1; // BUG:b_lock missing_fence grid=3
        atomicExch(&w[1000], 0);
    }
}
K b_lock_ok(ARGS)
{
    if (T == 0) {
        while (atomicCAS(&w[1000], 0, 1) != 0) {}
        __threadfence();
        w[0] += B + 1;
        __threadfence();
        atomicExch(&w[1000], 0);
    }
}
K b_same(ARGS) { if (T == 0) w[0] = n; } // BUG:b_same same_value_store grid=2
K b_same_ok(ARGS) { if (T == 0 && B == 0) w[0] = n; }

// ---- shared memory ----

K s_next(ARGS)
{
    __shared__ int a[16], b[64];
    b[T] = T;
    __syncthreads();
    a[T % 32] = T; // BUG:s_next out_of_bounds block=32
    __syncthreads();
    out[T] = a[T % 16] + b[T];
}
K s_next_ok(ARGS)
{
    __shared__ int a[32], b[64];
    b[T] = T;
    __syncthreads();
    a[T % 32] = T;
    __syncthreads();
    out[T] = a[T % 16] + b[T];
}
K s_before(ARGS)
{
    __shared__ int a[64], b[64];
    a[T] = T;
    b[T] = T;
    __syncthreads();
    out[T] = b[(int)T - n + 199] + a[T]; // BUG:s_before out_of_bounds
}
K s_before_ok(ARGS)
{
    __shared__ int a[64], b[64];
    a[T] = T;
    b[T] = T;
    __syncthreads();
    out[T] = b[(int)T - n + 200] + a[T];
}
K s_read(ARGS) { __shared__ int a[64]; a[T] = T; out[T] = a[T ^ 32]; } // BUG:s_read race_shared
K s_read_ok(ARGS) { __shared__ int a[64]; a[T] = T; __syncthreads(); out[T] = a[T ^ 32]; }
K s_warp(ARGS) { __shared__ int a[32]; a[T] = T; out[T] = a[T ^ 1]; } // BUG:s_warp race_shared block=32
K s_warp_ok(ARGS) { __shared__ int a[32]; a[T] = T; __syncwarp(); out[T] = a[T ^ 1]; }
K s_reuse(ARGS)
{
    __shared__ int a[64];
    int x = 0;
    for (int k = 0; k < 3; k++) {
        a[T] = T + k; // BUG:s_reuse race_shared
        __syncthreads();
        x += a[T ^ 32];
    }
    out[T] = x;
}
K s_reuse_ok(ARGS)
{
    __shared__ int a[64];
    int x = 0;
    for (int k = 0; k < 3; k++) {
        a[T] = T + k;
        __syncthreads();
        x += a[T ^ 32];
        __syncthreads();
    }
    out[T] = x;
}
K s_bytes(ARGS) { __shared__ char a[64]; a[T] = T; out[T] = a[T ^ 32]; } // BUG:s_bytes race_shared
K s_bytes_ok(ARGS) { __shared__ char a[64]; a[T] = T; __syncthreads(); out[T] = a[T ^ 32]; }
K s_place(ARGS) { __shared__ int a[32]; a[T / 2] = T; __syncthreads(); out[T] = a[T / 2]; } // BUG:s_place race_shared block=32
K s_place_ok(ARGS) { __shared__ int a[32]; if (T % 2) a[T / 2] = T; __syncthreads(); out[T] = a[T / 2]; }
K s_same(ARGS) { __shared__ int a; a = n; __syncthreads(); out[T] = a; } // BUG:s_same same_value_store
K s_same_ok(ARGS) { __shared__ int a; if (T == 0) a = n; __syncthreads(); out[T] = a; }
K s_histogram(ARGS)
{
    __shared__ int a[8];
    if (T < 8) a[T] = 0;
    __syncthreads();
    a[T / 8] += 1 + T; // BUG:s_histogram race_shared
    __syncthreads();
    out[T] = a[T / 8];
}
K s_histogram_ok(ARGS)
{
    __shared__ int a[8];
    if (T < 8) a[T] = 0;
    __syncthreads();
    atomicAdd(&a[T / 8], 1 + T);
    __syncthreads();
    out[T] = a[T / 8];
}
K s_counted(ARGS)
{
    __shared__ int a;
    if (T == 0) a = 0;
    __syncthreads();
    atomicAdd(&a, 1);
    out[T] = a; // BUG:s_counted race_shared
}
K s_counted_ok(ARGS)
{
    __shared__ int a;
    if (T == 0) a = 0;
    __syncthreads();
    atomicAdd(&a, 1);
    __syncthreads();
    out[T] = a;
}
K s_unset(ARGS) { __shared__ int a[64]; if (T < 32) a[T] = T; __syncthreads(); out[T] = a[T]; } // BUG:s_unset uninitialised
K s_unset_ok(ARGS) { __shared__ int a[64]; a[T] = T; __syncthreads(); out[T] = a[T]; }
K s_tree(ARGS)
{
    __shared__ float a[64];
    a[T] = in[T];
    __syncthreads();
    for (int o = 32; o > 0; o /= 2)
        if (T < o) a[T] += a[T + o]; // BUG:s_tree race_shared
    if (T == 0) out[0] = a[0];
}
K s_tree_ok(ARGS)
{
    __shared__ float a[64];
    a[T] = in[T];
    __syncthreads();
    for (int o = 32; o > 0; o /= 2) {
        if (T < o) a[T] += a[T + o];
        __syncthreads();
    }
    if (T == 0) out[0] = a[0];
}
K s_transpose(ARGS)
{
    __shared__ float a[8][8];
    a[T / 8][T % 8] = in[T];
    out[T] = a[T % 8][T / 8]; // BUG:s_transpose race_shared
}
K s_transpose_ok(ARGS)
{
    __shared__ float a[8][8];
    a[T / 8][T % 8] = in[T];
    __syncthreads();
    out[T] = a[T % 8][T / 8];
}
K s_stage(ARGS)
{
    __shared__ float a[2][64];
    float x = 0;
    a[0][T] = in[T];
    for (int k = 0; k < 3; k++) {
        __syncthreads();
        x += a[k % 2][T ^ 32];
        a[k % 2][T] = in[T + 64]; // BUG:s_stage race_shared
        a[(k + 1) % 2][T] = in[T + 64];
    }
    out[T] = x;
}
K s_stage_ok(ARGS)
{
    __shared__ float a[2][64];
    float x = 0;
    a[0][T] = in[T];
    for (int k = 0; k < 3; k++) {
        __syncthreads();
        x += a[k % 2][T ^ 32];
        a[(k + 1) % 2][T] = in[T + 64];
    }
    out[T] = x;
}

// ---- warps ----

K w_index(ARGS) { if (T < 16) out[T] = __shfl_sync(0xffff, T, 20); } // BUG:w_index shuffle_outside_mask block=32
K w_index_ok(ARGS) { if (T < 16) out[T] = __shfl_sync(0xffff, T, 12); }
K w_xor(ARGS) { if (T < 16) out[T] = __shfl_xor_sync(0xffff, T, 16); } // BUG:w_xor shuffle_outside_mask block=32
K w_xor_ok(ARGS) { if (T < 16) out[T] = __shfl_xor_sync(0xffff, T, 8); }
K w_down(ARGS) { if (T < 8) out[T] = __shfl_down_sync(0xff, T, 8); } // BUG:w_down shuffle_outside_mask block=32
K w_down_ok(ARGS) { if (T < 8) out[T] = __shfl_down_sync(0xff, T, 4); }
K w_left(ARGS)
{
    if (T >= 24) return;
    out[T] = __shfl_xor_sync(0xffffffff, T, 16); // BUG:w_left shuffle_outside_mask block=32
}
K w_left_ok(ARGS)
{
    int x = __shfl_xor_sync(0xffffffff, T, 16);
    if (T >= 24) return;
    out[T] = x;
}
K w_branch(ARGS)
{
    if (T % 2) out[T] = __shfl_sync(0xffffffff, T, 1); // BUG:w_branch divergent_collective block=32
    else out[T] = 1;
}
K w_branch_ok(ARGS)
{
    int x = __shfl_sync(0xffffffff, T, 1);
    out[T] = T % 2 ? x : 1;
}
K w_vote(ARGS)
{
    if (T < 8) out[T] = __ballot_sync(0xffffffff, T & 1); // BUG:w_vote divergent_collective block=32
    else out[T] = 1;
}
K w_vote_ok(ARGS)
{
    int x = __ballot_sync(0xffffffff, T & 1);
    out[T] = T < 8 ? x : 1;
}

// ---- barriers ----

K r_branch(ARGS) { if (T % 2) { out[T] = 1; __syncthreads(); } else out[T] = 2; } // BUG:r_branch divergent_barrier block=32
K r_branch_ok(ARGS) { out[T] = T % 2 ? 1 : 2; __syncthreads(); }
K r_left(ARGS)
{
    if (T >= 32) return;
    __syncthreads(); // BUG:r_left barrier_after_exit
    out[T] = 1;
}
K r_left_ok(ARGS)
{
    __syncthreads();
    if (T >= 32) return;
    out[T] = 1;
}
K r_count(ARGS)
{
    if (T < 32) asm volatile("bar.sync 1, 64;"); // BUG:r_count deadlock
    out[T] = 1;
}
K r_count_ok(ARGS) { asm volatile("bar.sync 1, 64;"); out[T] = 1; }

// ---- bounds and the like ----

K m_read(ARGS) { out[T] = in[T * 8]; } // BUG:m_read out_of_bounds
K m_read_ok(ARGS) { out[T] = in[T * 4]; }
K m_write(ARGS) { out[T + 1000] = T; } // BUG:m_write out_of_bounds
K m_write_ok(ARGS) { out[T + 960] = T; }
K m_before(ARGS) { out[T] = in[(int)T - 1]; } // BUG:m_before out_of_bounds
K m_before_ok(ARGS) { out[T] = in[T ? T - 1 : 0]; }
K m_tail(ARGS) { int i = B * 64 + T; if (i <= n + 56) out[i] = in[i]; } // BUG:m_tail out_of_bounds grid=5
K m_tail_ok(ARGS) { int i = B * 64 + T; if (i < n + 56) out[i] = in[i]; }
K m_vector(ARGS) { float4 v = ((const float4 *)in)[T + 1]; out[T] = v.x + v.w; } // BUG:m_vector out_of_bounds
K m_vector_ok(ARGS) { float4 v = ((const float4 *)in)[T]; out[T] = v.x + v.w; }
K m_align(ARGS) { float2 v = *(const float2 *)(in + T + 1); out[T] = v.x + v.y; } // BUG:m_align misaligned
K m_align_ok(ARGS) { float2 v = *(const float2 *)(in + 2 * T); out[T] = v.x + v.y; }
K m_input(ARGS) { ((float *)in)[T] = 0; } // BUG:m_input write_to_input
K m_input_ok(ARGS) { out[T] = 0; }
K m_unset(ARGS) { out[T] += 1; } // BUG:m_unset uninitialised
K m_unset_ok(ARGS) { out[T] = 1; }
K m_null(ARGS) { float *p = (float *)(size_t)(n - 200); p[T] = 1; } // BUG:m_null out_of_bounds
K m_null_ok(ARGS) { float *p = n == 200 ? out : nullptr; p[T] = 1; }
K m_local(ARGS)
{
    int a[8];
    for (int i = 0; i < 8; i++) a[(i + n) % 8] = i;
    out[T] = a[n / 20]; // BUG:m_local out_of_bounds
}
K m_local_ok(ARGS)
{
    int a[8];
    for (int i = 0; i < 8; i++) a[(i + n) % 8] = i;
    out[T] = a[n / 40];
}
K m_wrap(ARGS) { int i = (int)T * n * 1000000; out[T] = in[i]; } // BUG:m_wrap out_of_bounds
K m_wrap_ok(ARGS) { int i = (int)T * n * 1000000; out[T] = in[(unsigned)i % 256]; }
K m_trap(ARGS) { if (n > 0) __trap(); out[T] = 1; } // BUG:m_trap trap
K m_trap_ok(ARGS) { if (n < 0) __trap(); out[T] = 1; }

// ---- asynchronous copies ----

K a_wait(ARGS)
{
    __shared__ __align__(16) float a[256];
    __pipeline_memcpy_async(a + 4 * T, in + 4 * T, 16);
    __pipeline_commit();
    out[T] = a[4 * T]; // BUG:a_wait async_not_waited
    __pipeline_wait_prior(0);
}
K a_wait_ok(ARGS)
{
    __shared__ __align__(16) float a[256];
    __pipeline_memcpy_async(a + 4 * T, in + 4 * T, 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[T] = a[4 * T];
}
K a_sync(ARGS)
{
    __shared__ __align__(16) float a[256];
    __pipeline_memcpy_async(a + 4 * T, in + 4 * T, 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[T] = a[4 * (T ^ 32)]; // BUG:a_sync race_shared
}
K a_sync_ok(ARGS)
{
    __shared__ __align__(16) float a[256];
    __pipeline_memcpy_async(a + 4 * T, in + 4 * T, 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    out[T] = a[4 * (T ^ 32)];
}
K a_store(ARGS)
{
    __shared__ __align__(16) float a[256];
    __pipeline_memcpy_async(a + 4 * T, in + 4 * T, 16);
    a[4 * T] = 1; // BUG:a_store async_overwrite
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[T] = a[4 * T];
}
K a_store_ok(ARGS)
{
    __shared__ __align__(16) float a[256];
    __pipeline_memcpy_async(a + 4 * T, in + 4 * T, 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    a[4 * T] = 1;
    out[T] = a[4 * T];
}

// ---- helpers that are inlined ----

__device__ __forceinline__ void put(float *p, int i, float x)
{
    p[i] = x; // BUG:p_inlined out_of_bounds
}
K p_inlined(ARGS)
{
    put(out, T, in[T]);
    put(out, T + 1000, in[T]); // CALLER:p_inlined
}
K p_inlined_ok(ARGS)
{
    put(out, T, in[T]);
    put(out, T + 960, in[T]);
}
__device__ __noinline__ float take(const float *p, int i)
{
    return p[i]; // BUG:p_called out_of_bounds
}
K p_called(ARGS)
{
    out[T] = take(in, T);
    out[T + 64] = take(in, T + 200); // CALLER:p_called
}
K p_called_ok(ARGS)
{
    out[T] = take(in, T);
    out[T + 64] = take(in, T + 192);
}
K p_loop(ARGS)
{
    for (int i = T; i < n + 100; i += 64) out[i] = in[i]; // BUG:p_loop out_of_bounds
}
K p_loop_ok(ARGS)
{
    for (int i = T; i < n; i += 64) out[i] = in[i];
}
