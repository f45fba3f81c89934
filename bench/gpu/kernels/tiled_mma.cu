// tiled_mma: C = A B in fp32, as CuTe teaches it: TiledCopy with cp.async, three stages, TiledMMA of FMAs.
// For examples/square_matmul.py; here to be compiled, not to be the fastest.
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;

template <int BM, int BN, int BK, int STAGES>
__global__ void __launch_bounds__(256) gemm(float const *A, float const *B, float *C, int M, int N, int K)
{
    Tensor mA = make_tensor(make_gmem_ptr(A), make_shape(M, K), make_stride(K, _1{})); // (M,K)
    Tensor mB = make_tensor(make_gmem_ptr(B), make_shape(N, K), make_stride(_1{}, N)); // (N,K)
    Tensor mC = make_tensor(make_gmem_ptr(C), make_shape(M, N), make_stride(N, _1{})); // (M,N)

    auto tiler = make_shape(Int<BM>{}, Int<BN>{}, Int<BK>{});
    auto cta = make_coord(blockIdx.y, blockIdx.x, _);
    Tensor gA = local_tile(mA, tiler, cta, Step<_1, X, _1>{}); // (BM,BK,k)
    Tensor gB = local_tile(mB, tiler, cta, Step<X, _1, _1>{}); // (BN,BK,k)
    Tensor gC = local_tile(mC, tiler, cta, Step<_1, _1, X>{}); // (BM,BN)

    auto layA = make_layout(make_shape(Int<BM>{}, Int<BK>{}, Int<STAGES>{}), make_stride(_1{}, Int<BM + 4>{}, Int<(BM + 4) * BK>{}));
    auto layB = make_layout(make_shape(Int<BN>{}, Int<BK>{}, Int<STAGES>{}));
    __shared__ alignas(16) float smemA[cosize_v<decltype(layA)>];
    __shared__ alignas(16) float smemB[cosize_v<decltype(layB)>];
    Tensor sA = make_tensor(make_smem_ptr(smemA), layA); // (BM,BK,STAGES)
    Tensor sB = make_tensor(make_smem_ptr(smemB), layB); // (BN,BK,STAGES)

    TiledCopy copyA = make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEALWAYS<float>, float>{},
                                      Layout<Shape<_32, _8>, Stride<_8, _1>>{}, Layout<Shape<_1, _1>>{});
    TiledCopy copyB = make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEALWAYS<uint128_t>, float>{}, Layout<Shape<_32, _8>>{},
                                      Layout<Shape<_4, _1>>{});
    TiledMMA mma = make_tiled_mma(UniversalFMA<float, float, float>{}, Layout<Shape<_16, _16, _1>>{});

    ThrCopy thrA = copyA.get_slice(threadIdx.x);
    ThrCopy thrB = copyB.get_slice(threadIdx.x);
    ThrMMA thr = mma.get_slice(threadIdx.x);
    Tensor tAgA = thrA.partition_S(gA); // (CPY,CPY_M,CPY_K,k)
    Tensor tAsA = thrA.partition_D(sA); // (CPY,CPY_M,CPY_K,STAGES)
    Tensor tBgB = thrB.partition_S(gB); // (CPY,CPY_N,CPY_K,k)
    Tensor tBsB = thrB.partition_D(sB); // (CPY,CPY_N,CPY_K,STAGES)
    Tensor tCsA = thr.partition_A(sA);  // (MMA,MMA_M,MMA_K,STAGES)
    Tensor tCsB = thr.partition_B(sB);  // (MMA,MMA_N,MMA_K,STAGES)
    Tensor tCgC = thr.partition_C(gC);  // (MMA,MMA_M,MMA_N)
    Tensor tCrA = thr.make_fragment_A(tCsA(_, _, _, 0));
    Tensor tCrB = thr.make_fragment_B(tCsB(_, _, _, 0));
    Tensor tCrC = thr.make_fragment_C(tCgC);
    clear(tCrC);

    int const tiles = size<3>(tAgA);
    CUTE_UNROLL
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s < tiles) {
            copy(copyA, tAgA(_, _, _, s), tAsA(_, _, _, s));
            copy(copyB, tBgB(_, _, _, s), tBsB(_, _, _, s));
        }
        cp_async_fence();
    }
    for (int t = 0; t < tiles; ++t) {
        cp_async_wait<STAGES - 2>();
        __syncthreads();
        int const next = t + STAGES - 1;
        if (next < tiles) {
            copy(copyA, tAgA(_, _, _, next), tAsA(_, _, _, next % STAGES));
            copy(copyB, tBgB(_, _, _, next), tBsB(_, _, _, next % STAGES));
        }
        cp_async_fence();
        Tensor sAt = tCsA(_, _, _, t % STAGES); // (MMA,MMA_M,MMA_K)
        Tensor sBt = tCsB(_, _, _, t % STAGES); // (MMA,MMA_N,MMA_K)
        CUTE_UNROLL
        for (int k = 0; k < size<2>(tCrA); ++k) {
            copy(sAt(_, _, k), tCrA(_, _, k));
            copy(sBt(_, _, k), tCrB(_, _, k));
            gemm(mma, tCrA(_, _, k), tCrB(_, _, k), tCrC);
        }
        __syncthreads();
    }
    copy(tCrC, tCgC);
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *A = &call->in[0], *B = &call->in[1], *C = &call->out[0];
    int M = (int)A->shape[0], K = (int)A->shape[1], N = (int)B->shape[1];

    CUTEGEN_REQUIRE(call, M % 128 == 0 && N % 128 == 0 && K % 8 == 0, "sides must fit the tiles");
    return CUTEGEN_LAUNCH(call, (gemm<128, 128, 8, 3>), cutegen_dim3(N / 128, M / 128, 1), cutegen_dim3(256, 1, 1), 0,
                          CUTEGEN_DATA(float const, A), CUTEGEN_DATA(float const, B), CUTEGEN_DATA(float, C), M, N, K);
}
#endif
