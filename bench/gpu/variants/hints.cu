// hints.cu - what the L2 cache is told of rows, and rows that are written while the next are reduced: plain CUDA.
//
//     nvcc -O3 -arch=sm_90a -shared -Xcompiler -fPIC hints.cu -o hints.so && python3 hints.py ./hints.so
#include <cstdint>
#include <cuda_runtime.h>
// H: 0 plain; 1 L1 last + L2 last; 2 L1 first + L2 first; 3 L2 first only; 4 L2 last only; 5 L1 last only; 6 L1 first only; 7 streaming
template <int H> __device__ inline float4 ld4(float4 const *p, uint64_t last, uint64_t first) {
    float4 r;
    if constexpr (H == 0) r = *p;
    else if constexpr (H == 1) asm volatile("ld.global.L1::evict_last.L2::cache_hint.v4.f32 {%0,%1,%2,%3}, [%4], %5;" : "=f"(r.x), "=f"(r.y), "=f"(r.z), "=f"(r.w) : "l"(p), "l"(last));
    else if constexpr (H == 2) asm volatile("ld.global.L1::evict_first.L2::cache_hint.v4.f32 {%0,%1,%2,%3}, [%4], %5;" : "=f"(r.x), "=f"(r.y), "=f"(r.z), "=f"(r.w) : "l"(p), "l"(first));
    else if constexpr (H == 3) asm volatile("ld.global.L2::cache_hint.v4.f32 {%0,%1,%2,%3}, [%4], %5;" : "=f"(r.x), "=f"(r.y), "=f"(r.z), "=f"(r.w) : "l"(p), "l"(first));
    else if constexpr (H == 4) asm volatile("ld.global.L2::cache_hint.v4.f32 {%0,%1,%2,%3}, [%4], %5;" : "=f"(r.x), "=f"(r.y), "=f"(r.z), "=f"(r.w) : "l"(p), "l"(last));
    else if constexpr (H == 5) asm volatile("ld.global.L1::evict_last.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(r.x), "=f"(r.y), "=f"(r.z), "=f"(r.w) : "l"(p));
    else if constexpr (H == 7) r = __ldcs(p);
    else asm volatile("ld.global.L1::evict_first.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(r.x), "=f"(r.y), "=f"(r.z), "=f"(r.w) : "l"(p));
    return r;
}
// HX: first load of x; HR: -1 held in registers, else the hint of a second load; HW: weights
template <int T, int I, int HX, int HR, int HW> __global__ void __launch_bounds__(T) ln(float const *x, float const *g, float const *b, float *y, int n) {
    int const t = threadIdx.x; int64_t const base = int64_t(blockIdx.x) * n;
    float4 const *px = reinterpret_cast<float4 const *>(x + base), *pg = reinterpret_cast<float4 const *>(g), *pb = reinterpret_cast<float4 const *>(b);
    uint64_t last, first;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(last));
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(first));
    float4 q[I];
#pragma unroll
    for (int j = 0; j < I; ++j) q[j] = ld4<HX>(px + t + j * T, last, first);
    float a = 0;
#pragma unroll
    for (int j = 0; j < I; ++j) a += q[j].x + q[j].y + q[j].z + q[j].w;
    float m = a / (4 * I), s2 = 0, c = 4.0f * I;
#pragma unroll
    for (int j = 0; j < I; ++j) { s2 += (q[j].x - m) * (q[j].x - m); s2 += (q[j].y - m) * (q[j].y - m); s2 += (q[j].z - m) * (q[j].z - m); s2 += (q[j].w - m) * (q[j].w - m); }
    __shared__ float2 p[T / 32];
#pragma unroll
    for (int l = 16; l; l /= 2) { float om = __shfl_xor_sync(~0u, m, l), os = __shfl_xor_sync(~0u, s2, l), d = om - m; s2 += os + d * d * (c * 0.5f); m += d * 0.5f; c *= 2; }
    if (t % 32 == 0) p[t / 32] = make_float2(m, s2);
    __syncthreads();
    float2 z = p[t % (T / 32)]; m = z.x; s2 = z.y;
#pragma unroll
    for (int l = T / 64; l; l /= 2) { float om = __shfl_xor_sync(~0u, m, l), os = __shfl_xor_sync(~0u, s2, l), d = om - m; s2 += os + d * d * (c * 0.5f); m += d * 0.5f; c *= 2; }
    float const mean = m, scale = rsqrtf(s2 / n + 1e-5f);
    float4 *py = reinterpret_cast<float4 *>(y + base);
    if constexpr (HR >= 0) {
        asm volatile("" ::: "memory");
#pragma unroll
        for (int j = 0; j < I; ++j) q[j] = ld4<HR>(px + t + j * T, last, first);
    }
#pragma unroll
    for (int j = 0; j < I; ++j) {
        float4 G = ld4<HW>(pg + t + j * T, last, first), Bb = ld4<HW>(pb + t + j * T, last, first);
        py[t + j * T] = make_float4((q[j].x - mean) * scale * G.x + Bb.x, (q[j].y - mean) * scale * G.y + Bb.y, (q[j].z - mean) * scale * G.z + Bb.z, (q[j].w - mean) * scale * G.w + Bb.w);
    }
}
extern "C" int run_ln(int which, void const *x, void const *g, void const *b, void *y, int n, int rows, void *s) {
    auto st = (cudaStream_t)s;
#define L(id, T, I, HX, HR, HW) if (which == id) ln<T, I, HX, HR, HW><<<rows, T, 0, st>>>((float const *)x, (float const *)g, (float const *)b, (float *)y, n);
    L(0, 512, 2, 0, -1, 0) L(1, 512, 2, 1, 2, 1) L(2, 256, 4, 1, 2, 1) L(3, 512, 2, 1, -1, 1) L(4, 512, 2, 4, -1, 4) L(5, 512, 2, 3, -1, 4) L(6, 512, 2, 0, 2, 1)
    L(7, 512, 2, 0, 3, 0) L(8, 512, 2, 5, 6, 5) L(9, 512, 2, 0, -1, 1) L(10, 512, 2, 4, 3, 0) L(11, 512, 2, 1, 2, 0) L(12, 512, 2, 3, -1, 0) L(13, 256, 4, 0, 2, 1) L(14, 128, 8, 1, 2, 1) L(15, 512, 2, 5, -1, 5) L(16, 1024, 1, 1, 2, 1)
    return cudaGetLastError();
}
// group norm in one launch: items in the order of tickets; statistics of row r, elements of row r - LAG from the cache
template <int T, int I, int OCC, int HS, int HN, int HX> __global__ void __launch_bounds__(T, OCC) stream(float const *x, float const *g, float const *b, float *y, int n4, int rows, int hw4, int groups, int per, int lag, unsigned *ctl, unsigned *done, float2 *found, float2 *parts) {
    __shared__ unsigned item_; __shared__ float2 p[T / 32];
    int const t = threadIdx.x;
    if (t == 0) item_ = atomicAdd(ctl, 1u);
    __syncthreads();
    unsigned const item = item_;
    int const slices = n4 / (T * I), step = item / (2 * slices), rem = item % (2 * slices), slice = rem / 2;
    if (rem % 2 == 0) {
        int const row = step;
        if (row >= rows) return;
        float4 const *px = reinterpret_cast<float4 const *>(x) + int64_t(row) * n4 + slice * (T * I);
        float4 q[I];
#pragma unroll
        for (int j = 0; j < I; ++j) q[j] = ld4<HX>(px + t + j * T, 0, 0);
        float a = 0;
#pragma unroll
        for (int j = 0; j < I; ++j) a += q[j].x + q[j].y + q[j].z + q[j].w;
        float m = a / (4 * I), s2 = 0, c = 4.0f * I;
#pragma unroll
        for (int j = 0; j < I; ++j) { s2 += (q[j].x - m) * (q[j].x - m); s2 += (q[j].y - m) * (q[j].y - m); s2 += (q[j].z - m) * (q[j].z - m); s2 += (q[j].w - m) * (q[j].w - m); }
#pragma unroll
        for (int l = 16; l; l /= 2) { float om = __shfl_xor_sync(~0u, m, l), os = __shfl_xor_sync(~0u, s2, l), d = om - m; s2 += os + d * d * (c * 0.5f); m += d * 0.5f; c *= 2; }
        if (t % 32 == 0) p[t / 32] = make_float2(m, s2);
        __syncthreads();
        if (t < 32) {
            float2 z = p[t % (T / 32)]; m = z.x; s2 = z.y;
#pragma unroll
            for (int l = T / 64; l; l /= 2) { float om = __shfl_xor_sync(~0u, m, l), os = __shfl_xor_sync(~0u, s2, l), d = om - m; s2 += os + d * d * (c * 0.5f); m += d * 0.5f; c *= 2; }
            unsigned last = 0;
            if (t == 0) {
                __stcg(parts + int64_t(row) * slices + slice, make_float2(m, s2));
                __threadfence();
                last = atomicAdd(done + row, 1u) == slices - 1u;
            }
            last = __shfl_sync(~0u, last, 0);
            if (last) { // this warp folds the row: slices of equal counts
                __threadfence();
                float cnt = float(T * I * 4), M = 0, S = 0, k = 0;
                for (int i = t; i < slices; i += 32) { float2 z = __ldcg(parts + int64_t(row) * slices + i); float d = z.x - M; k += 1; M += d / k; S += z.y + d * d * cnt * ((k - 1) / k); }
                c = cnt * k;
#pragma unroll
                for (int l = 16; l; l /= 2) { float om = __shfl_xor_sync(~0u, M, l), os = __shfl_xor_sync(~0u, S, l), d = om - M; S += os + d * d * (c * 0.5f); M += d * 0.5f; c *= 2; }
                if (t == 0) {
                    __stcg(found + row, make_float2(M, rsqrtf(S / (4.0f * n4) + 1e-5f)));
                    __threadfence();
                    atomicExch(done + row, 0x80000000u);
                }
            }
        }
    } else {
        int const row = step - lag;
        if (row < 0 || row >= rows) return;
        int64_t const base = int64_t(row) * n4 + slice * (T * I);
        float4 const *px = reinterpret_cast<float4 const *>(x) + base;
        float4 *py = reinterpret_cast<float4 *>(y) + base;
        float4 q[I];
#pragma unroll
        for (int j = 0; j < I; ++j) q[j] = ld4<HN>(px + t + j * T, 0, 0);
        if (t == 0) {
            unsigned v;
            do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(done + row) : "memory");
            while (v != 0x80000000u);
        }
        __syncthreads();
        float2 const f = __ldcg(found + row);
#pragma unroll
        for (int j = 0; j < I; ++j) {
            int const c = row % groups * per + (slice * (T * I) + t + j * T) / hw4;
            float const G = g[c] * f.y, B = b[c] - f.x * G;
            float4 o = make_float4(q[j].x * G + B, q[j].y * G + B, q[j].z * G + B, q[j].w * G + B);
            if constexpr (HS) __stcs(py + t + j * T, o); else py[t + j * T] = o;
        }
    }
}
extern "C" int run_gn(int which, void const *x, void const *g, void const *b, void *y, int n, int rows, int hw, int groups, int per, void *ws, void *s) {
    auto st = (cudaStream_t)s; char *w = (char *)ws;
    unsigned *ctl = (unsigned *)w, *done = (unsigned *)(w + 128); float2 *found = (float2 *)(w + 128 + 4 * 4096); float2 *parts = (float2 *)(w + 65536);
    cudaMemsetAsync(w, 0, 128 + 4 * 4096, st);
#define G(id, T, I, OCC, LAG, HS, HN, HX, SM) if (which == id) { auto k = stream<T, I, OCC, HS, HN, HX>; if (SM) cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, SM); \
        k<<<(rows + LAG) * 2 * (n / 4 / (T * I)), T, SM, st>>>((float const *)x, (float const *)g, (float const *)b, (float *)y, n / 4, rows, hw / 4, groups, per, LAG, ctl, done, found, parts); }
    G(0, 256, 4, 8, 1, 0, 0, 0, 0) G(1, 256, 4, 8, 2, 0, 0, 0, 0) G(2, 256, 4, 8, 3, 0, 0, 0, 0)
    G(3, 256, 4, 8, 1, 1, 0, 0, 0) G(4, 256, 4, 8, 2, 1, 0, 0, 0) G(5, 256, 4, 8, 2, 1, 7, 0, 0)
    G(7, 256, 4, 4, 1, 0, 0, 0, 40000) G(8, 256, 4, 4, 2, 0, 0, 0, 40000) G(9, 256, 4, 4, 2, 1, 0, 0, 40000)
    G(10, 256, 8, 4, 2, 0, 0, 0, 0) G(11, 256, 8, 4, 2, 1, 0, 0, 0) G(12, 512, 4, 2, 2, 1, 0, 0, 0) G(13, 128, 4, 16, 2, 1, 0, 0, 0)
    G(14, 256, 2, 8, 2, 1, 0, 0, 0) G(15, 256, 2, 8, 1, 1, 0, 0, 0) G(16, 128, 4, 12, 1, 1, 0, 0, 16000) G(17, 256, 4, 6, 2, 1, 7, 0, 36000)
    return cudaGetLastError();
}
