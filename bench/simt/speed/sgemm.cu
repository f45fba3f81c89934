// sgemm.cu - C = A B^T of f32 by CuTe, everything stored along m or n: a tile of 128 x 128 per block of 256
// threads, 8 of k at a time through shared memory, 64 sums per thread.
#include <cute/tensor.hpp>

using namespace cute;

extern "C" __global__ __launch_bounds__(256) void
cute_sgemm(int m, int n, int k, float const *A, float const *B, float *C)
{
    auto mA = make_tensor(make_gmem_ptr(A), make_shape(m, k), make_stride(_1{}, m));  // (M,K)
    auto mB = make_tensor(make_gmem_ptr(B), make_shape(n, k), make_stride(_1{}, n));  // (N,K)
    auto mC = make_tensor(make_gmem_ptr(C), make_shape(m, n), make_stride(_1{}, m));  // (M,N)
    auto gA = local_tile(mA, Shape<_128, _8>{}, make_coord(blockIdx.x, _));           // (BLK_M,BLK_K,k)
    auto gB = local_tile(mB, Shape<_128, _8>{}, make_coord(blockIdx.y, _));           // (BLK_N,BLK_K,k)
    auto gC = local_tile(mC, Shape<_128, _128>{}, make_coord(blockIdx.x, blockIdx.y)); // (BLK_M,BLK_N)

    __shared__ float tileA[128 * 8], tileB[128 * 8];
    auto sA = make_tensor(make_smem_ptr(tileA), Layout<Shape<_128, _8>>{}); // (BLK_M,BLK_K)
    auto sB = make_tensor(make_smem_ptr(tileB), Layout<Shape<_128, _8>>{}); // (BLK_N,BLK_K)

    Layout<Shape<_32, _8>> copies;
    auto tAgA = local_partition(gA, copies, threadIdx.x); // (THR_M,THR_K,k)
    auto tAsA = local_partition(sA, copies, threadIdx.x); // (THR_M,THR_K)
    auto tBgB = local_partition(gB, copies, threadIdx.x);
    auto tBsB = local_partition(sB, copies, threadIdx.x);

    Layout<Shape<_16, _16>> sums;
    auto tCsA = local_partition(sA, sums, threadIdx.x, Step<_1, X>{}); // (THR_M,BLK_K)
    auto tCsB = local_partition(sB, sums, threadIdx.x, Step<X, _1>{}); // (THR_N,BLK_K)
    auto tCgC = local_partition(gC, sums, threadIdx.x, Step<_1, _1>{}); // (THR_M,THR_N)
    auto tCrC = make_tensor_like(tCgC);                                 // (THR_M,THR_N)
    clear(tCrC);

    for (int tile = 0; tile < size<2>(tAgA); tile++) {
        copy(tAgA(_, _, tile), tAsA);
        copy(tBgB(_, _, tile), tBsB);
        __syncthreads();
        gemm(tCsA, tCsB, tCrC);
        __syncthreads();
    }
    copy(tCrC, tCgC);
}
