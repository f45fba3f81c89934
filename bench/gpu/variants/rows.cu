// rows.cu - reductions in plain CUDA: launch shapes and orders compared before one becomes a recipe.
//
//     nvcc -O3 -arch=sm_90a -shared -Xcompiler -fPIC rows.cu -o rows.so && python3 rows.py ./rows.so
#include <cooperative_groups.h>
#include <cstdint>
#include <cstring>
namespace cg = cooperative_groups;
__device__ inline float mx(float m, float x) { return x > m || x != x ? x : m; }
// A: columns: (n, C), max over n; X columns of vectors, Y teams, U unroll
template <int X, int Y, int U> __global__ void __launch_bounds__(X *Y) col(float const *x, float *y, int n, int64_t C) {
    int64_t const c = int64_t(blockIdx.x) * X + threadIdx.x;
    int const t = threadIdx.y;
    if (c >= C / 4) return; // whole blocks here
    float m[4]; for (int v = 0; v < 4; ++v) m[v] = -INFINITY;
#pragma unroll U
    for (int i = t; i < n; i += Y) {
        float4 q = *reinterpret_cast<float4 const *>(x + i * C + c * 4);
        m[0] = mx(m[0], q.x); m[1] = mx(m[1], q.y); m[2] = mx(m[2], q.z); m[3] = mx(m[3], q.w);
    }
    if constexpr (Y > 1) {
        __shared__ float4 p[Y][X];
        p[t][threadIdx.x] = make_float4(m[0], m[1], m[2], m[3]);
        __syncthreads();
        if (t) return;
        for (int k = 1; k < Y; ++k) { float4 q = p[k][threadIdx.x]; m[0] = mx(m[0], q.x); m[1] = mx(m[1], q.y); m[2] = mx(m[2], q.z); m[3] = mx(m[3], q.w); }
    }
    *reinterpret_cast<float4 *>(y + c * 4) = make_float4(m[0], m[1], m[2], m[3]);
}
extern "C" int run_col(int which, void const *x, void *y, int n, int64_t C, void *s) {
    auto st = (cudaStream_t)s;
#define A(id, X, Y, U) if (which == id) col<X, Y, U><<<(C / 4 + X - 1) / X, dim3(X, Y), 0, st>>>((float const *)x, (float *)y, n, C);
    A(0, 32, 8, 8) A(1, 32, 16, 8) A(2, 64, 4, 8) A(3, 64, 8, 8) A(4, 128, 1, 8) A(5, 128, 1, 16) A(6, 256, 1, 8) A(7, 256, 1, 16) A(8, 512, 1, 8) A(9, 1024, 1, 8) A(10, 128, 4, 8) A(11, 256, 2, 8) A(12, 32, 4, 8) A(13, 256, 4, 8) A(14, 128, 8, 16) A(15, 128, 1, 32) A(16, 64, 2, 16)
    return cudaGetLastError();
}
// B: sums of odd rows
__device__ float wsum(float a) { for (int l = 16; l; l /= 2) a += __shfl_xor_sync(~0u, a, l); return a; }
template <int T> __device__ float bsum(float a) {
    a = wsum(a);
    if constexpr (T > 32) { __shared__ float p[T / 32]; if (threadIdx.x % 32 == 0) p[threadIdx.x / 32] = a; __syncthreads(); a = p[threadIdx.x % (T / 32)]; for (int l = T / 64; l; l /= 2) a += __shfl_xor_sync(~0u, a, l); }
    return a;
}
template <int T, int U> __global__ void __launch_bounds__(T) peel(float const *x, float *y, int n) { // as now
    float const *p = x + int64_t(blockIdx.x) * n; int const t = threadIdx.x;
    int const off = int(reinterpret_cast<uintptr_t>(p) / 4 % 4), head = min((4 - off) % 4, n), body = (n - head) / 4;
    float4 const *v = reinterpret_cast<float4 const *>(p + head);
    float a = 0;
    for (int i = t; i < head; i += T) a += p[i];
#pragma unroll U
    for (int k = t; k < body; k += T) { float4 q = v[k]; a += q.x; a += q.y; a += q.z; a += q.w; }
    for (int i = head + body * 4 + t; i < n; i += T) a += p[i];
    a = bsum<T>(a);
    if (t == 0) y[blockIdx.x] = a;
}
template <int T, int I> __global__ void __launch_bounds__(T) held(float const *x, float *y, int n) { // all loads at once
    float const *p = x + int64_t(blockIdx.x) * n; int const t = threadIdx.x;
    int const off = int(reinterpret_cast<uintptr_t>(p) / 4 % 4), head = min((4 - off) % 4, n), body = (n - head) / 4, tail = head + body * 4;
    float4 const *v = reinterpret_cast<float4 const *>(p + head);
    float4 q[I];
#pragma unroll
    for (int j = 0; j < I; ++j) q[j] = t + j * T < body ? v[t + j * T] : make_float4(0, 0, 0, 0);
    float a = t < head ? p[t] : 0.0f; if (tail + t < n) a += p[tail + t];
#pragma unroll
    for (int j = 0; j < I; ++j) { a += q[j].x; a += q[j].y; a += q[j].z; a += q[j].w; }
    a = bsum<T>(a);
    if (t == 0) y[blockIdx.x] = a;
}
template <int T, int I> __global__ void __launch_bounds__(T) plain(float const *x, float *y, int n) {
    float const *p = x + int64_t(blockIdx.x) * n; int const t = threadIdx.x;
    float q[I];
#pragma unroll
    for (int j = 0; j < I; ++j) q[j] = t + j * T < n ? p[t + j * T] : 0.0f;
    float a = 0;
#pragma unroll
    for (int j = 0; j < I; ++j) a += q[j];
    a = bsum<T>(a);
    if (t == 0) y[blockIdx.x] = a;
}
extern "C" int run_odd(int which, void const *xx, void *yy, int n, int rows, void *s) {
    auto st = (cudaStream_t)s; auto x = (float const *)xx; auto y = (float *)yy;
#define B(id, K, T, U) if (which == id) K<T, U><<<rows, T, 0, st>>>(x, y, n);
    B(0, peel, 256, 4) B(1, peel, 128, 4) B(2, peel, 64, 4) B(3, peel, 128, 8) B(4, held, 256, 4) B(5, held, 128, 8) B(6, held, 64, 16) B(7, held, 512, 2) B(8, plain, 256, 16) B(9, plain, 512, 8) B(10, plain, 128, 32) B(11, plain, 1024, 4) B(12, peel, 512, 2) B(13, peel, 64, 8)
    return cudaGetLastError();
}
// C: layer norm over rows of 4096
struct Mom { float m, s, c;
    __device__ void merge(Mom o) { float t = c + o.c, w = t > 0 ? o.c / t : 0, d = o.m - m; s += o.s + d * d * c * w; m += d * w; c = t; }
    __device__ Mom from(int l) const { return {__shfl_xor_sync(~0u, m, l), __shfl_xor_sync(~0u, s, l), __shfl_xor_sync(~0u, c, l)}; } };
template <int T, int I, int HOW, int PRE> __global__ void __launch_bounds__(T) ln(float const *x, float const *g, float const *b, float *y, int n) {
    int const t = threadIdx.x; int64_t const base = int64_t(blockIdx.x) * n;
    float4 const *px = reinterpret_cast<float4 const *>(x + base), *pg = reinterpret_cast<float4 const *>(g), *pb = reinterpret_cast<float4 const *>(b);
    float4 q[I], gg[I], bb[I];
#pragma unroll
    for (int j = 0; j < I; ++j) q[j] = px[t + j * T];
    if constexpr (PRE) {
#pragma unroll
        for (int j = 0; j < I; ++j) { gg[j] = pg[t + j * T]; bb[j] = pb[t + j * T]; }
    }
    float mean, scale;
    float a = 0;
#pragma unroll
    for (int j = 0; j < I; ++j) a += q[j].x + q[j].y + q[j].z + q[j].w;
    if constexpr (HOW == 0) {
        float m = a / (4 * I), s2 = 0;
#pragma unroll
        for (int j = 0; j < I; ++j) { s2 += (q[j].x - m) * (q[j].x - m); s2 += (q[j].y - m) * (q[j].y - m); s2 += (q[j].z - m) * (q[j].z - m); s2 += (q[j].w - m) * (q[j].w - m); }
        Mom mo{m, s2, 4.0f * I};
        for (int l = 16; l; l /= 2) mo.merge(mo.from(l));
        __shared__ Mom p[T / 32];
        if (t % 32 == 0) p[t / 32] = mo;
        __syncthreads();
        mo = p[t % (T / 32)];
        for (int l = T / 64; l; l /= 2) mo.merge(mo.from(l));
        mean = mo.m; scale = rsqrtf(mo.s / n + 1e-5f);
    } else if constexpr (HOW == 1) {
        __shared__ float p[T / 32], r[T / 32];
        a = wsum(a); if (t % 32 == 0) p[t / 32] = a; __syncthreads();
        a = p[t % (T / 32)]; for (int l = T / 64; l; l /= 2) a += __shfl_xor_sync(~0u, a, l);
        mean = a / n;
        float s2 = 0;
#pragma unroll
        for (int j = 0; j < I; ++j) { s2 += (q[j].x - mean) * (q[j].x - mean); s2 += (q[j].y - mean) * (q[j].y - mean); s2 += (q[j].z - mean) * (q[j].z - mean); s2 += (q[j].w - mean) * (q[j].w - mean); }
        s2 = wsum(s2); if (t % 32 == 0) r[t / 32] = s2; __syncthreads();
        s2 = r[t % (T / 32)]; for (int l = T / 64; l; l /= 2) s2 += __shfl_xor_sync(~0u, s2, l);
        scale = rsqrtf(s2 / n + 1e-5f);
    } else { // equal counts: no division in merges
        float m = a / (4 * I), s2 = 0, c = 4.0f * I;
#pragma unroll
        for (int j = 0; j < I; ++j) { s2 += (q[j].x - m) * (q[j].x - m); s2 += (q[j].y - m) * (q[j].y - m); s2 += (q[j].z - m) * (q[j].z - m); s2 += (q[j].w - m) * (q[j].w - m); }
        __shared__ float2 p[T / 32];
        for (int l = 16; l; l /= 2) { float om = __shfl_xor_sync(~0u, m, l), os = __shfl_xor_sync(~0u, s2, l), d = om - m; s2 += os + d * d * (c * 0.5f); m += d * 0.5f; c *= 2; }
        if (t % 32 == 0) p[t / 32] = make_float2(m, s2);
        __syncthreads();
        float2 z = p[t % (T / 32)]; m = z.x; s2 = z.y;
        for (int l = T / 64; l; l /= 2) { float om = __shfl_xor_sync(~0u, m, l), os = __shfl_xor_sync(~0u, s2, l), d = om - m; s2 += os + d * d * (c * 0.5f); m += d * 0.5f; c *= 2; }
        mean = m; scale = rsqrtf(s2 / n + 1e-5f);
    }
    float4 *py = reinterpret_cast<float4 *>(y + base);
#pragma unroll
    for (int j = 0; j < I; ++j) {
        float4 G = PRE ? gg[j] : pg[t + j * T], Bb = PRE ? bb[j] : pb[t + j * T];
        py[t + j * T] = make_float4((q[j].x - mean) * scale * G.x + Bb.x, (q[j].y - mean) * scale * G.y + Bb.y, (q[j].z - mean) * scale * G.z + Bb.z, (q[j].w - mean) * scale * G.w + Bb.w);
    }
}
extern "C" int run_ln(int which, void const *x, void const *g, void const *b, void *y, int n, int rows, void *s) {
    auto st = (cudaStream_t)s;
#define L(id, T, I, H, P) if (which == id) ln<T, I, H, P><<<rows, T, 0, st>>>((float const *)x, (float const *)g, (float const *)b, (float *)y, n);
    L(0, 256, 4, 0, 0) L(1, 128, 8, 0, 0) L(2, 512, 2, 0, 0) L(3, 256, 4, 1, 0) L(4, 128, 8, 1, 0) L(5, 512, 2, 1, 0) L(6, 256, 4, 2, 0) L(7, 128, 8, 2, 0) L(8, 512, 2, 2, 0) L(9, 256, 4, 2, 1) L(10, 512, 2, 2, 1) L(11, 1024, 1, 2, 1) L(12, 1024, 1, 2, 0) L(13, 1024, 1, 1, 1) L(14, 512, 2, 1, 1)
    return cudaGetLastError();
}
// D: group norm: rows of n floats, cluster of 8 per row, second pass forwards or backwards
template <int T, int BACK, int U> __global__ void __launch_bounds__(T) __cluster_dims__(8) gn(float const *x, float const *g, float const *b, float *y, int n, int hw, int groups, int per) {
    auto cl = cg::this_cluster();
    int const row = blockIdx.x / 8, W = T * 8, t = (blockIdx.x % 8) * T + threadIdx.x, nv = n / 4;
    float4 const *p = reinterpret_cast<float4 const *>(x + int64_t(row) * n);
    float4 *q = reinterpret_cast<float4 *>(y + int64_t(row) * n);
    float k = p[0].x, a = 0, a2 = 0;
#pragma unroll U
    for (int i = t; i < nv; i += W) { float4 v = p[i]; float e = v.x - k, f = v.y - k, h = v.z - k, z = v.w - k; a += (e + f) + (h + z); a2 += e * e; a2 += f * f; a2 += h * h; a2 += z * z; }
    __shared__ float2 parts[8 * T / 32];
    a = wsum(a); a2 = wsum(a2);
    if (threadIdx.x % 32 < 8) cl.map_shared_rank(parts, threadIdx.x % 32)[cl.block_rank() * (T / 32) + threadIdx.x / 32] = make_float2(a, a2);
    cl.sync();
    a = a2 = 0;
    for (int i = threadIdx.x % 32; i < 8 * T / 32; i += 32) { a += parts[i].x; a2 += parts[i].y; }
    a = wsum(a); a2 = wsum(a2);
    float const mean = k + a / n, scale = rsqrtf(a2 / n - (a / n) * (a / n) + 1e-5f);
    int const last = t + (nv - 1 - t) / W * W;
    if constexpr (BACK) {
#pragma unroll U
        for (int i = last; i >= 0; i -= W) { int c = row % groups * per + i / (hw / 4); float G = g[c] * scale, B = b[c] - mean * G; float4 v = p[i]; q[i] = make_float4(v.x * G + B, v.y * G + B, v.z * G + B, v.w * G + B); }
    } else {
#pragma unroll U
        for (int i = t; i < nv; i += W) { int c = row % groups * per + i / (hw / 4); float G = g[c] * scale, B = b[c] - mean * G; float4 v = p[i]; q[i] = make_float4(v.x * G + B, v.y * G + B, v.z * G + B, v.w * G + B); }
    }
}
extern "C" int run_gn(int which, void const *x, void const *g, void const *b, void *y, int n, int rows, int hw, int groups, int per, void *s) {
    auto st = (cudaStream_t)s;
#define G(id, T, BACK, U, SM) if (which == id) { cudaFuncSetAttribute(gn<T, BACK, U>, cudaFuncAttributeMaxDynamicSharedMemorySize, SM); gn<T, BACK, U><<<rows * 8, T, SM, st>>>((float const *)x, (float const *)g, (float const *)b, (float *)y, n, hw, groups, per); }
    G(0, 512, 0, 4, 0) G(1, 512, 1, 4, 0) G(2, 1024, 0, 4, 0) G(3, 1024, 1, 4, 0) G(4, 1024, 1, 4, 120000) G(5, 1024, 1, 8, 120000) G(6, 512, 1, 4, 100000) G(7, 512, 1, 8, 60000) G(8, 512, 1, 8, 120000) G(9, 256, 1, 8, 50000)
    return cudaGetLastError();
}
