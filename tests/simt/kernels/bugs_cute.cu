// Mistakes as they happen in CuTe kernels: each kernel has one, and a correct
// twin (suffix _ok). The line with the mistake ends in "BUG:name". Kernels are
// launched with 128 threads; `in` has 128 floats (256 halves), `out` 128.
#include <cuda_fp16.h>
#include <cute/tensor.hpp>
using namespace cute;
#define K extern "C" __global__ void
#define ARGS const float *in, float *out, int n

// ---- memory ----
template <bool Bug>
__device__ void tile_tail(ARGS)
{
    Tensor g = make_tensor(make_gmem_ptr(in), make_shape(n));
    Tensor t = local_tile(g, Shape<_96>{}, make_coord(blockIdx.x)); // (96): the second tile has a tail
    int i = threadIdx.x, at = blockIdx.x * 96 + i;
    if (i < 96 && (Bug || at < n))
        out[at % 128] = t(i); // BUG:cute_tile_tail
}
K cute_tile_tail(ARGS) { tile_tail<true>(in, out, n); }
K cute_tile_tail_ok(ARGS) { tile_tail<false>(in, out, n); }

template <int Stride_>
__device__ void wrong_stride(ARGS)
{
    Tensor o = make_tensor(make_gmem_ptr(out), Layout<Shape<_8, _16>, Stride<Int<Stride_>, _1>>{}); // (8,16)
    Tensor g = make_tensor(make_gmem_ptr(in), Layout<Shape<_8, _16>, Stride<_16, _1>>{});
    auto thr = Layout<Shape<_8, _16>, Stride<_16, _1>>{};
    Tensor to = local_partition(o, thr, threadIdx.x);
    Tensor tg = local_partition(g, thr, threadIdx.x);
    copy(tg, to); // BUG:cute_wrong_stride
}
K cute_wrong_stride(ARGS) { wrong_stride<17>(in, out, n); }
K cute_wrong_stride_ok(ARGS) { wrong_stride<16>(in, out, n); }

template <int Pad>
__device__ void smem_layout(ARGS)
{
    __shared__ float smem[8 * 16];
    Tensor s = make_tensor(make_smem_ptr(smem), Layout<Shape<_8, _16>, Stride<Int<16 + Pad>, _1>>{});
    s(threadIdx.x / 16, threadIdx.x % 16) = in[threadIdx.x]; // BUG:cute_smem_layout
    __syncthreads();
    out[threadIdx.x] = s(threadIdx.x / 32, threadIdx.x % 16);
}
K cute_smem_layout(ARGS) { smem_layout<4>(in, out, n); }
K cute_smem_layout_ok(ARGS) { smem_layout<0>(in, out, n); }

K cute_before_start(ARGS)
{
    out[threadIdx.x] = in[(int)threadIdx.x - 1]; // BUG:cute_before_start
}
K cute_before_start_ok(ARGS) { out[threadIdx.x] = in[threadIdx.x ? (int)threadIdx.x - 1 : 0]; }

K cute_far_away(ARGS)
{
    unsigned i = threadIdx.x * 0x1000001u;
    out[threadIdx.x] = in[i]; // BUG:cute_far_away
}
K cute_far_away_ok(ARGS)
{
    unsigned i = threadIdx.x * 0x1000001u;
    out[threadIdx.x] = in[i & 127];
}
K cute_freed(ARGS)
{
    out[threadIdx.x] = in[threadIdx.x]; // BUG:cute_freed
}
K cute_freed_ok(ARGS) { out[threadIdx.x] = in[threadIdx.x]; }

template <int Off>
__device__ void vec_copy(ARGS)
{
    if (threadIdx.x >= 16) return;
    Tensor g = make_tensor(make_gmem_ptr(in + Off), make_shape(Int<64>{}));
    Tensor o = make_tensor(make_gmem_ptr(out), make_shape(Int<64>{}));
    auto tc = make_tiled_copy(Copy_Atom<UniversalCopy<uint128_t>, float>{}, Layout<_16>{}, Layout<_4>{});
    auto thr = tc.get_slice(threadIdx.x);
    Tensor r = make_fragment_like(thr.partition_D(o));
    copy(tc, thr.partition_S(g), r); // BUG:cute_vec_misaligned
    copy(tc, r, thr.partition_D(o));
}
K cute_vec_misaligned(ARGS) { vec_copy<1>(in, out, n); }
K cute_vec_misaligned_ok(ARGS) { vec_copy<4>(in, out, n); }

template <int Pitch>
__device__ void ldsm(ARGS)
{
    __shared__ alignas(16) half s[16 * 48];
    for (int i = threadIdx.x; i < 16 * 48; i += 128)
        s[i] = __float2half(in[i % 128]);
    __syncthreads();
    if (threadIdx.x >= 32) return;
    unsigned r[4], at = (unsigned)__cvta_generic_to_shared(s + (threadIdx.x % 16) * Pitch + threadIdx.x / 16 * 8);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at)); // BUG:cute_ldsm_misaligned
    out[threadIdx.x] = __uint_as_float(r[0] ^ r[1] ^ r[2] ^ r[3]);
}
K cute_ldsm_misaligned(ARGS) { ldsm<20>(in, out, n); }
K cute_ldsm_misaligned_ok(ARGS) { ldsm<24>(in, out, n); }

template <int Off>
__device__ void cp_misaligned(ARGS)
{
    __shared__ alignas(16) float s[128];
    if (threadIdx.x < 16) {
        unsigned at = (unsigned)__cvta_generic_to_shared(s + threadIdx.x * 4);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(in + threadIdx.x * 4 + Off)); // BUG:cute_cp_misaligned
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    out[threadIdx.x] = threadIdx.x < 64 ? s[threadIdx.x] : 0.0f;
}
K cute_cp_misaligned(ARGS) { cp_misaligned<2>(in, out, n); }
K cute_cp_misaligned_ok(ARGS) { cp_misaligned<4>(in, out, n); }

template <int Off>
__device__ void cp_beyond(ARGS)
{
    __shared__ alignas(16) float s[128];
    unsigned at = (unsigned)__cvta_generic_to_shared(s + threadIdx.x);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(in + threadIdx.x + Off)); // BUG:cute_cp_beyond
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x ^ 1];
}
K cute_cp_beyond(ARGS) { cp_beyond<8>(in, out, n); }
K cute_cp_beyond_ok(ARGS) { cp_beyond<0>(in, out, n); }

K cute_atomic_input(ARGS)
{
    out[threadIdx.x] = in[threadIdx.x];
    atomicAdd((float *)in + threadIdx.x % 4, 1.0f); // BUG:cute_atomic_input
}
K cute_atomic_input_ok(ARGS) { out[threadIdx.x] = in[threadIdx.x]; }

K cute_local_array(ARGS)
{
    float x[8];
    for (int i = 0; i < 8; i++)
        x[i] = in[threadIdx.x] * i;
    out[threadIdx.x] = x[n - 120 + (threadIdx.x & 1)]; // BUG:cute_local_array
}
K cute_local_array_ok(ARGS)
{
    float x[8];
    for (int i = 0; i < 8; i++)
        x[i] = in[threadIdx.x] * i;
    out[threadIdx.x] = x[(n + (threadIdx.x & 1)) & 7];
}

// ---- races in shared memory ----
// A product of 8x8 tiles through shared memory; Miss says which barrier is left out.
template <int Miss>
__device__ void tile_product(ARGS)
{
    __shared__ float sa[8 * 8], sb[8 * 8];
    Tensor sA = make_tensor(make_smem_ptr(sa), Layout<Shape<_8, _8>, Stride<_8, _1>>{});
    Tensor sB = make_tensor(make_smem_ptr(sb), Layout<Shape<_8, _8>, Stride<_1, _8>>{});
    Tensor gA = make_tensor(make_gmem_ptr(in), Layout<Shape<_8, _8, _2>, Stride<_8, _1, _64>>{});
    int i = threadIdx.x / 8 % 8, j = threadIdx.x % 8;
    float acc = 0;
    for (int t = 0; t < 2; t++) {
        float *to = threadIdx.x < 64 ? &sA(i, j) : &sB(i, j);
        *to = gA(i, j, threadIdx.x < 64 ? t : 1 - t); // BUG:cute_no_second_sync
        if (Miss != 1) __syncthreads();
        for (int p = 0; p < 8; p++)
            acc += sA(i, p) * sB(p, j); // BUG:cute_no_first_sync
        if (Miss != 2) __syncthreads();
    }
    out[threadIdx.x] = acc;
}
K cute_no_first_sync(ARGS) { tile_product<1>(in, out, n); }
K cute_no_first_sync_ok(ARGS) { tile_product<0>(in, out, n); }
K cute_no_second_sync(ARGS) { tile_product<2>(in, out, n); }
K cute_no_second_sync_ok(ARGS) { tile_product<0>(in, out, n); }

template <bool Bug>
__device__ void syncwarp(ARGS)
{
    __shared__ float s[128];
    volatile float *v = s;
    v[threadIdx.x] = in[threadIdx.x];
    for (int o = 16; o; o >>= 1) {
        if (!Bug) __syncwarp();
        float x = v[threadIdx.x ^ o]; // BUG:cute_no_syncwarp
        __syncwarp();
        v[threadIdx.x] = v[threadIdx.x] + x;
    }
    __syncwarp();
    out[threadIdx.x] = v[threadIdx.x];
}
K cute_no_syncwarp(ARGS) { syncwarp<true>(in, out, n); }
K cute_no_syncwarp_ok(ARGS) { syncwarp<false>(in, out, n); }

template <bool Bug>
__device__ void named(ARGS)
{
    __shared__ float s[64];
    int t = threadIdx.x & 63;
    if (threadIdx.x < 64) {
        s[t] = in[t];
        asm volatile("bar.arrive 1, 128;" ::: "memory");
    } else {
        if (!Bug) asm volatile("bar.sync 1, 128;" ::: "memory");
        out[t] = s[63 - t]; // BUG:cute_named_missing
        if (Bug) asm volatile("bar.sync 1, 128;" ::: "memory");
    }
}
K cute_named_missing(ARGS) { named<true>(in, out, n); }
K cute_named_missing_ok(ARGS) { named<false>(in, out, n); }

template <bool Bug>
__device__ void mbar(ARGS)
{
    __shared__ float s[64];
    __shared__ alignas(8) unsigned long long bar;
    unsigned at = (unsigned)__cvta_generic_to_shared(&bar);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" ::"r"(at) : "memory");
    __syncthreads();
    int t = threadIdx.x & 63;
    if (threadIdx.x < 64) {
        s[t] = in[t];
        asm volatile("{ .reg .b64 st; mbarrier.arrive.shared.b64 st, [%0]; }" ::"r"(at) : "memory");
    } else {
        if (!Bug)
            asm volatile("{ .reg .pred p; L%=: mbarrier.test_wait.parity.shared.b64 p, [%0], 0; @!p bra L%=; }" ::"r"(at)
                         : "memory");
        out[t] = s[63 - t]; // BUG:cute_mbar_missing
    }
}
K cute_mbar_missing(ARGS) { mbar<true>(in, out, n); }
K cute_mbar_missing_ok(ARGS) { mbar<false>(in, out, n); }

template <bool Bug>
__device__ void count_plain(ARGS)
{
    __shared__ int bins[4];
    if (threadIdx.x < 4) bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&bins[threadIdx.x / 32 * 3 % 4], 1);
    if (!Bug) __syncthreads();
    out[threadIdx.x] = (float)*(volatile int *)&bins[threadIdx.x % 4]; // BUG:cute_atomic_read
}
K cute_atomic_read(ARGS) { count_plain<true>(in, out, n); }
K cute_atomic_read_ok(ARGS) { count_plain<false>(in, out, n); }

template <bool Bug>
__device__ void count_unset(ARGS)
{
    __shared__ int bins[4];
    if (!Bug && threadIdx.x < 4) bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&bins[threadIdx.x % 4], 1); // BUG:cute_atomic_unset
    __syncthreads();
    out[threadIdx.x] = (float)bins[threadIdx.x % 4];
}
K cute_atomic_unset(ARGS) { count_unset<true>(in, out, n); }
K cute_atomic_unset_ok(ARGS) { count_unset<false>(in, out, n); }

template <bool Bug>
__device__ void reset_late(ARGS)
{
    __shared__ int bins[4];
    if (threadIdx.x < 4) bins[threadIdx.x] = 0;
    if (!Bug) __syncthreads();
    atomicAdd(&bins[(threadIdx.x / 32 + 1) % 4], 1); // BUG:cute_atomic_early
    __syncthreads();
    out[threadIdx.x] = (float)bins[threadIdx.x % 4];
}
K cute_atomic_early(ARGS) { reset_late<true>(in, out, n); }
K cute_atomic_early_ok(ARGS) { reset_late<false>(in, out, n); }

template <bool Bug>
__device__ void stsm(ARGS)
{
    __shared__ alignas(16) unsigned s[128];
    if (threadIdx.x < 32) {
        unsigned at = (unsigned)__cvta_generic_to_shared(s + threadIdx.x * 4), x = __float_as_uint(in[threadIdx.x]);
        for (int i = 0; i < 4; i++)
            s[threadIdx.x * 4 + i] = x;
        (void)at;
    }
    if (!Bug) __syncthreads();
    if (threadIdx.x >= 96) {
        unsigned r, at = (unsigned)__cvta_generic_to_shared(s + threadIdx.x % 32 * 4);
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r) : "r"(at)); // BUG:cute_ldsm_race
        out[threadIdx.x] = __uint_as_float(r);
    }
}
K cute_ldsm_race(ARGS) { stsm<true>(in, out, n); }
K cute_ldsm_race_ok(ARGS) { stsm<false>(in, out, n); }

// ---- never written ----
template <int Rows>
__device__ void half_tile(ARGS)
{
    __shared__ float smem[8 * 16];
    Tensor s = make_tensor(make_smem_ptr(smem), Layout<Shape<_8, _16>, Stride<_16, _1>>{});
    if (threadIdx.x < Rows * 16) s(threadIdx.x / 16, threadIdx.x % 16) = in[threadIdx.x];
    __syncthreads();
    float x = 0;
    for (int i = 0; i < 8; i++)
        x += s(i, threadIdx.x % 16); // BUG:cute_half_tile
    out[threadIdx.x] = x;
}
K cute_half_tile(ARGS) { half_tile<7>(in, out, n); }
K cute_half_tile_ok(ARGS) { half_tile<8>(in, out, n); }

template <bool Bug>
__device__ void accumulate(ARGS)
{
    Tensor o = make_tensor(make_gmem_ptr(out), Layout<_128>{});
    if (!Bug) o(threadIdx.x) = 0;
    o(threadIdx.x) += in[threadIdx.x]; // BUG:cute_accumulate
}
K cute_accumulate(ARGS) { accumulate<true>(in, out, n); }
K cute_accumulate_ok(ARGS) { accumulate<false>(in, out, n); }

template <int Warps>
__device__ void partials(ARGS)
{
    __shared__ float part[8];
    float x = in[threadIdx.x];
    for (int o = 16; o; o >>= 1)
        x += __shfl_xor_sync(~0u, x, o);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
    __syncthreads();
    x = 0;
    for (int i = 0; i < Warps; i++)
        x += part[i]; // BUG:cute_partials
    out[threadIdx.x] = x;
}
K cute_partials(ARGS) { partials<8>(in, out, n); }
K cute_partials_ok(ARGS) { partials<4>(in, out, n); }

// ---- asynchronous copies ----
// A ring of Stages tiles of 32 floats; Wait: how many groups may be left under way.
template <int Stages, int Wait, bool Commit, bool SyncBefore>
__device__ void ring(ARGS)
{
    __shared__ alignas(16) float s[Stages][32];
    auto issue = [&](int t) {
        if (threadIdx.x < 32 && t < 4) {
            unsigned at = (unsigned)__cvta_generic_to_shared(&s[t % Stages][threadIdx.x]);
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(in + t * 32 + threadIdx.x) : "memory"); // BUG:cute_ring_no_sync
        }
        if (Commit) asm volatile("cp.async.commit_group;" ::: "memory");
    };
    for (int t = 0; t < Stages - 1; t++)
        issue(t);
    for (int t = 0; t < 4; t++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(Wait) : "memory");
        if (SyncBefore) __syncthreads();
        issue(t + Stages - 1);
        if (!SyncBefore) __syncthreads();
        float x = s[t % Stages][(threadIdx.x + 1) % 32]; // BUG:cute_ring_wait BUG2:cute_ring_commit
        if (threadIdx.x < 32) out[t * 32 + threadIdx.x] = x;
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
}
K cute_ring_wait(ARGS) { ring<3, 2, true, true>(in, out, n); }
K cute_ring_wait_ok(ARGS) { ring<3, 1, true, true>(in, out, n); }
K cute_ring_commit(ARGS) { ring<3, 1, false, true>(in, out, n); }
K cute_ring_commit_ok(ARGS) { ring<3, 1, true, true>(in, out, n); }
K cute_ring_no_sync(ARGS) { ring<2, 0, true, false>(in, out, n); }
K cute_ring_no_sync_ok(ARGS) { ring<2, 0, true, true>(in, out, n); }

template <bool Bug>
__device__ void prefetch(ARGS)
{
    __shared__ alignas(16) float s[128];
    unsigned at = (unsigned)__cvta_generic_to_shared(s + threadIdx.x);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(in + threadIdx.x) : "memory");
    if (!Bug) asm volatile("cp.async.wait_all;" ::: "memory");
    s[threadIdx.x] = 1.0f; // BUG:cute_async_overwrite
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x ^ 1];
}
K cute_async_overwrite(ARGS) { prefetch<true>(in, out, n); }
K cute_async_overwrite_ok(ARGS) { prefetch<false>(in, out, n); }

template <bool Bug>
__device__ void own_wait(ARGS)
{
    // a wait concerns the thread's own copies alone: others need a barrier too
    __shared__ alignas(16) float s[128];
    unsigned at = (unsigned)__cvta_generic_to_shared(s + threadIdx.x);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(in + threadIdx.x) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    if (!Bug) __syncthreads();
    out[threadIdx.x] = s[127 - threadIdx.x]; // BUG:cute_async_own_wait
}
K cute_async_own_wait(ARGS) { own_wait<true>(in, out, n); }
K cute_async_own_wait_ok(ARGS) { own_wait<false>(in, out, n); }

// ---- blocks against each other ----
template <bool Bug>
__device__ void split_k(ARGS)
{
    Tensor o = make_tensor(make_gmem_ptr(out), Layout<_32>{});
    if (threadIdx.x >= 32) return;
    float x = in[blockIdx.x * 32 + threadIdx.x];
    if (Bug)
        o(threadIdx.x) = x; // BUG:cute_split_k
    else
        atomicAdd(&o(threadIdx.x), x);
}
K cute_split_k(ARGS) { split_k<true>(in, out, n); }
K cute_split_k_ok(ARGS) { split_k<false>(in, out, n); }

template <int Tile>
__device__ void overlap(ARGS)
{
    Tensor o = make_tensor(make_gmem_ptr(out), Layout<_128>{});
    if (threadIdx.x < 32) o(blockIdx.x * Tile + threadIdx.x) = in[threadIdx.x] + blockIdx.x; // BUG:cute_overlap_30
}
K cute_overlap_30(ARGS) { overlap<30>(in, out, n); }
K cute_overlap_30_ok(ARGS) { overlap<32>(in, out, n); }

template <bool Bug>
__device__ void neighbour(ARGS)
{
    // reads what the next block writes
    if (threadIdx.x < 32) {
        out[blockIdx.x * 32 + threadIdx.x] = in[threadIdx.x];
        if (Bug && blockIdx.x) out[blockIdx.x * 32 + threadIdx.x] += out[(blockIdx.x - 1) * 32 + threadIdx.x]; // BUG:cute_neighbour
    }
}
K cute_neighbour(ARGS) { neighbour<true>(in, out, n); }
K cute_neighbour_ok(ARGS) { neighbour<false>(in, out, n); }

template <bool Bug>
__device__ void counted(ARGS)
{
    // a sum by atomics does not order the plain stores beside it
    if (threadIdx.x < 31) out[Bug ? threadIdx.x : blockIdx.x * 32 + threadIdx.x] = in[threadIdx.x] + blockIdx.x; // BUG:cute_counted
    if (threadIdx.x == 0) atomicAdd(&out[127], 1.0f);
}
K cute_counted(ARGS) { counted<true>(in, out, n); }
K cute_counted_ok(ARGS) { counted<false>(in, out, n); }

// ---- barriers and collectives ----
template <bool Bug>
__device__ void sync_in_loop(ARGS)
{
    __shared__ float s[128];
    s[threadIdx.x] = in[threadIdx.x];
    int turns = Bug && threadIdx.x % 32 < 16 ? n / 8 : n / 8 + 1;
    for (int i = 0; i < turns; i++)
        __syncthreads(); // BUG:cute_sync_in_loop
    out[threadIdx.x] = s[threadIdx.x ^ 1];
}
K cute_sync_in_loop(ARGS) { sync_in_loop<true>(in, out, n); }
K cute_sync_in_loop_ok(ARGS) { sync_in_loop<false>(in, out, n); }

template <bool Bug>
__device__ void sync_in_branch(ARGS)
{
    __shared__ float s[128];
    s[threadIdx.x] = in[threadIdx.x];
    if (Bug ? threadIdx.x % 2 == 0 : n > 0) {
        __syncthreads(); // BUG:cute_sync_in_branch
    } else {
        s[threadIdx.x] = 0;
        __syncthreads();
    }
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];
}
K cute_sync_in_branch(ARGS) { sync_in_branch<true>(in, out, n); }
K cute_sync_in_branch_ok(ARGS) { sync_in_branch<false>(in, out, n); }

template <int Count>
__device__ void bar_count(ARGS)
{
    __shared__ float s[128];
    s[threadIdx.x] = in[threadIdx.x];
    asm volatile("bar.sync 2, %0;" ::"n"(Count) : "memory"); // BUG:cute_bar_count
    out[threadIdx.x] = s[threadIdx.x ^ 64];
}
K cute_bar_count(ARGS) { bar_count<160>(in, out, n); }
K cute_bar_count_ok(ARGS) { bar_count<128>(in, out, n); }

template <int Id>
__device__ void bar_id(ARGS)
{
    __shared__ float s[64];
    int t = threadIdx.x & 63;
    if (threadIdx.x < 64) {
        s[t] = in[t];
        asm volatile("bar.arrive 1, 128;" ::: "memory");
    } else {
        asm volatile("bar.sync %0, 128;" ::"n"(Id) : "memory"); // BUG:cute_bar_id
        out[t] = s[63 - t];
    }
}
K cute_bar_id(ARGS) { bar_id<3>(in, out, n); }
K cute_bar_id_ok(ARGS) { bar_id<1>(in, out, n); }

template <int Phase>
__device__ void mbar_phase(ARGS)
{
    __shared__ float s[128];
    __shared__ alignas(8) unsigned long long bar;
    unsigned at = (unsigned)__cvta_generic_to_shared(&bar);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 128;" ::"r"(at) : "memory");
    __syncthreads();
    s[threadIdx.x] = in[threadIdx.x];
    asm volatile("{ .reg .b64 st; mbarrier.arrive.shared.b64 st, [%0]; }" ::"r"(at) : "memory");
    for (int i = 0; i <= Phase; i++)
        asm volatile("{ .reg .pred p; L%=: mbarrier.test_wait.parity.shared.b64 p, [%0], %1; @!p bra L%=; }" ::"r"(at), "r"(i & 1) : "memory"); // BUG:cute_mbar_phase
    out[threadIdx.x] = s[threadIdx.x ^ 64];
}
K cute_mbar_phase(ARGS) { mbar_phase<1>(in, out, n); }
K cute_mbar_phase_ok(ARGS) { mbar_phase<0>(in, out, n); }

template <bool Bug>
__device__ void shuffle_branch(ARGS)
{
    float x = in[threadIdx.x];
    if (!Bug) x += __shfl_xor_sync(~0u, x, 1);
    if (threadIdx.x % 32 < 16) {
        if (Bug) x += __shfl_xor_sync(~0u, x, 1); // BUG:cute_shuffle_branch
        x *= 2;
    }
    out[threadIdx.x] = x;
}
K cute_shuffle_branch(ARGS) { shuffle_branch<true>(in, out, n); }
K cute_shuffle_branch_ok(ARGS) { shuffle_branch<false>(in, out, n); }

template <bool Bug>
__device__ void ballot_loop(ARGS)
{
    unsigned b = 0;
    for (int i = 0; i < (Bug ? threadIdx.x % 4 : n / 32); i++)
        b += __ballot_sync(~0u, in[threadIdx.x] > 0.1f * i); // BUG:cute_ballot_loop
    __syncwarp();
    out[threadIdx.x] = (float)__popc(b);
}
K cute_ballot_loop(ARGS) { ballot_loop<true>(in, out, n); }
K cute_ballot_loop_ok(ARGS) { ballot_loop<false>(in, out, n); }

template <bool Bug>
__device__ void mma_branch(ARGS)
{
    unsigned a = __float_as_uint(in[threadIdx.x]);
    float d[4] = {0, 0, 0, 0};
    if (!Bug || threadIdx.x % 32 < 24)
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %4}, {%4}, {%0, %1, %2, %3};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a)); // BUG:cute_mma_branch
    out[threadIdx.x] = d[0] + d[3];
}
K cute_mma_branch(ARGS) { mma_branch<true>(in, out, n); }
K cute_mma_branch_ok(ARGS) { mma_branch<false>(in, out, n); }

template <bool Bug>
__device__ void spin_flag(ARGS)
{
    volatile float *flag = out;
    if (threadIdx.x == 0 && !Bug) flag[0] = 2.0f;
    if (threadIdx.x == 32)
        while (flag[0] < 2.0f) // BUG:cute_spin_flag
            ;
    if (threadIdx.x) out[threadIdx.x] = 1.0f;
}
K cute_spin_flag(ARGS) { spin_flag<true>(in, out, n); }
K cute_spin_flag_ok(ARGS) { spin_flag<false>(in, out, n); }

K cute_assert(ARGS)
{
    if (in[threadIdx.x] < 0.0f || n < 1000) __trap(); // BUG:cute_assert
    out[threadIdx.x] = in[threadIdx.x];
}
K cute_assert_ok(ARGS)
{
    if (in[threadIdx.x] < -5.0f) __trap();
    out[threadIdx.x] = in[threadIdx.x];
}

// Two threads share a word, a half each; in the second round two warps do.
template <bool Bug>
__device__ void halves_in_place(ARGS)
{
    __shared__ half_t buf[128];
    Tensor s = make_tensor(make_smem_ptr(buf), Shape<_128>{}); // (128)
    int t = threadIdx.x, across = t % 64 * 2 + t / 64;
    s(t) = half_t(in[t]);
    __syncthreads();
    s(t) = half_t(float(s(t)) * 0.5f);
    __syncthreads();
    half_t x = s(across);
    s(Bug ? across ^ 1 : across) = half_t(float(x) + 1.0f); // BUG:cute_halves_in_place
    __syncthreads();
    out[t] = float(s(t));
}
K cute_halves_in_place(ARGS) { halves_in_place<true>(in, out, n); }
K cute_halves_in_place_ok(ARGS) { halves_in_place<false>(in, out, n); }
