// hgemm.cu - C = A B^T of f16 into f32 by CuTe, A and B stored along k, C along m: a tile of 128 x 128 per block
// of 128 threads, 64 of k at a time, three stages by cp.async, ldmatrix, mma m16n8k16.
#include <cute/tensor.hpp>

using namespace cute;

extern "C" __global__ __launch_bounds__(128) void
cute_hgemm(int m, int n, int k, half_t const *A, half_t const *B, float *C)
{
    constexpr int STAGES = 3;
    using Atom = decltype(composition(Swizzle<3, 3, 3>{}, Layout<Shape<_8, _64>, Stride<_64, _1>>{}));
    auto layout = tile_to_shape(Atom{}, Shape<_128, _64, Int<STAGES>>{}); // (BLK_MN,BLK_K,PIPE)
    extern __shared__ uint128_t bytes[];
    half_t *shared = reinterpret_cast<half_t *>(bytes);
    auto sA = make_tensor(make_smem_ptr(shared), layout);
    auto sB = make_tensor(make_smem_ptr(shared + cosize(layout)), layout);

    auto mA = make_tensor(make_gmem_ptr(A), make_shape(m, k), make_stride(k, _1{})); // (M,K)
    auto mB = make_tensor(make_gmem_ptr(B), make_shape(n, k), make_stride(k, _1{})); // (N,K)
    auto mC = make_tensor(make_gmem_ptr(C), make_shape(m, n), make_stride(_1{}, m)); // (M,N)
    auto gA = local_tile(mA, Shape<_128, _64>{}, make_coord(blockIdx.x, _));         // (BLK_M,BLK_K,k)
    auto gB = local_tile(mB, Shape<_128, _64>{}, make_coord(blockIdx.y, _));         // (BLK_N,BLK_K,k)
    auto gC = local_tile(mC, Shape<_128, _128>{}, make_coord(blockIdx.x, blockIdx.y));

    auto fetch = make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>, half_t>{},
                                 Layout<Shape<_16, _8>, Stride<_8, _1>>{}, Layout<Shape<_1, _8>>{});
    auto my_fetch = fetch.get_slice(threadIdx.x);
    auto tAgA = my_fetch.partition_S(gA); // (CPY,CPY_M,CPY_K,k)
    auto tAsA = my_fetch.partition_D(sA); // (CPY,CPY_M,CPY_K,PIPE)
    auto tBgB = my_fetch.partition_S(gB);
    auto tBsB = my_fetch.partition_D(sB);

    auto mma = make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN{}, Layout<Shape<_2, _2>>{}, Tile<_32, _32, _16>{});
    auto my_mma = mma.get_slice(threadIdx.x);
    auto tCgC = my_mma.partition_C(gC);                   // (MMA,MMA_M,MMA_N)
    auto tCrA = my_mma.partition_fragment_A(sA(_, _, 0)); // (MMA,MMA_M,MMA_K)
    auto tCrB = my_mma.partition_fragment_B(sB(_, _, 0)); // (MMA,MMA_N,MMA_K)
    auto tCrC = my_mma.make_fragment_C(tCgC);
    clear(tCrC);

    Copy_Atom<SM75_U32x4_LDSM_N, half_t> ldmatrix;
    auto readA = make_tiled_copy_A(ldmatrix, mma);
    auto readB = make_tiled_copy_B(ldmatrix, mma);
    auto tXsA = readA.get_slice(threadIdx.x).partition_S(sA); // (CPY,MMA_M,MMA_K,PIPE)
    auto tXsB = readB.get_slice(threadIdx.x).partition_S(sB);
    auto tXrA = readA.get_slice(threadIdx.x).retile_D(tCrA);
    auto tXrB = readB.get_slice(threadIdx.x).retile_D(tCrB);

    int tiles = size<3>(tAgA), next = 0;
    auto fetch_next = [&] {
        if (next < tiles) {
            copy(fetch, tAgA(_, _, _, next), tAsA(_, _, _, next % STAGES));
            copy(fetch, tBgB(_, _, _, next), tBsB(_, _, _, next % STAGES));
        }
        next++;
        cp_async_fence();
    };
    for (int i = 0; i < STAGES - 1; i++)
        fetch_next();
    for (int tile = 0; tile < tiles; tile++) {
        cp_async_wait<STAGES - 2>();
        __syncthreads();
        fetch_next();
        auto stage = tile % STAGES;
        CUTE_UNROLL
        for (int kb = 0; kb < size<2>(tCrA); kb++) {
            copy(readA, tXsA(_, _, kb, stage), tXrA(_, _, kb));
            copy(readB, tXsB(_, _, kb, stage), tXrB(_, _, kb));
            gemm(mma, tCrA(_, _, kb), tCrB(_, _, kb), tCrC);
        }
    }
    copy(tCrC, tCgC);
}
