// layer_norm.cu - layer norm over rows of 4096 in plain CUDA: what keeps the memory busy while rows are reduced.
//
//     nvcc -O3 -arch=sm_90a -shared -Xcompiler -fPIC layer_norm.cu -o layer_norm.so && python3 layer_norm.py ./layer_norm.so
#include <cstdint>
#include <cuda_runtime.h>
__device__ inline float4 ld_last(float4 const *p) { // stays in the L2
    float4 r; uint64_t last;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(last));
    asm volatile("ld.global.L2::cache_hint.v4.f32 {%0,%1,%2,%3}, [%4], %5;" : "=f"(r.x), "=f"(r.y), "=f"(r.z), "=f"(r.w) : "l"(p), "l"(last));
    return r;
}
__device__ inline float4 ld_past(float4 const *p) {
    float4 r;
    asm volatile("ld.global.L1::no_allocate.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(r.x), "=f"(r.y), "=f"(r.z), "=f"(r.w) : "l"(p));
    return r;
}
__device__ inline void fold(float &m, float &s2, float &c, int l) { // equal counts
    float om = __shfl_xor_sync(~0u, m, l), os = __shfl_xor_sync(~0u, s2, l), d = om - m;
    s2 += os + d * d * (c * 0.5f); m += d * 0.5f; c *= 2;
}
template <int I> __device__ inline void own(float4 const (&q)[I], float &m, float &s2, float &c) {
    float a = 0;
#pragma unroll
    for (int j = 0; j < I; ++j) a += q[j].x + q[j].y + q[j].z + q[j].w;
    m = a / (4 * I); s2 = 0; c = 4.0f * I;
#pragma unroll
    for (int j = 0; j < I; ++j) { s2 += (q[j].x - m) * (q[j].x - m); s2 += (q[j].y - m) * (q[j].y - m); s2 += (q[j].z - m) * (q[j].z - m); s2 += (q[j].w - m) * (q[j].w - m); }
#pragma unroll
    for (int l = 16; l; l /= 2) fold(m, s2, c, l);
}
__device__ inline float4 scaled(float4 q, float4 g, float4 b, float mean, float scale) {
    return make_float4((q.x - mean) * scale * g.x + b.x, (q.y - mean) * scale * g.y + b.y, (q.z - mean) * scale * g.z + b.z, (q.w - mean) * scale * g.w + b.w);
}
template <int HX> __device__ inline float4 load(float4 const *p) { return HX == 1 ? ld_last(p) : HX == 2 ? ld_past(p) : HX == 3 ? __ldcs(p) : *p; }
template <int HS> __device__ inline void store(float4 *p, float4 v) {
    if constexpr (HS == 1) __stcs(p, v);
    else if constexpr (HS == 2) __stcg(p, v);
    else if constexpr (HS == 3) {
        uint64_t first;
        asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(first));
        asm volatile("st.global.L2::cache_hint.v4.f32 [%0], {%1,%2,%3,%4}, %5;" :: "l"(p), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w), "l"(first) : "memory");
    } else *p = v;
}
// one row per block; loads HX 0 plain, 1 stay in the L2, 2 past the L1, 3 leave first; stores HS 0 plain, 1 leave first (cs), 2 past the L1, 3 leave the L2 first
template <int T, int I, int HX, int HS = 0> __global__ void __launch_bounds__(T) held(float const *x, float const *g, float const *b, float *y, int n, int rows) {
    int const t = threadIdx.x; int64_t const base = int64_t(blockIdx.x) * n;
    auto px = reinterpret_cast<float4 const *>(x + base), pg = reinterpret_cast<float4 const *>(g), pb = reinterpret_cast<float4 const *>(b);
    float4 q[I];
#pragma unroll
    for (int j = 0; j < I; ++j) q[j] = load<HX>(px + t + j * T);
    __shared__ float2 p[T / 32];
    float m, s2, c; own(q, m, s2, c);
    if (t % 32 == 0) p[t / 32] = make_float2(m, s2);
    __syncthreads();
    float2 z = p[t % (T / 32)]; m = z.x; s2 = z.y;
#pragma unroll
    for (int l = T / 64; l; l /= 2) fold(m, s2, c, l);
    float const scale = rsqrtf(s2 / n + 1e-5f);
    auto py = reinterpret_cast<float4 *>(y + base);
#pragma unroll
    for (int j = 0; j < I; ++j) store<HS>(py + t + j * T, scaled(q[j], pg[t + j * T], pb[t + j * T], m, scale));
}
// the same bytes without any reduction: a pointwise pass
template <int HX, int HS> __global__ void __launch_bounds__(128) pointwise(float const *x, float *y) {
    int64_t const i = int64_t(blockIdx.x) * 128 + threadIdx.x;
    float4 q = load<HX>(reinterpret_cast<float4 const *>(x) + i);
    store<HS>(reinterpret_cast<float4 *>(y) + i, make_float4(fmaxf(q.x, 0.0f), fmaxf(q.y, 0.0f), fmaxf(q.z, 0.0f), fmaxf(q.w, 0.0f)));
}
// blocks stay, weights in registers, the next row on its way into registers while this one is reduced
template <int T, int I, int B> __global__ void __launch_bounds__(T, B) stay(float const *x, float const *g, float const *b, float *y, int n, int rows) {
    int const t = threadIdx.x;
    auto px = reinterpret_cast<float4 const *>(x), pg = reinterpret_cast<float4 const *>(g), pb = reinterpret_cast<float4 const *>(b);
    auto py = reinterpret_cast<float4 *>(y);
    float4 q[I], next[I], gg[I], bb[I];
    int const n4 = n / 4; int row = blockIdx.x, turn = 0;
#pragma unroll
    for (int j = 0; j < I; ++j) { next[j] = px[int64_t(row) * n4 + t + j * T]; gg[j] = pg[t + j * T]; bb[j] = pb[t + j * T]; }
    __shared__ float2 p[2][T / 32];
    for (; row < rows; row += gridDim.x, turn ^= 1) {
#pragma unroll
        for (int j = 0; j < I; ++j) q[j] = next[j];
        if (row + int(gridDim.x) < rows) {
#pragma unroll
            for (int j = 0; j < I; ++j) next[j] = px[int64_t(row + gridDim.x) * n4 + t + j * T];
        }
        float m, s2, c; own(q, m, s2, c);
        if (t % 32 == 0) p[turn][t / 32] = make_float2(m, s2);
        __syncthreads();
        float2 z = p[turn][t % (T / 32)]; m = z.x; s2 = z.y;
#pragma unroll
        for (int l = T / 64; l; l /= 2) fold(m, s2, c, l);
        float const scale = rsqrtf(s2 / n + 1e-5f);
#pragma unroll
        for (int j = 0; j < I; ++j) py[int64_t(row) * n4 + t + j * T] = scaled(q[j], gg[j], bb[j], m, scale);
    }
}
// blocks stay, rows come by bulk copies into a ring of R rows; W: weights in registers; S: rows leave by bulk copies too
__device__ inline unsigned at(void const *p) { return unsigned(__cvta_generic_to_shared(p)); }
__device__ inline void wait(unsigned bar, unsigned phase) {
    asm volatile("{\n.reg .pred P;\nW: mbarrier.try_wait.parity.shared::cta.b64 P, [%0], %1;\n@P bra D;\nbra W;\nD:\n}" :: "r"(bar), "r"(phase) : "memory");
}
__device__ inline void fetch(unsigned to, void const *from, unsigned bytes, unsigned bar) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(to), "l"(from), "r"(bytes), "r"(bar) : "memory");
}
template <int T, int I, int R, int B, int W, int S> __global__ void __launch_bounds__(T, B) ring(float const *x, float const *g, float const *b, float *y, int n, int rows) {
    extern __shared__ __align__(128) float4 buf[]; // (n/4,R), then with S (n/4,2)
    __shared__ uint64_t full[R]; __shared__ float2 p[2][T / 32];
    int const t = threadIdx.x, n4 = n / 4; unsigned const bytes = n * 4;
    auto pg = reinterpret_cast<float4 const *>(g), pb = reinterpret_cast<float4 const *>(b);
    auto py = reinterpret_cast<float4 *>(y);
    if (t == 0) {
        for (int r = 0; r < R; ++r) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(at(full + r)));
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        for (int r = 0; r < R; ++r) if (blockIdx.x + r * gridDim.x < rows) fetch(at(buf + r * n4), x + int64_t(blockIdx.x + r * gridDim.x) * n, bytes, at(full + r));
    }
    float4 gg[I], bb[I];
    if (W) {
#pragma unroll
        for (int j = 0; j < I; ++j) { gg[j] = pg[t + j * T]; bb[j] = pb[t + j * T]; }
    }
    __syncthreads();
    int stage = 0, turn = 0; unsigned phase = 0;
    for (int row = blockIdx.x; row < rows; row += gridDim.x, turn ^= 1) {
        wait(at(full + stage), phase);
        float4 q[I];
#pragma unroll
        for (int j = 0; j < I; ++j) q[j] = buf[stage * n4 + t + j * T];
        float m, s2, c; own(q, m, s2, c);
        if (t % 32 == 0) p[turn][t / 32] = make_float2(m, s2);
        if (S && t == 0) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory"); // of the two, the older has left
        __syncthreads(); // all have read the stage
        if (t == 0 && row + R * int(gridDim.x) < rows) fetch(at(buf + stage * n4), x + int64_t(row + R * gridDim.x) * n, bytes, at(full + stage));
        float2 z = p[turn][t % (T / 32)]; m = z.x; s2 = z.y;
#pragma unroll
        for (int l = T / 64; l; l /= 2) fold(m, s2, c, l);
        float const scale = rsqrtf(s2 / n + 1e-5f);
        if constexpr (S) {
            float4 *o = buf + (R + turn) * n4;
#pragma unroll
            for (int j = 0; j < I; ++j) o[t + j * T] = scaled(q[j], W ? gg[j] : pg[t + j * T], W ? bb[j] : pb[t + j * T], m, scale);
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            __syncthreads();
            if (t == 0) {
                asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" :: "l"(py + int64_t(row) * n4), "r"(at(o)), "r"(bytes) : "memory");
                asm volatile("cp.async.bulk.commit_group;" ::: "memory");
            }
        } else {
#pragma unroll
            for (int j = 0; j < I; ++j) py[int64_t(row) * n4 + t + j * T] = scaled(q[j], W ? gg[j] : pg[t + j * T], W ? bb[j] : pb[t + j * T], m, scale);
        }
        if (++stage == R) stage = 0, phase ^= 1;
    }
    if (S && t == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
// a warp per row, several rows per block: no barrier at all
template <int WARPS, int B> __global__ void __launch_bounds__(WARPS * 32, B) warp(float const *x, float const *g, float const *b, float *y, int n, int rows) {
    int const t = threadIdx.x % 32, row = blockIdx.x * WARPS + threadIdx.x / 32; int64_t const base = int64_t(row) * n;
    auto px = reinterpret_cast<float4 const *>(x + base), pg = reinterpret_cast<float4 const *>(g), pb = reinterpret_cast<float4 const *>(b);
    float4 q[32];
#pragma unroll
    for (int j = 0; j < 32; ++j) q[j] = px[t + j * 32];
    float m, s2, c; own(q, m, s2, c);
    float const scale = rsqrtf(s2 / n + 1e-5f);
    auto py = reinterpret_cast<float4 *>(y + base);
#pragma unroll
    for (int j = 0; j < 32; ++j) py[t + j * 32] = scaled(q[j], pg[t + j * 32], pb[t + j * 32], m, scale);
}
extern "C" char const *run_ln(int which, void const *x, void const *g, void const *b, void *y, int n, int rows, void *s) {
    auto st = (cudaStream_t)s; auto X = (float const *)x, G = (float const *)g, Bb = (float const *)b; auto Y = (float *)y; char const *name = nullptr;
#define HELD(id, T, I, H) if (which == id) held<T, I, H><<<rows, T, 0, st>>>(X, G, Bb, Y, n, rows), name = "held " #T "x" #I " hint " #H;
#define STAY(id, T, I, B) if (which == id) stay<T, I, B><<<132 * B, T, 0, st>>>(X, G, Bb, Y, n, rows), name = "stay " #T "x" #I " blocks " #B;
#define RING(id, T, I, R, B, W, S) if (which == id) { int sm = n * 4 * (R + (S ? 2 : 0)); cudaFuncSetAttribute(ring<T, I, R, B, W, S>, cudaFuncAttributeMaxDynamicSharedMemorySize, sm); ring<T, I, R, B, W, S><<<132 * B, T, sm, st>>>(X, G, Bb, Y, n, rows), name = "ring " #T "x" #I " rows " #R " blocks " #B " weights " #W " bulk out " #S; }
#define WARP(id, K, B) if (which == id) warp<K, B><<<rows / K, K * 32, 0, st>>>(X, G, Bb, Y, n, rows), name = "warp " #K " blocks " #B;
    HELD(0, 256, 4, 0) HELD(1, 512, 2, 0) HELD(2, 512, 2, 1) HELD(3, 512, 2, 2) HELD(4, 256, 4, 2)
    STAY(5, 256, 4, 2) STAY(6, 512, 2, 2) STAY(7, 256, 4, 3)
    RING(8, 256, 4, 4, 3, 1, 0) RING(9, 256, 4, 6, 2, 1, 0) RING(10, 512, 2, 4, 3, 1, 0) RING(11, 256, 4, 2, 6, 0, 0) RING(12, 256, 4, 3, 4, 0, 0) RING(13, 256, 4, 2, 4, 1, 0)
    RING(14, 256, 4, 3, 2, 1, 1) RING(15, 256, 4, 2, 3, 1, 1) RING(16, 512, 2, 6, 2, 1, 0) RING(17, 512, 2, 3, 4, 0, 0) RING(18, 1024, 1, 6, 2, 1, 0)
    WARP(19, 4, 3) WARP(20, 2, 6)
#define STORE(id, T, I, H, HS) if (which == id) held<T, I, H, HS><<<rows, T, 0, st>>>(X, G, Bb, Y, n, rows), name = "held " #T "x" #I " hint " #H " store " #HS;
#define RELU(id, H, HS) if (which == id) pointwise<H, HS><<<rows * (n / 512), 128, 0, st>>>(X, Y), name = "relu hint " #H " store " #HS;
    STORE(21, 512, 2, 0, 1) STORE(22, 512, 2, 1, 1) STORE(23, 256, 4, 0, 1) STORE(24, 512, 2, 0, 3) STORE(25, 512, 2, 1, 3) STORE(26, 512, 2, 0, 2) STORE(27, 256, 4, 1, 0) STORE(28, 128, 8, 1, 0) STORE(29, 512, 2, 3, 1)
    RELU(30, 0, 0) RELU(31, 1, 0) RELU(32, 0, 1) RELU(33, 1, 1)
    if (!name) return "end";
    auto e = cudaGetLastError();
    return e ? cudaGetErrorString(e) : name;
}
// smallest of a row of odd length: 16 bytes at a time between the ends; H 0 plain, 1 past the L1, 2 marked as read once; R rows per block
__device__ inline float mn(float m, float x) { return x < m || x != x ? x : m; }
template <int T, int I, int R, int H> __global__ void __launch_bounds__(T) odd(float const *x, float *y, int n) {
    int const t = threadIdx.x; __shared__ float part[R][T / 32];
    float4 q[R][I]; float a[R]; float const inf = __int_as_float(0x7f800000);
#pragma unroll
    for (int r = 0; r < R; ++r) {
        float const *p = x + (int64_t(blockIdx.x) * R + r) * n;
        int const off = int(reinterpret_cast<uintptr_t>(p) / 4 % 4), head = min((4 - off) % 4, n), body = (n - head) / 4, tail = head + body * 4;
        auto v = reinterpret_cast<float4 const *>(p + head);
#pragma unroll
        for (int j = 0; j < I; ++j) q[r][j] = t + j * T < body ? (H == 1 ? ld_past(v + t + j * T) : H == 2 ? __ldcs(v + t + j * T) : v[t + j * T]) : make_float4(inf, inf, inf, inf);
        a[r] = t < head ? p[t] : inf; if (tail + t < n) a[r] = mn(a[r], p[tail + t]);
    }
#pragma unroll
    for (int r = 0; r < R; ++r) {
#pragma unroll
        for (int j = 0; j < I; ++j) { a[r] = mn(a[r], q[r][j].x); a[r] = mn(a[r], q[r][j].y); a[r] = mn(a[r], q[r][j].z); a[r] = mn(a[r], q[r][j].w); }
        for (int l = 16; l; l /= 2) a[r] = mn(a[r], __shfl_xor_sync(~0u, a[r], l));
        if (t % 32 == 0) part[r][t / 32] = a[r];
    }
    __syncthreads();
    if (t < R * (T / 32)) {
        float b = part[t / (T / 32)][t % (T / 32)];
        for (int l = T / 64; l; l /= 2) b = mn(b, __shfl_xor_sync(R * (T / 32) == 32 ? ~0u : (1u << (R * (T / 32) % 32)) - 1, b, l));
        if (t % (T / 32) == 0) y[int64_t(blockIdx.x) * R + t / (T / 32)] = b;
    }
}
extern "C" char const *run_min(int which, void const *x, void *y, int n, int rows, void *s) {
    auto st = (cudaStream_t)s; char const *name = nullptr;
#define ODD(id, T, I, R, H) if (which == id) odd<T, I, R, H><<<rows / R, T, 0, st>>>((float const *)x, (float *)y, n), name = "min " #T "x" #I " rows " #R " hint " #H;
    ODD(0, 256, 4, 1, 0) ODD(1, 256, 4, 1, 1) ODD(2, 256, 4, 1, 2) ODD(3, 256, 4, 2, 0) ODD(4, 256, 4, 2, 1) ODD(5, 256, 4, 2, 2) ODD(6, 128, 8, 1, 1) ODD(7, 512, 2, 2, 1) ODD(8, 256, 4, 4, 1)
    if (!name) return "end";
    auto e = cudaGetLastError();
    return e ? cudaGetErrorString(e) : name;
}
