// gemm.cu - matrix products from three loops to asynchronous stages and tensor
// cores. A is (m,k) and B is (n,k), both with k running fastest, unless said.
#include "common.cuh"
#include <cute/tensor.hpp>
#include <mma_shapes.h>
using namespace cute;

KERNEL(gemm_naive, float, float, float, float)
{
    int i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x;
    if (i >= m || j >= n) return;
    float x = 0;
    for (int p = 0; p < k; p++)
        x += a[i * k + p] * b[j * k + p];
    out[i * n + j] = x;
}
KERNEL(gemm_tile_shared, float, float, float, float)
{
    __shared__ float sa[16][17], sb[16][17];
    int tx = threadIdx.x, ty = threadIdx.y, i = blockIdx.y * 16 + ty, j = blockIdx.x * 16 + tx;
    float x = 0;
    for (int p = 0; p < k; p += 16) {
        sa[ty][tx] = i < m && p + tx < k ? a[i * k + p + tx] : 0.0f;
        sb[ty][tx] = blockIdx.x * 16 + ty < n && p + tx < k ? b[(blockIdx.x * 16 + ty) * k + p + tx] : 0.0f;
        __syncthreads();
        for (int q = 0; q < 16; q++)
            x += sa[ty][q] * sb[tx][q];
        __syncthreads();
    }
    if (i < m && j < n) out[i * n + j] = x;
}
KERNEL(gemv_warp, float, float, float, float)
{
    int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    const float4 *x = reinterpret_cast<const float4 *>(a + row * k), *y = reinterpret_cast<const float4 *>(b);
    float s = 0;
    for (int p = lane; p < k / 4; p += 32) {
        float4 u = x[p], v = y[p];
        s += u.x * v.x + u.y * v.y + u.z * v.z + u.w * v.w;
    }
    s = warp_sum(s);
    if (lane == 0) out[row] = s;
}

// The sgemm of CuTe's tutorial: shared tiles, one product per thread of 8x8 (here 4x4).
template <class TA, class TB, bool Async>
__device__ void sgemm(const TA *a, const TB *b, float *out, int m, int n, int k)
{
    constexpr int BM = 64, BN = 64, BK = 8, ST = Async ? 2 : 1;
    __shared__ TA smA[BM * BK * ST];
    __shared__ TB smB[BN * BK * ST];
    Tensor gA = local_tile(make_tensor(make_gmem_ptr(a), make_shape(m, k), make_stride(k, _1{})),
                           Shape<Int<BM>, Int<BK>>{}, make_coord(blockIdx.y, _)); // (BM,BK,t)
    Tensor gB = local_tile(make_tensor(make_gmem_ptr(b), make_shape(n, k), make_stride(k, _1{})),
                           Shape<Int<BN>, Int<BK>>{}, make_coord(blockIdx.x, _)); // (BN,BK,t)
    Tensor gC = local_tile(make_tensor(make_gmem_ptr(out), make_shape(m, n), make_stride(n, _1{})),
                           Shape<Int<BM>, Int<BN>>{}, make_coord(blockIdx.y, blockIdx.x)); // (BM,BN)
    Tensor sA = make_tensor(make_smem_ptr(smA), make_layout(Shape<Int<BM>, Int<BK>, Int<ST>>{}));
    Tensor sB = make_tensor(make_smem_ptr(smB), make_layout(Shape<Int<BN>, Int<BK>, Int<ST>>{}));
    auto tl = make_layout(Shape<_32, _8>{}, LayoutRight{});
    Tensor tAgA = local_partition(gA, tl, threadIdx.x);
    Tensor tAsA = local_partition(sA, tl, threadIdx.x);
    Tensor tBgB = local_partition(gB, tl, threadIdx.x);
    Tensor tBsB = local_partition(sB, tl, threadIdx.x);
    auto tc = make_layout(Shape<_16, _16>{});
    Tensor tCsA = local_partition(sA(_, _, 0), tc, threadIdx.x, Step<_1, X>{});
    Tensor tCsB = local_partition(sB(_, _, 0), tc, threadIdx.x, Step<X, _1>{});
    Tensor tCgC = local_partition(gC, tc, threadIdx.x, Step<_1, _1>{});
    Tensor acc = make_tensor_like(tCgC);
    clear(acc);
    int tiles = size<2>(gA);
    if constexpr (Async) {
        auto cp = make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEALWAYS<TA>, TA>{},
                                  Layout<Shape<_32, _8>, Stride<_8, _1>>{}, Layout<Shape<_1, _1>>{});
        auto thr = cp.get_slice(threadIdx.x);
        Tensor cAg = thr.partition_S(gA);
        Tensor cAs = thr.partition_D(sA);
        Tensor cBg = thr.partition_S(gB);
        Tensor cBs = thr.partition_D(sB);
        copy(cp, cAg(_, _, _, 0), cAs(_, _, _, 0));
        copy(cp, cBg(_, _, _, 0), cBs(_, _, _, 0));
        cp_async_fence();
        for (int t = 0; t < tiles; t++) {
            if (t + 1 < tiles) {
                copy(cp, cAg(_, _, _, t + 1), cAs(_, _, _, (t + 1) & 1));
                copy(cp, cBg(_, _, _, t + 1), cBs(_, _, _, (t + 1) & 1));
            }
            cp_async_fence();
            cp_async_wait<1>();
            __syncthreads();
            Tensor cA = local_partition(sA(_, _, t & 1), tc, threadIdx.x, Step<_1, X>{});
            Tensor cB = local_partition(sB(_, _, t & 1), tc, threadIdx.x, Step<X, _1>{});
            gemm(cA, cB, acc);
            __syncthreads();
        }
    } else {
        for (int t = 0; t < tiles; t++) {
            copy(tAgA(_, _, t), tAsA(_, _, 0));
            copy(tBgB(_, _, t), tBsB(_, _, 0));
            __syncthreads();
            gemm(tCsA, tCsB, acc);
            __syncthreads();
        }
    }
    copy(acc, tCgC);
}
KERNEL(gemm_cute_sgemm, float, float, float, float) { sgemm<float, float, false>(a, b, out, m, n, k); }
KERNEL(gemm_cute_async, float, float, float, float) { sgemm<float, float, true>(a, b, out, m, n, k); }

// Tensor cores straight from global memory: no shared memory at all.
template <class Op, class T, class TO>
__device__ void mma_global(const T *a, const T *b, TO *out, int m, int n, int k)
{
    auto mma = make_tiled_mma(Op{}, Layout<Shape<_2, _2>>{});
    using Tiler = decltype(make_shape(tile_size<0>(mma), tile_size<1>(mma), tile_size<2>(mma)));
    Tensor mA = make_tensor(make_gmem_ptr(a), make_shape(m, k), make_stride(k, _1{}));
    Tensor mB = make_tensor(make_gmem_ptr(b), make_shape(n, k), make_stride(k, _1{}));
    Tensor mC = make_tensor(make_gmem_ptr(out), make_shape(m, n), make_stride(n, _1{}));
    auto coord = make_coord(blockIdx.y, blockIdx.x, _);
    Tensor gA = local_tile(mA, Tiler{}, coord, Step<_1, X, _1>{}); // (BM,BK,t)
    Tensor gB = local_tile(mB, Tiler{}, coord, Step<X, _1, _1>{});
    Tensor gC = local_tile(mC, Tiler{}, coord, Step<_1, _1, X>{});
    auto thr = mma.get_slice(threadIdx.x);
    Tensor tCgA = thr.partition_A(gA);
    Tensor tCgB = thr.partition_B(gB);
    Tensor tCgC = thr.partition_C(gC);
    Tensor rA = thr.make_fragment_A(tCgA(_, _, _, 0));
    Tensor rB = thr.make_fragment_B(tCgB(_, _, _, 0));
    Tensor rC = thr.make_fragment_C(tCgC);
    clear(rC);
    for (int t = 0; t < size<3>(tCgA); t++) {
        copy(tCgA(_, _, _, t), rA);
        copy(tCgB(_, _, _, t), rB);
        gemm(mma, rA, rB, rC);
    }
    for (int i = 0; i < size(rC); i++)
        tCgC(i) = TO(rC(i));
}
#define MMA_GLOBAL(name, op, T, CT, TO)                                                            \
    KERNEL(name, T, T, T, TO)                                                                      \
    {                                                                                              \
        mma_global<op>(reinterpret_cast<const CT *>(a), reinterpret_cast<const CT *>(b), out, m, n, k); \
    }
MMA_GLOBAL(gemm_mma_f16, SM80_16x8x16_F32F16F16F32_TN, f16, cute::half_t, float)
MMA_GLOBAL(gemm_mma_f16_k8, SM80_16x8x8_F32F16F16F32_TN, f16, cute::half_t, float)
MMA_GLOBAL(gemm_mma_f16acc, SM80_16x8x16_F16F16F16F16_TN, f16, cute::half_t, float)
MMA_GLOBAL(gemm_mma_bf16, SM80_16x8x16_F32BF16BF16F32_TN, bf16, cute::bfloat16_t, float)
MMA_GLOBAL(gemm_mma_tf32, SM80_16x8x8_F32TF32TF32F32_TN, float, cute::tfloat32_t, float)
MMA_GLOBAL(gemm_mma_s8, SM80_16x8x32_S32S8S8S32_TN, signed char, int8_t, int)
MMA_GLOBAL(gemm_mma_u8, SM80_16x8x16_S32U8U8S32_TN, unsigned char, uint8_t, int)
MMA_GLOBAL(gemm_mma_f64, SM80_8x8x4_F64F64F64F64_TN, double, double, double)
KERNEL(gemm_mma_e4m3, unsigned char, unsigned char, unsigned char, float)
{
    mma_global<SM89_16x8x32_F32E4M3E4M3F32_TN>(reinterpret_cast<const cute::float_e4m3_t *>(a),
                                               reinterpret_cast<const cute::float_e4m3_t *>(b), out, m, n, k);
}

// Shared tiles with ldmatrix, swizzled, Stages deep; the usual Ampere kernel.
template <class Op, class T, class TO, int Stages, bool Bias>
__device__ void mma_staged(const T *a, const T *b, const TO *bias, TO *out, int m, int n, int k, int k0, int klen)
{
    constexpr int BM = 64, BN = 64, BK = 32;
    auto atom = composition(Swizzle<2, 3, 3>{}, Layout<Shape<_8, Int<BK>>, Stride<Int<BK>, _1>>{});
    auto lA = tile_to_shape(atom, Shape<Int<BM>, Int<BK>, Int<Stages>>{});
    auto lB = tile_to_shape(atom, Shape<Int<BN>, Int<BK>, Int<Stages>>{});
    extern __shared__ char smem[];
    T *pa = reinterpret_cast<T *>(smem), *pb = pa + cosize(lA);
    Tensor sA = make_tensor(make_smem_ptr(pa), lA);
    Tensor sB = make_tensor(make_smem_ptr(pb), lB); // (BM,BK,S)
    Tensor mA = make_tensor(make_gmem_ptr(a + k0), make_shape(m, klen), make_stride(k, _1{}));
    Tensor mB = make_tensor(make_gmem_ptr(b + k0), make_shape(n, klen), make_stride(k, _1{}));
    Tensor mC = make_tensor(make_gmem_ptr(out), make_shape(m, n), make_stride(n, _1{}));
    Tensor gA = local_tile(mA, Shape<Int<BM>, Int<BK>>{}, make_coord(blockIdx.y, _));
    Tensor gB = local_tile(mB, Shape<Int<BN>, Int<BK>>{}, make_coord(blockIdx.x, _));
    Tensor gC = local_tile(mC, Shape<Int<BM>, Int<BN>>{}, make_coord(blockIdx.y, blockIdx.x));
    auto g2s = make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>, T>{},
                               Layout<Shape<_32, _4>, Stride<_4, _1>>{}, Layout<Shape<_1, _8>>{});
    auto tg = g2s.get_slice(threadIdx.x);
    Tensor tAgA = tg.partition_S(gA);
    Tensor tAsA = tg.partition_D(sA);
    Tensor tBgB = tg.partition_S(gB);
    Tensor tBsB = tg.partition_D(sB);
    auto mma = make_tiled_mma(Op{}, Layout<Shape<_2, _2>>{}, Tile<_32, _32, _16>{});
    auto tm = mma.get_slice(threadIdx.x);
    Tensor rA = tm.partition_fragment_A(sA(_, _, 0));
    Tensor rB = tm.partition_fragment_B(sB(_, _, 0));
    Tensor rC = tm.partition_fragment_C(gC);
    auto s2rA = make_tiled_copy_A(Copy_Atom<SM75_U32x4_LDSM_N, T>{}, mma);
    auto s2rB = make_tiled_copy_B(Copy_Atom<SM75_U32x4_LDSM_N, T>{}, mma);
    auto ta = s2rA.get_slice(threadIdx.x);
    auto tb = s2rB.get_slice(threadIdx.x);
    Tensor tXsA = ta.partition_S(sA);
    Tensor tXrA = ta.retile_D(rA);
    Tensor tXsB = tb.partition_S(sB);
    Tensor tXrB = tb.retile_D(rB);
    clear(rC);
    int tiles = size<2>(gA);
    for (int s = 0; s < Stages - 1; s++) {
        if (s < tiles) {
            copy(g2s, tAgA(_, _, _, s), tAsA(_, _, _, s));
            copy(g2s, tBgB(_, _, _, s), tBsB(_, _, _, s));
        }
        cp_async_fence();
    }
    for (int t = 0; t < tiles; t++) {
        cp_async_wait<Stages - 2>();
        __syncthreads();
        int next = t + Stages - 1;
        if (next < tiles) {
            copy(g2s, tAgA(_, _, _, next), tAsA(_, _, _, next % Stages));
            copy(g2s, tBgB(_, _, _, next), tBsB(_, _, _, next % Stages));
        }
        cp_async_fence();
        for (int kb = 0; kb < size<2>(rA); kb++) {
            copy(s2rA, tXsA(_, _, kb, t % Stages), tXrA(_, _, kb));
            copy(s2rB, tXsB(_, _, kb, t % Stages), tXrB(_, _, kb));
            gemm(mma, rA(_, _, kb), rB(_, _, kb), rC);
        }
    }
    Tensor tCgC = tm.partition_C(gC);
    Tensor cC = tm.partition_C(local_tile(make_identity_tensor(make_shape(m, n)), Shape<Int<BM>, Int<BN>>{},
                                          make_coord(blockIdx.y, blockIdx.x)));
    for (int i = 0; i < size(rC); i++) {
        if constexpr (Bias)
            tCgC(i) = fmaxf(rC(i) + bias[get<1>(cC(i))], 0.0f);
        else
            tCgC(i) = rC(i);
    }
}
using F16 = SM80_16x8x16_F32F16F16F32_TN;
using BF16 = SM80_16x8x16_F32BF16BF16F32_TN;
#define STAGED(name, op, T, CT, TC, stages, bias)                                                  \
    KERNEL(name, T, T, TC, float)                                                                  \
    {                                                                                              \
        mma_staged<op, CT, float, stages, bias>(reinterpret_cast<const CT *>(a), reinterpret_cast<const CT *>(b), \
                                                (const float *)c, out, m, n, k, 0, k);            \
    }
STAGED(gemm_ldsm_2, F16, f16, cute::half_t, float, 2, false)
STAGED(gemm_ldsm_3, F16, f16, cute::half_t, float, 3, false)
STAGED(gemm_ldsm_4, F16, f16, cute::half_t, float, 4, false)
STAGED(gemm_bf16_3, BF16, bf16, cute::bfloat16_t, float, 3, false)
STAGED(gemm_bias_relu, F16, f16, cute::half_t, float, 3, true)
KERNEL(gemm_batched, f16, f16, f16, float)
{
    int z = blockIdx.z;
    mma_staged<F16, cute::half_t, float, 2, false>(reinterpret_cast<const cute::half_t *>(a) + z * m * k,
                                                   reinterpret_cast<const cute::half_t *>(b) + z * n * k, nullptr,
                                                   out + z * m * n, m, n, k, 0, k);
}
KERNEL(gemm_splitk, f16, f16, f16, float)
{
    // each block of z takes a part of k; parts meet by atomicAdd
    constexpr int BM = 64, BN = 64;
    __shared__ float acc[BM][BN + 1];
    int parts = gridDim.z, len = k / parts, k0 = blockIdx.z * len;
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    for (int i = ty; i < BM; i += 8)
        for (int j = tx; j < BN; j += 16) {
            float x = 0;
            for (int p = k0; p < k0 + len; p += 2) {
                float2 u = __half22float2(*reinterpret_cast<const half2 *>(&a[(blockIdx.y * BM + i) * k + p]));
                float2 v = __half22float2(*reinterpret_cast<const half2 *>(&b[(blockIdx.x * BN + j) * k + p]));
                x = fmaf(u.x, v.x, fmaf(u.y, v.y, x));
            }
            acc[i][j] = x;
        }
    __syncthreads();
    for (int i = threadIdx.x; i < BM * BN; i += blockDim.x)
        atomicAdd(&out[(blockIdx.y * BM + i / BN) * n + blockIdx.x * BN + i % BN], acc[i / BN][i % BN]);
}
KERNEL(gemm_wmma, f16, f16, f16, float)
{
    using namespace nvcuda;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, f16, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, f16, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 0.0f);
    int i = blockIdx.y * 16, j = (blockIdx.x * 4 + threadIdx.x / 32) * 16;
    for (int p = 0; p < k; p += 16) {
        wmma::load_matrix_sync(fa, a + i * k + p, k);
        wmma::load_matrix_sync(fb, b + j * k + p, k);
        wmma::mma_sync(fc, fa, fb, fc);
    }
    for (int e = 0; e < fc.num_elements; e++)
        fc.x[e] *= 0.5f;
    wmma::store_matrix_sync(out + i * n + j, fc, n, wmma::mem_row_major);
}
KERNEL(gemm_wmma_tf32, float, float, float, float)
{
    using namespace nvcuda;
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> fc;
    wmma::fill_fragment(fc, 0.0f);
    int i = blockIdx.y * 16, j = (blockIdx.x * 4 + threadIdx.x / 32) * 16;
    for (int p = 0; p < k; p += 8) {
        wmma::load_matrix_sync(fa, a + i * k + p, k);
        wmma::load_matrix_sync(fb, b + j * k + p, k);
        for (int e = 0; e < fa.num_elements; e++)
            fa.x[e] = wmma::__float_to_tf32(fa.x[e]);
        for (int e = 0; e < fb.num_elements; e++)
            fb.x[e] = wmma::__float_to_tf32(fb.x[e]);
        wmma::mma_sync(fc, fa, fb, fc);
    }
    wmma::store_matrix_sync(out + i * n + j, fc, n, wmma::mem_row_major);
}

// Attention of one head: rows of n = 32 numbers, m queries, k keys; c holds the values.
KERNEL(attention_row, float, float, float, float)
{
    int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    float q = a[row * 32 + lane] * 0.17677669f, mx = -INFINITY, s = 0, o = 0;
    for (int j = 0; j < k; j++) {
        float x = warp_sum(q * b[j * 32 + lane]), y = fmaxf(mx, x), f = __expf(mx - y), p = __expf(x - y);
        s = s * f + p;
        o = o * f + p * c[j * 32 + lane];
        mx = y;
    }
    out[row * 32 + lane] = o / s;
}
KERNEL(attention_tile, float, float, float, float)
{
    __shared__ float sk[32][33], sv[32][33];
    int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32, w = threadIdx.x / 32;
    float q = a[row * 32 + lane] * 0.17677669f, mx = -INFINITY, s = 0, o = 0;
    for (int t = 0; t < k; t += 32) {
        for (int r = w; r < 32; r += 8) {
            sk[r][lane] = b[(t + r) * 32 + lane];
            sv[r][lane] = c[(t + r) * 32 + lane];
        }
        __syncthreads();
        float x = 0;
        for (int d = 0; d < 32; d++)
            x += __shfl_sync(~0u, q, d) * sk[lane][d];
        float y = fmaxf(mx, warp_max(x)), p = __expf(x - y), f = __expf(mx - y);
        s = s * f + warp_sum(p);
        o *= f;
        for (int r = 0; r < 32; r++)
            o += __shfl_sync(~0u, p, r) * sv[r][lane];
        mx = y;
        __syncthreads();
    }
    out[row * 32 + lane] = o / s;
}
