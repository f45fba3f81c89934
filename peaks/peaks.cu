// peaks: what a GPU can do at most, one kernel each; run by `cutegen peaks` (src/stage/peaks.c).
//
// The plan's scalars say which kernel and how much of it: {kind, amount}. Nothing is read from outside and nothing is
// handed out: the kernels work on workspace, and their results go where a value that cannot be would be told.
#include <cutegen/kernel.h>

#define PEAK_THREADS 256
#define PEAK_UNROLL 8
#define PEAK_CHAINS 8

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

using namespace cute;

// ---- memory ------------------------------------------------------------------------------------

__global__ void read_all(uint128_t const *p, unsigned *sink, int passes, int64_t blocks)
{
    Tensor gP = make_tensor(make_gmem_ptr(p), make_shape(Int<PEAK_THREADS>{}, Int<PEAK_UNROLL>{}, blocks)); // (thread,unroll,block)
    uint64_t seen = 0;
    for (int pass = 0; pass < passes; ++pass) {
        int64_t const block = (int64_t(blockIdx.x) + int64_t(pass) * 977) % blocks;
        CUTE_UNROLL
        for (int k = 0; k < PEAK_UNROLL; ++k) {
            uint128_t const v = gP(int(threadIdx.x), k, block);
            seen ^= v.hilo_.lo ^ v.hilo_.hi;
        }
    }
    if (seen == 0x123456789abcdefull)
        *sink = 1;
}

__global__ void write_all(uint128_t *p, int64_t blocks)
{
    Tensor gP = make_tensor(make_gmem_ptr(p), make_shape(Int<PEAK_THREADS>{}, Int<PEAK_UNROLL>{}, blocks)); // (thread,unroll,block)
    CUTE_UNROLL
    for (int k = 0; k < PEAK_UNROLL; ++k)
        gP(int(threadIdx.x), k, int64_t(blockIdx.x)) = uint128_t(uint64_t(k));
}

template <int THREADS, int UNROLL>
__global__ void copy_all(uint128_t const *p, uint128_t *q, int64_t blocks)
{
    Tensor gP = make_tensor(make_gmem_ptr(p), make_shape(Int<THREADS>{}, Int<UNROLL>{}, blocks)); // (thread,unroll,block)
    Tensor gQ = make_tensor(make_gmem_ptr(q), make_shape(Int<THREADS>{}, Int<UNROLL>{}, blocks)); // (thread,unroll,block)
    Tensor r = make_tensor<uint128_t>(Int<UNROLL>{});                                             // (unroll)
    CUTE_UNROLL
    for (int k = 0; k < UNROLL; ++k)
        r(k) = gP(int(threadIdx.x), k, int64_t(blockIdx.x));
    CUTE_UNROLL
    for (int k = 0; k < UNROLL; ++k)
        gQ(int(threadIdx.x), k, int64_t(blockIdx.x)) = r(k);
}

// ---- arithmetic --------------------------------------------------------------------------------

template <class T>
__global__ void multiply_add(T *sink, int rounds, T x)
{
    Tensor sum = make_tensor<T>(Int<PEAK_CHAINS>{}); // (chains)
    CUTE_UNROLL
    for (int c = 0; c < PEAK_CHAINS; ++c)
        sum(c) = T(threadIdx.x + c);
    for (int r = 0; r < rounds; ++r)
        CUTE_UNROLL
        for (int k = 0; k < 16; ++k)
            CUTE_UNROLL
            for (int c = 0; c < PEAK_CHAINS; ++c)
                sum(c) = sum(c) * x + x;
    T all = T(0);
    CUTE_UNROLL
    for (int c = 0; c < PEAK_CHAINS; ++c)
        all += sum(c);
    if (all == T(0.12345))
        *sink = all;
}

// mma.sync, as every tensor core since Ampere has it: 16 x 8 x 16 products of f16
__global__ void tensor_sync(float *sink, int rounds)
{
    float d[PEAK_CHAINS][4] = {};
    unsigned const a = 0x3c003c00u ^ threadIdx.x, b = 0x38003800u ^ threadIdx.x;
    for (int r = 0; r < rounds; ++r)
        CUTE_UNROLL
        for (int c = 0; c < PEAK_CHAINS; ++c)
            SM80_16x8x16_F32F16F16F32_TN::fma(d[c][0], d[c][1], d[c][2], d[c][3], a, b, a, b, b, a, d[c][0], d[c][1], d[c][2], d[c][3]);
    float all = 0.0f;
    for (int c = 0; c < PEAK_CHAINS; ++c)
        all += d[c][0] + d[c][1] + d[c][2] + d[c][3];
    if (all == 0.12345f)
        *sink = all;
}

// wgmma, Hopper's own: 64 x 256 by a row of 128 bytes, both factors in shared memory
template <class T, class Atom>
__device__ void tensor_group(float *sink, int rounds)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    constexpr int DEPTH = 128 / int(sizeof(T));
    __shared__ alignas(1024) T a[64 * DEPTH];
    __shared__ alignas(1024) T b[256 * DEPTH];
    auto atom = GMMA::Layout_K_SW128_Atom<T>{};
    Tensor sA = make_tensor(make_smem_ptr(a), tile_to_shape(atom, make_shape(Int<64>{}, Int<DEPTH>{})));  // (64,DEPTH)
    Tensor sB = make_tensor(make_smem_ptr(b), tile_to_shape(atom, make_shape(Int<256>{}, Int<DEPTH>{}))); // (256,DEPTH)
    for (int i = int(threadIdx.x); i < 64 * DEPTH; i += 128)
        a[i] = T(float(i % 7) - 3.0f);
    for (int i = int(threadIdx.x); i < 256 * DEPTH; i += 128)
        b[i] = T(float(i % 5) - 2.0f);
    auto mma = make_tiled_mma(Atom{});
    auto mine = mma.get_thread_slice(int(threadIdx.x));
    Tensor rA = mine.partition_fragment_A(sA);                                        // (MMA,MMA_M,MMA_K)
    Tensor rB = mine.partition_fragment_B(sB);                                        // (MMA,MMA_N,MMA_K)
    Tensor rC = partition_fragment_C(mma, make_shape(Int<64>{}, Int<256>{}));         // (MMA,MMA_M,MMA_N)
    clear(rC);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    for (int r = 0; r < rounds; ++r) {
        warpgroup_fence_operand(rC);
        warpgroup_arrive();
        CUTE_UNROLL
        for (int k = 0; k < size<2>(rA); ++k)
            gemm(mma, rA(_, _, k), rB(_, _, k), rC);
        warpgroup_commit_batch();
        warpgroup_wait<0>();
        warpgroup_fence_operand(rC);
    }
    float all = 0.0f;
    CUTE_UNROLL
    for (int i = 0; i < size(rC); ++i)
        all += rC(i);
    if (all == 0.12345f)
        *sink = all;
#endif
}

__global__ void tensor_group_f16(float *sink, int rounds)
{
    tensor_group<half_t, SM90_64x256x16_F32F16F16_SS<GMMA::Major::K, GMMA::Major::K>>(sink, rounds);
}

__global__ void tensor_group_bf16(float *sink, int rounds)
{
    tensor_group<bfloat16_t, SM90_64x256x16_F32BF16BF16_SS<GMMA::Major::K, GMMA::Major::K>>(sink, rounds);
}

__global__ void tensor_group_tf32(float *sink, int rounds)
{
    tensor_group<tfloat32_t, SM90_64x256x8_F32TF32TF32_SS_TN<>>(sink, rounds);
}

__global__ void nothing(unsigned *sink)
{
    if (sink == nullptr)
        __trap();
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    int64_t kind = call->scalar[0].i, amount = call->scalar[1].i, sms = call->device.sm_count;
    int64_t blocks = amount / (PEAK_THREADS * PEAK_UNROLL * 16);
    char *sink = (char *)cutegen_workspace(call, 256);
    struct cutegen_dim many = cutegen_dim3(blocks > 0 ? blocks : 1, 1, 1), all = cutegen_dim3(2 * sms, 1, 1);

    if (kind < 0) { /* every kernel once: what is to be built */
        char *p = (char *)cutegen_workspace(call, 256);
        struct cutegen_dim one = cutegen_dim3(1, 1, 1), warp = cutegen_dim3(32, 1, 1);

        CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (read_all), one, warp, 0, p, sink, 1, blocks));
        CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (write_all), one, warp, 0, p, blocks));
        CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (copy_all<256, 8>), one, warp, 0, p, p, blocks));
        CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (copy_all<128, 1>), one, warp, 0, p, p, blocks));
        CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (copy_all<256, 2>), one, warp, 0, p, p, blocks));
        CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (multiply_add<float>), one, warp, 0, sink, 1, 0.999f));
        CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (multiply_add<double>), one, warp, 0, sink, 1, 0.999));
        CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (tensor_sync), one, warp, 0, sink, 1));
        CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (tensor_group_f16), one, warp, 0, sink, 1));
        CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (tensor_group_bf16), one, warp, 0, sink, 1));
        CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (tensor_group_tf32), one, warp, 0, sink, 1));
        return CUTEGEN_LAUNCH(call, (nothing), one, warp, 0, sink);
    }
    if (kind == 0 || kind == 3) { /* read; read again and again what fits into L2 */
        char *p = (char *)cutegen_workspace(call, amount);
        return CUTEGEN_LAUNCH(call, (read_all), many, cutegen_dim3(PEAK_THREADS, 1, 1), 0, p, sink,
                              (int)(kind == 3 ? 64 : 1), blocks);
    }
    if (kind == 1) {
        char *p = (char *)cutegen_workspace(call, amount);
        return CUTEGEN_LAUNCH(call, (write_all), many, cutegen_dim3(PEAK_THREADS, 1, 1), 0, p, blocks);
    }
    if (kind == 2 || kind == 11 || kind == 12) {
        char *p = (char *)cutegen_workspace(call, amount), *q = (char *)cutegen_workspace(call, amount);
        struct cutegen_dim threads = cutegen_dim3(kind == 11 ? 128 : 256, 1, 1);

        blocks = amount / (kind == 11 ? 128 * 16 : kind == 12 ? 256 * 2 * 16 : 256 * 8 * 16);
        many = cutegen_dim3(blocks, 1, 1);
        if (kind == 11)
            return CUTEGEN_LAUNCH(call, (copy_all<128, 1>), many, threads, 0, p, q, blocks);
        if (kind == 12)
            return CUTEGEN_LAUNCH(call, (copy_all<256, 2>), many, threads, 0, p, q, blocks);
        return CUTEGEN_LAUNCH(call, (copy_all<256, 8>), many, threads, 0, p, q, blocks);
    }
    if (kind == 4)
        return CUTEGEN_LAUNCH(call, (multiply_add<float>), all, cutegen_dim3(1024, 1, 1), 0, sink, (int)amount, 0.999f);
    if (kind == 5)
        return CUTEGEN_LAUNCH(call, (multiply_add<double>), all, cutegen_dim3(1024, 1, 1), 0, sink, (int)amount, 0.999);
    if (kind == 6)
        return CUTEGEN_LAUNCH(call, (tensor_sync), all, cutegen_dim3(512, 1, 1), 0, sink, (int)amount);
    if (kind == 7)
        return CUTEGEN_LAUNCH(call, (tensor_group_f16), all, cutegen_dim3(128, 1, 1), 0, sink, (int)amount);
    if (kind == 8)
        return CUTEGEN_LAUNCH(call, (tensor_group_bf16), all, cutegen_dim3(128, 1, 1), 0, sink, (int)amount);
    if (kind == 9)
        return CUTEGEN_LAUNCH(call, (tensor_group_tf32), all, cutegen_dim3(128, 1, 1), 0, sink, (int)amount);
    for (int64_t i = 0; i < amount; i++) /* 10: launches */
        CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (nothing), cutegen_dim3(1, 1, 1), cutegen_dim3(32, 1, 1), 0, sink));
    return 0;
}
#endif
