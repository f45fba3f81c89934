// group_norm.cu - group norm in plain CUDA: rows in turns, so that the second reading of a row comes from the L2 cache.
//
//     nvcc -O3 -arch=sm_90a -shared -Xcompiler -fPIC group_norm.cu -o group_norm.so && python3 group_norm.py ./group_norm.so
//
// One launch finds the statistics of some rows and writes the rows before them; with APART they are two launches. With OVERLAP
// the next launch begins while this one ends (programmatic dependent launch); only the blocks that write wait for the statistics.
#include <algorithm>
#include <cstdint>
#include <cuda_runtime.h>
__device__ inline void fold(float &m, float &s2, float &c, int l) { // equal counts
    float om = __shfl_xor_sync(~0u, m, l), os = __shfl_xor_sync(~0u, s2, l), d = om - m;
    s2 += os + d * d * (c * 0.5f); m += d * 0.5f; c *= 2;
}
template <int T> __device__ inline void block_fold(float &m, float &s2, float &c) {
    __shared__ float2 p[T / 32];
#pragma unroll
    for (int l = 16; l; l /= 2) fold(m, s2, c, l);
    if (threadIdx.x % 32 == 0) p[threadIdx.x / 32] = make_float2(m, s2);
    __syncthreads();
    float2 z = p[threadIdx.x % (T / 32)]; m = z.x; s2 = z.y;
#pragma unroll
    for (int l = T / 64; l; l /= 2) fold(m, s2, c, l);
}
// HINT: 1: what is read for the last time and what is written leave the L2 first; 2: what is read first stays, besides
template <int HINT> __device__ inline float4 first_load(float4 const *p) {
    if constexpr (HINT == 2) {
        float4 r; uint64_t last;
        asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(last));
        asm volatile("ld.global.L2::cache_hint.v4.f32 {%0,%1,%2,%3}, [%4], %5;" : "=f"(r.x), "=f"(r.y), "=f"(r.z), "=f"(r.w) : "l"(p), "l"(last));
        return r;
    }
    return *p;
}
template <int T, int I, int HINT, int OVERLAP, int APART> __global__ void __launch_bounds__(T) step(float const *x, float const *g, float const *b, float *y, int n4, int hw4, int groups, int per, int first, int found, int written, float2 *parts) {
    int const t = threadIdx.x, slices = n4 / (T * I); // found: blocks that find, of rows from first on; written: the first row that is written
    if constexpr (OVERLAP) asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    float4 q[I];
    if (int(blockIdx.x) < found) { // statistics of rows first, first + 1, ...
        int64_t const slice = int64_t(first) * slices + blockIdx.x;
        float4 const *p = reinterpret_cast<float4 const *>(x) + slice * (T * I);
#pragma unroll
        for (int j = 0; j < I; ++j) q[j] = first_load<HINT>(p + t + j * T);
        float a = 0;
#pragma unroll
        for (int j = 0; j < I; ++j) a += q[j].x + q[j].y + q[j].z + q[j].w;
        float m = a / (4 * I), s2 = 0, c = 4.0f * I;
#pragma unroll
        for (int j = 0; j < I; ++j) { s2 += (q[j].x - m) * (q[j].x - m); s2 += (q[j].y - m) * (q[j].y - m); s2 += (q[j].z - m) * (q[j].z - m); s2 += (q[j].w - m) * (q[j].w - m); }
        block_fold<T>(m, s2, c);
        if constexpr (OVERLAP && APART) asm volatile("griddepcontrol.wait;" ::: "memory"); // who waits for us waits for all before
        if (t == 0) parts[slice] = make_float2(m, s2);
        return;
    }
    int64_t const slice = int64_t(written) * slices + (blockIdx.x - found);
    int const row = int(slice / slices), in_row = int(slice % slices);
    float4 const *p = reinterpret_cast<float4 const *>(x) + slice * (T * I);
    float4 *o = reinterpret_cast<float4 *>(y) + slice * (T * I);
#pragma unroll
    for (int j = 0; j < I; ++j) q[j] = HINT ? __ldcs(p + t + j * T) : p[t + j * T];
    if constexpr (OVERLAP) asm volatile("griddepcontrol.wait;" ::: "memory");
    float m = 0, s2 = 0, c = 4.0f * T * I; // of a slice; slices are a multiple of T
    for (int i = t, k = 0; i < slices; i += T, ++k) {
        float2 z = __ldcg(parts + int64_t(row) * slices + i); float d = z.x - m, f = 1.0f / (k + 1);
        m += d * f; s2 += z.y + d * d * (4.0f * T * I) * (k * f); c = 4.0f * T * I * (k + 1);
    }
    block_fold<T>(m, s2, c);
    float const scale = rsqrtf(s2 / (4.0f * n4) + 1e-5f);
#pragma unroll
    for (int j = 0; j < I; ++j) {
        int const ch = row % groups * per + (in_row * (T * I) + t + j * T) / hw4;
        float const G = g[ch] * scale, B = b[ch] - m * G;
        float4 const v = make_float4(q[j].x * G + B, q[j].y * G + B, q[j].z * G + B, q[j].w * G + B);
        if constexpr (HINT) __stcs(o + t + j * T, v); else o[t + j * T] = v;
    }
}
template <int T, int I, int HINT, int OVERLAP, int APART> int all(float const *x, float const *g, float const *b, float *y, int n4, int rows, int hw4, int groups, int per, int turn, float2 *parts, cudaStream_t st) {
    int const slices = n4 / (T * I);
    bool begun = false;
    auto launch = [&](int first, int finds, int from, int writes) {
        if (!finds && !writes) return;
        cudaLaunchConfig_t c{}; cudaLaunchAttribute a{};
        a.id = cudaLaunchAttributeProgrammaticStreamSerialization; a.val.programmaticStreamSerializationAllowed = 1;
        c.gridDim = (finds + writes) * slices; c.blockDim = T; c.stream = st;
        if (OVERLAP && begun) c.attrs = &a, c.numAttrs = 1;
        begun = true;
        cudaLaunchKernelEx(&c, step<T, I, HINT, OVERLAP, APART>, x, g, b, y, n4, hw4, groups, per, first, finds * slices, from, parts);
    };
    for (int first = 0; first < rows + turn; first += turn) {
        int const finds = first < rows ? std::min(turn, rows - first) : 0, writes = first ? std::min(turn, rows - (first - turn)) : 0;
        if (APART) launch(first, finds, 0, 0), launch(0, 0, first - turn, writes);
        else launch(first, finds, first - turn, writes);
    }
    return cudaGetLastError();
}
extern "C" char const *run_gn(int which, int turn, void const *x, void const *g, void const *b, void *y, int n, int rows, int hw, int groups, int per, void *ws, void *s) {
    char const *name = nullptr; int e = 0;
#define GN(id, T, I, H, O, A) if (which == id) e = all<T, I, H, O, A>((float const *)x, (float const *)g, (float const *)b, (float *)y, n / 4, rows, hw / 4, groups, per, turn, (float2 *)ws, (cudaStream_t)s), name = #T "x" #I " hint " #H " overlap " #O " apart " #A;
    GN(0, 256, 8, 1, 1, 0) GN(1, 256, 8, 0, 1, 0) GN(2, 256, 8, 2, 1, 0) GN(3, 256, 8, 1, 0, 0) GN(4, 256, 8, 1, 1, 1) GN(5, 256, 8, 2, 1, 1) GN(6, 256, 8, 1, 0, 1) GN(7, 256, 4, 1, 1, 0)
    if (!name) return "end";
    return e ? cudaGetErrorString((cudaError_t)e) : name;
}
