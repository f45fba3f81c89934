// pointwise.cu - activations and places of minima in plain CUDA: which form to write as a recipe, and what it would gain.
//
//     nvcc -O3 -arch=sm_90a -shared -Xcompiler -fPIC pointwise.cu -o pointwise.so && python3 pointwise.py ./pointwise.so
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cstdint>
#include <cstring>
using bf16 = __nv_bfloat16;
template <class T> __device__ float up(T x) { return float(x); }
template <class T> __device__ T down(float x) { return T(x); }
#define F(name, expr) struct name { static __device__ float f(float x) { return expr; } };
__device__ inline float softplus_poly(float x) {
    float const t = exp2f(-1.44269504f * fabsf(x));
    float p = 0.00523262407f;
    p = p * t - 0.0295049575f; p = p * t + 0.0782254938f; p = p * t - 0.136632069f; p = p * t + 0.191059885f;
    p = p * t - 0.248429775f; p = p * t + 0.333190962f; p = p * t - 0.499994931f; p = p * t + 0.99999997f;
    return (x < 0.0f ? 0.0f : x) + t * p;
}
__device__ inline float ex2a(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
__device__ inline float lg2a(float x) { float y; asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
__device__ inline float tanha(float x) { float y; asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
__device__ inline float softplus_poly_ftz(float x) {
    float const t = ex2a(-1.44269504f * fabsf(x));
    float p = 0.00523262407f;
    p = p * t - 0.0295049575f; p = p * t + 0.0782254938f; p = p * t - 0.136632069f; p = p * t + 0.191059885f;
    p = p * t - 0.248429775f; p = p * t + 0.333190962f; p = p * t - 0.499994931f; p = p * t + 0.99999997f;
    return fmaf(t, p, x < 0.0f ? 0.0f : x);
}
__device__ inline float gelu_poly(float x) {
    float const a = fminf(fabsf(x), 16.0f);
    float p = -1.83484644e-06f;
    p = p * a + 6.15989754e-05f; p = p * a - 0.000930530007f; p = p * a + 0.00850790999f; p = p * a - 0.0539601046f;
    p = p * a - 0.458464363f; p = p * a - 1.15125105f; p = p * a - 0.999995294f;
    return (x < 0.0f ? 0.0f : x) - a * ex2a(p);
}
__device__ inline float tanh_half(float x) {
    float const u = x * x, a = fabsf(x);
    float const near = x + x * u * (-0.333194752f + u * (0.130899954f + u * -0.0414589209f));
    float const far = copysignf(1.0f - __fdividef(2.0f, 1.0f + ex2a(2.88539008f * a)), x);
    return a < 0.6f ? near : far;
}
__device__ inline float expm1_half(float x) {
    float const near = x + x * x * (0.499840231f + x * (0.164679788f + x * 0.0345203304f));
    return x > -0.5f ? near : ex2a(1.44269504f * x) - 1.0f;
}
F(relu, x < 0.0f ? 0.0f : x)
F(leaky, x > 0.0f ? x : 0.01f * x)
F(sigm, __fdividef(1.0f, 1.0f + __expf(-x)))
F(tanh0, tanhf(x))
F(tanh1, tanh_half(x))
F(tanh2, tanha(x))
F(gelu0, 0.5f * x * (1.0f + erff(0.707106781f * x)))
F(gelu1, gelu_poly(x))
F(selu0, x > 0.0f ? 1.05070098f * x : 1.75809934f * expm1f(x))
F(selu1, x > 0.0f ? 1.05070098f * x : 1.75809934f * expm1_half(x))
F(hsig, x <= -3.0f ? 0.0f : (x >= 3.0f ? 1.0f : (x + 3.0f) / 6.0f))
F(hsig1, x <= -3.0f ? 0.0f : (x >= 3.0f ? 1.0f : (x + 3.0f) * 0.166666667f))
F(soft0, x > 20.0f ? x : log1pf(__expf(x)))
F(soft1, softplus_poly(x))
F(soft2, softplus_poly_ftz(x))
F(elu0, x > 0.0f ? x : expm1f(x))
F(elu1, x > 0.0f ? x : expm1_half(x))
F(htan, x < -1.0f ? -1.0f : (x > 1.0f ? 1.0f : x))
F(swish, __fdividef(x, 1.0f + __expf(-x)))
F(ssign, __fdividef(x, 1.0f + fabsf(x)))
template <class T, class Fn, int THREADS, int VECS>
__global__ void __launch_bounds__(THREADS) pw(T const *__restrict__ x, T *__restrict__ y, int64_t n) {
    constexpr int VEC = 16 / sizeof(T);
    int64_t const i = (int64_t(blockIdx.x) * VECS) * THREADS + threadIdx.x;
    uint4 r[VECS];
#pragma unroll
    for (int k = 0; k < VECS; ++k) r[k] = reinterpret_cast<uint4 const *>(x)[i + k * THREADS];
#pragma unroll
    for (int k = 0; k < VECS; ++k) {
        T v[VEC], o[VEC];
        memcpy(v, &r[k], 16);
#pragma unroll
        for (int j = 0; j < VEC; ++j) o[j] = down<T>(Fn::f(up<T>(v[j])));
        uint4 w; memcpy(&w, o, 16);
        reinterpret_cast<uint4 *>(y)[i + k * THREADS] = w;
    }
}
template <class T, class Fn> int go(int shape, void const *x, void *y, int64_t n, cudaStream_t s) {
    constexpr int VEC = 16 / sizeof(T);
    T const *a = (T const *)x; T *b = (T *)y;
    switch (shape) {
    case 0: pw<T, Fn, 128, 1><<<n / VEC / 128, 128, 0, s>>>(a, b, n); break;
    case 1: pw<T, Fn, 256, 1><<<n / VEC / 256, 256, 0, s>>>(a, b, n); break;
    case 2: pw<T, Fn, 128, 2><<<n / VEC / 256, 128, 0, s>>>(a, b, n); break;
    default: return -1;
    }
    return cudaGetLastError();
}
#define LIST(X) X(relu) X(leaky) X(sigm) X(tanh0) X(tanh1) X(tanh2) X(gelu0) X(gelu1) X(selu0) X(selu1) X(hsig) X(hsig1) X(soft0) X(soft1) X(soft2) X(elu0) X(elu1) X(htan) X(swish) X(ssign)
#define RUN(fn) extern "C" int run_##fn(int dtype, int shape, void const *x, void *y, int64_t n, void *s) { \
    auto st = (cudaStream_t)s; \
    return dtype == 0 ? go<float, fn>(shape, x, y, n, st) : dtype == 1 ? go<half, fn>(shape, x, y, n, st) : go<bf16, fn>(shape, x, y, n, st); }
LIST(RUN)

// ---- argmin over odd rows
struct Arg {
    float value; int index;
    static __device__ Arg none() { return {__int_as_float(0x7f800000), 0x7fffffff}; }
    __device__ void add(float x, int i) { bool const better = !(x >= value) && value == value; value = better ? x : value; index = better ? i : index; }
    __device__ void merge(Arg o) {
        bool const same = o.value == value || (o.value != o.value && value != value);
        if (same ? o.index < index : !(o.value >= value) && value == value) { value = o.value; index = o.index; }
    }
    __device__ Arg from(int l) const { return {__shfl_xor_sync(~0u, value, l), __shfl_xor_sync(~0u, index, l)}; }
};
__device__ inline float minnan(float a, float b) { float r; asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; }
__device__ inline float minsel(float m, float x) { return x < m || x != x ? x : m; }
template <int THREADS, int ROW, int UNROLL, int HOW> // ROW: threads per row; HOW 0: per element, 1: groups by min.NaN, 2: groups by comparisons
__global__ void __launch_bounds__(THREADS) am(float const *x, int64_t *y, int n, int rows) {
    int const row = blockIdx.x * (THREADS / ROW) + threadIdx.x / ROW, t = threadIdx.x % ROW;
    if (row >= rows) return;
    float const *p = x + int64_t(row) * n;
    int const off = int(reinterpret_cast<uintptr_t>(p) / 4 % 4), head = min((4 - off) % 4, n), body = (n - head) / 4;
    float4 const *v = reinterpret_cast<float4 const *>(p + head);
    Arg a = Arg::none();
    for (int i = t; i < head; i += ROW) a.add(p[i], i);
#pragma unroll UNROLL
    for (int k = t; k < body; k += ROW) {
        float4 const q = v[k];
        int const i = head + k * 4;
        if constexpr (HOW == 0) { a.add(q.x, i); a.add(q.y, i + 1); a.add(q.z, i + 2); a.add(q.w, i + 3); }
        else if constexpr (HOW == 1) a.add(minnan(minnan(q.x, q.y), minnan(q.z, q.w)), i);
        else a.add(minsel(minsel(q.x, q.y), minsel(q.z, q.w)), i);
    }
    for (int i = head + body * 4 + t; i < n; i += ROW) a.add(p[i], i);
#pragma unroll
    for (int l = 16; l > 0; l /= 2) a.merge(a.from(l));
    if constexpr (ROW > 32) {
        __shared__ Arg parts[ROW / 32];
        if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = a;
        __syncthreads();
        a = parts[threadIdx.x % (ROW / 32)];
#pragma unroll
        for (int l = ROW / 64; l > 0; l /= 2) a.merge(a.from(l));
    }
    if (t == 0) {
        int i = a.index == 0x7fffffff ? 0 : a.index;
        if (HOW) while (i + 1 < n && p[i] != a.value && !(p[i] != p[i] && a.value != a.value)) ++i;
        y[row] = i;
    }
}
extern "C" int run_argmin(int which, void const *x, void *y, int n, int rows, void *s) {
    auto st = (cudaStream_t)s; auto a = (float const *)x; auto b = (int64_t *)y;
#define A(id, T, R, U, H) if (which == id) am<T, R, U, H><<<(rows + T / R - 1) / (T / R), T, 0, st>>>(a, b, n, rows);
    A(0, 256, 256, 4, 0) A(1, 128, 128, 4, 0) A(2, 512, 512, 4, 0) A(3, 256, 256, 4, 1) A(4, 128, 128, 4, 1) A(5, 128, 128, 8, 1)
    A(6, 128, 32, 4, 0) A(7, 128, 32, 4, 1) A(8, 128, 32, 8, 1) A(9, 256, 32, 8, 1) A(10, 128, 32, 4, 2) A(11, 128, 32, 8, 2) A(12, 256, 256, 4, 2) A(13, 64, 64, 4, 1) A(14, 64, 64, 8, 1)
    return cudaGetLastError();
}
