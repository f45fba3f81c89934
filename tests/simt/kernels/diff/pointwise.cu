// pointwise.cu - one output per input: plain, vectorised, half, fp8, fp64, CuTe.
#include "common.cuh"
#include <cuda_fp8.h>
#include <cute/tensor.hpp>
using namespace cute;

KERNEL(pw_add, float, float, float, float)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] + b[i];
}
KERNEL(pw_relu_stride, float, float, float, float)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = fmaxf(a[i], 0.0f);
}
KERNEL(pw_gelu_vec4, float, float, float, float)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (4 * i >= n) return;
    float4 v = reinterpret_cast<const float4 *>(a)[i];
    float *p = &v.x;
    for (int j = 0; j < 4; j++)
        p[j] = 0.5f * p[j] * (1.0f + erff(p[j] * 0.70710678f));
    reinterpret_cast<float4 *>(out)[i] = v;
}
KERNEL(pw_silu_fast, float, float, float, float)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = __fdividef(a[i], 1.0f + __expf(-a[i]));
}
KERNEL(pw_tanh_poly, float, float, float, float)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tanhf(a[i]) + logf(2.0f + a[i]) + sqrtf(1.5f + a[i]) + rsqrtf(1.25f + a[i]);
}
KERNEL(pw_pow_mix, float, float, float, float)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = powf(1.5f + a[i], 1.0f + b[i]) + sinf(3 * a[i]) * cosf(3 * b[i]);
}
KERNEL(pw_half2_fma, f16, f16, f16, f16)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (2 * i >= n) return;
    half2 x = reinterpret_cast<const half2 *>(a)[i], y = reinterpret_cast<const half2 *>(b)[i];
    half2 z = reinterpret_cast<const half2 *>(c)[i];
    reinterpret_cast<half2 *>(out)[i] = __hfma2(x, y, z);
}
KERNEL(pw_bf162_axpy, bf16, bf16, bf16, bf16)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (2 * i >= n) return;
    __nv_bfloat162 x = reinterpret_cast<const __nv_bfloat162 *>(a)[i];
    __nv_bfloat162 y = reinterpret_cast<const __nv_bfloat162 *>(b)[i];
    reinterpret_cast<__nv_bfloat162 *>(out)[i] =
        __hmax2(__hfma2(x, __float2bfloat162_rn(1.5f), y), __float2bfloat162_rn(-0.25f));
}
KERNEL(pw_half_exp, f16, f16, f16, f16)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = hexp(a[i]);
}
KERNEL(pw_quant_s8, float, float, float, signed char)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int q = __float2int_rn(a[i] * 150.0f);
    out[i] = (signed char)max(-128, min(127, q));
}
KERNEL(pw_fp8_round, float, float, float, float)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = float(__nv_fp8_e4m3(a[i])) + float(__nv_fp8_e5m2(b[i]));
}
KERNEL(pw_fp64_horner, double, double, double, double)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double x = a[i], y = 1.0 / 5040;
    for (int j = 0; j < 6; j++)
        y = fma(y, x, 1.0 / (j + 1));
    out[i] = y / (1.5 + x) + sqrt(1.5 + b[i]) + exp(x);
}
KERNEL(pw_int_hash, int, int, int, int)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = a[i], y = b[i];
    x = (x ^ 61) ^ (x >> 16);
    x *= 9;
    x ^= __byte_perm(x, y, 0x2143);
    x = __funnelshift_l(x, y, 11) + __popc(y) - __clz(x | 1) + __brev(x) % 1021u;
    out[i] = (int)(x / (1u + (y & 15)) + (unsigned)__mulhi((int)x, (int)y)) + __dp4a(a[i], b[i], 7);
}
KERNEL(pw_rope, float, float, float, float)
{
    // rows of n, pairs rotated by an angle that depends on row and column
    int row = blockIdx.x, half = n / 2;
    for (int j = threadIdx.x; j < half; j += blockDim.x) {
        float s, co, x = a[row * n + j], y = a[row * n + half + j];
        sincosf(row * exp2f(-8.0f * j / half), &s, &co);
        out[row * n + j] = x * co - y * s;
        out[row * n + half + j] = x * s + y * co;
    }
}
KERNEL(pw_cute_tile, float, float, float, float)
{
    auto shape = make_shape(m, n);
    auto tiler = Shape<_8, _64>{};
    Tensor gA = local_tile(make_tensor(make_gmem_ptr(a), shape, LayoutRight{}), tiler,
                           make_coord(blockIdx.x, blockIdx.y)); // (8,64)
    Tensor gO = local_tile(make_tensor(make_gmem_ptr(out), shape, LayoutRight{}), tiler,
                           make_coord(blockIdx.x, blockIdx.y)); // (8,64)
    auto threads = make_layout(Shape<_4, _32>{}, LayoutRight{});
    Tensor tA = local_partition(gA, threads, threadIdx.x); // (2,2)
    Tensor tO = local_partition(gO, threads, threadIdx.x);
    for (int i = 0; i < size(tA); i++)
        tO(i) = tA(i) * tA(i) + 1.0f;
}
KERNEL(pw_cute_vec, f16, f16, f16, f16)
{
    using T = cute::half_t;
    Tensor gA = make_tensor(make_gmem_ptr(reinterpret_cast<const T *>(a)), make_shape(n));
    Tensor gB = make_tensor(make_gmem_ptr(reinterpret_cast<const T *>(b)), make_shape(n));
    Tensor gO = make_tensor(make_gmem_ptr(reinterpret_cast<T *>(out)), make_shape(n));
    auto copy8 = make_tiled_copy(Copy_Atom<UniversalCopy<uint128_t>, T>{}, Layout<_128>{}, Layout<_8>{});
    auto thr = copy8.get_slice(threadIdx.x);
    auto tile = make_shape(Int<1024>{});
    Tensor sA = thr.partition_S(local_tile(gA, tile, make_coord(blockIdx.x))); // (8,1)
    Tensor sB = thr.partition_S(local_tile(gB, tile, make_coord(blockIdx.x)));
    Tensor dO = thr.partition_D(local_tile(gO, tile, make_coord(blockIdx.x)));
    Tensor rA = make_fragment_like(sA);
    Tensor rB = make_fragment_like(sB);
    copy(copy8, sA, rA);
    copy(copy8, sB, rB);
    for (int i = 0; i < size(rA); i++)
        rA(i) = T(float(rA(i)) * float(rB(i)));
    copy(copy8, rA, dO);
}
KERNEL(pw_cute_pred, float, float, float, float)
{
    // a tail that is no multiple of the tile, by an identity tensor
    Tensor gA = make_tensor(make_gmem_ptr(a), make_shape(n));
    Tensor gO = make_tensor(make_gmem_ptr(out), make_shape(n));
    auto tile = make_shape(Int<512>{});
    auto thr = Layout<_128>{};
    Tensor cA = local_partition(
        local_tile(make_identity_tensor(make_shape(n)), tile, make_coord(blockIdx.x)), thr, threadIdx.x);
    Tensor tA = local_partition(local_tile(gA, tile, make_coord(blockIdx.x)), thr, threadIdx.x);
    Tensor tO = local_partition(local_tile(gO, tile, make_coord(blockIdx.x)), thr, threadIdx.x);
    Tensor r = make_tensor<float>(shape(tA));
    for (int i = 0; i < size(tA); i++)
        r(i) = get<0>(cA(i)) < n ? tA(i) : 0.0f;
    for (int i = 0; i < size(tA); i++)
        if (get<0>(cA(i)) < n) tO(i) = 1.0f / (1.0f + expf(-r(i)));
}
