// reduce.cu - sums, maxima, softmax, norms, scans, histograms: by block, by warp, by atomics.
#include "common.cuh"
#include <cute/tensor.hpp>
using namespace cute;

KERNEL(red_sum_atomic, float, float, float, float)
{
    __shared__ float s[256];
    float x = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        x += a[i];
    s[threadIdx.x] = x;
    __syncthreads();
    for (int o = blockDim.x / 2; o; o >>= 1) {
        if (threadIdx.x < o) s[threadIdx.x] += s[threadIdx.x + o];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(out, s[0]);
}
KERNEL(red_rows_warp, float, float, float, float)
{
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= m) return;
    float x = 0;
    for (int j = lane; j < n; j += 32)
        x += a[row * n + j];
    x = warp_sum(x);
    if (lane == 0) out[row] = x;
}
KERNEL(red_max_block, float, float, float, float)
{
    __shared__ float s[32];
    float x = -INFINITY;
    for (int j = threadIdx.x; j < n; j += blockDim.x)
        x = fmaxf(x, a[blockIdx.x * n + j]);
    x = warp_max(x);
    if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = x;
    __syncthreads();
    if (threadIdx.x < 32) {
        x = threadIdx.x < blockDim.x / 32 ? s[threadIdx.x] : -INFINITY;
        x = warp_max(x);
        if (threadIdx.x == 0) out[blockIdx.x] = x;
    }
}
KERNEL(red_int_redux, int, int, int, int)
{
    int row = blockIdx.x, lane = threadIdx.x;
    int s = 0, mx = INT_MIN;
    unsigned x = 0;
    for (int j = lane; j < n; j += 32) {
        s += a[row * n + j];
        mx = max(mx, a[row * n + j]);
        x ^= a[row * n + j];
    }
    s = __reduce_add_sync(~0u, s);
    mx = __reduce_max_sync(~0u, mx);
    x = __reduce_xor_sync(~0u, x);
    if (lane == 0) out[row] = s + mx + (int)x;
}
KERNEL(red_argmax, float, float, float, int)
{
    __shared__ float sv[128];
    __shared__ int si[128];
    float best = -INFINITY;
    int at = 0;
    for (int j = threadIdx.x; j < n; j += blockDim.x)
        if (a[blockIdx.x * n + j] > best) best = a[blockIdx.x * n + j], at = j;
    sv[threadIdx.x] = best;
    si[threadIdx.x] = at;
    __syncthreads();
    for (int o = 64; o; o >>= 1) {
        if (threadIdx.x < o) {
            float v = sv[threadIdx.x + o];
            int i = si[threadIdx.x + o];
            if (v > sv[threadIdx.x] || (v == sv[threadIdx.x] && i < si[threadIdx.x])) {
                sv[threadIdx.x] = v;
                si[threadIdx.x] = i;
            }
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = si[0];
}
KERNEL(softmax_naive, float, float, float, float)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= m) return;
    float mx = -INFINITY, s = 0;
    for (int j = 0; j < n; j++)
        mx = fmaxf(mx, a[row * n + j]);
    for (int j = 0; j < n; j++)
        s += expf(a[row * n + j] - mx);
    for (int j = 0; j < n; j++)
        out[row * n + j] = expf(a[row * n + j] - mx) / s;
}
KERNEL(softmax_block, float, float, float, float)
{
    extern __shared__ float row[];
    __shared__ float part[32];
    int warps = blockDim.x / 32, w = threadIdx.x / 32, lane = threadIdx.x % 32;
    float mx = -INFINITY, s = 0;
    for (int j = threadIdx.x; j < n; j += blockDim.x) {
        row[j] = a[blockIdx.x * n + j];
        mx = fmaxf(mx, row[j]);
    }
    mx = warp_max(mx);
    if (lane == 0) part[w] = mx;
    __syncthreads();
    mx = part[0];
    for (int i = 1; i < warps; i++)
        mx = fmaxf(mx, part[i]);
    __syncthreads();
    for (int j = threadIdx.x; j < n; j += blockDim.x) {
        row[j] = __expf(row[j] - mx);
        s += row[j];
    }
    s = warp_sum(s);
    if (lane == 0) part[w] = s;
    __syncthreads();
    s = 0;
    for (int i = 0; i < warps; i++)
        s += part[i];
    for (int j = threadIdx.x; j < n; j += blockDim.x)
        out[blockIdx.x * n + j] = row[j] / s;
}
KERNEL(softmax_online, float, float, float, float)
{
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    float mx = -INFINITY, s = 0;
    for (int j = lane; j < n; j += 32) {
        float x = a[row * n + j], y = fmaxf(mx, x);
        s = s * __expf(mx - y) + __expf(x - y);
        mx = y;
    }
    for (int o = 16; o; o >>= 1) {
        float m2 = __shfl_xor_sync(~0u, mx, o), s2 = __shfl_xor_sync(~0u, s, o);
        float y = fmaxf(mx, m2);
        s = s * __expf(mx - y) + s2 * __expf(m2 - y);
        mx = y;
    }
    for (int j = lane; j < n; j += 32)
        out[row * n + j] = __expf(a[row * n + j] - mx) / s;
}
KERNEL(layernorm_block, float, float, float, float)
{
    __shared__ float part[2][8];
    int w = threadIdx.x / 32;
    float s = 0, q = 0;
    for (int j = threadIdx.x; j < n; j += blockDim.x) {
        float x = a[blockIdx.x * n + j];
        s += x;
        q += x * x;
    }
    s = warp_sum(s);
    q = warp_sum(q);
    if (threadIdx.x % 32 == 0) part[0][w] = s, part[1][w] = q;
    __syncthreads();
    s = q = 0;
    for (int i = 0; i < blockDim.x / 32; i++)
        s += part[0][i], q += part[1][i];
    float mean = s / n, r = rsqrtf(q / n - mean * mean + 1e-5f);
    for (int j = threadIdx.x; j < n; j += blockDim.x)
        out[blockIdx.x * n + j] = (a[blockIdx.x * n + j] - mean) * r * b[j] + c[j];
}
KERNEL(layernorm_welford, float, float, float, float)
{
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    float mean = 0, m2 = 0, count = 0;
    for (int j = lane; j < n; j += 32) {
        float x = a[row * n + j], d = x - mean;
        count += 1;
        mean += d / count;
        m2 += d * (x - mean);
    }
    for (int o = 1; o < 32; o <<= 1) {
        float n2 = __shfl_xor_sync(~0u, count, o), mean2 = __shfl_xor_sync(~0u, mean, o);
        float q2 = __shfl_xor_sync(~0u, m2, o), t = count + n2, d = mean2 - mean;
        mean += d * n2 / t;
        m2 += q2 + d * d * count * n2 / t;
        count = t;
    }
    float r = 1.0f / sqrtf(m2 / n + 1e-5f);
    for (int j = lane; j < n; j += 32)
        out[row * n + j] = (a[row * n + j] - mean) * r * b[j] + c[j];
}
KERNEL(rmsnorm_half, f16, f16, f16, f16)
{
    int row = blockIdx.x, lane = threadIdx.x;
    const half2 *x = reinterpret_cast<const half2 *>(a + row * n), *g = reinterpret_cast<const half2 *>(b);
    half2 *o = reinterpret_cast<half2 *>(out + row * n);
    float q = 0;
    for (int j = lane; j < n / 2; j += 32) {
        float2 v = __half22float2(x[j]);
        q += v.x * v.x + v.y * v.y;
    }
    q = rsqrtf(warp_sum(q) / n + 1e-5f);
    for (int j = lane; j < n / 2; j += 32) {
        float2 v = __half22float2(x[j]), w = __half22float2(g[j]);
        o[j] = __floats2half2_rn(v.x * q * w.x, v.y * q * w.y);
    }
}
KERNEL(logsumexp_rows, float, float, float, float)
{
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    float mx = -INFINITY, s = 0;
    for (int j = lane; j < n; j += 32)
        mx = fmaxf(mx, a[row * n + j]);
    mx = warp_max(mx);
    for (int j = lane; j < n; j += 32)
        s += exp2f((a[row * n + j] - mx) * 1.442695041f);
    s = warp_sum(s);
    if (lane == 0) out[row] = mx + logf(s);
}
KERNEL(scan_block, float, float, float, float)
{
    __shared__ float s[2][256];
    int t = threadIdx.x, at = 0;
    s[0][t] = a[blockIdx.x * 256 + t];
    __syncthreads();
    for (int o = 1; o < 256; o <<= 1, at ^= 1) {
        s[at ^ 1][t] = s[at][t] + (t >= o ? s[at][t - o] : 0.0f);
        __syncthreads();
    }
    out[blockIdx.x * 256 + t] = s[at][t];
}
KERNEL(scan_warp, float, float, float, float)
{
    __shared__ float total[8];
    int t = threadIdx.x, lane = t % 32, w = t / 32;
    float x = a[blockIdx.x * 256 + t];
    for (int o = 1; o < 32; o <<= 1) {
        float y = __shfl_up_sync(~0u, x, o);
        if (lane >= o) x += y;
    }
    if (lane == 31) total[w] = x;
    __syncthreads();
    if (w == 0) {
        float y = lane < 8 ? total[lane] : 0.0f;
        for (int o = 1; o < 8; o <<= 1) {
            float z = __shfl_up_sync(~0u, y, o);
            if (lane >= o) y += z;
        }
        if (lane < 8) total[lane] = y;
    }
    __syncthreads();
    out[blockIdx.x * 256 + t] = x + (w ? total[w - 1] : 0.0f);
}
KERNEL(histogram_shared, int, int, int, int)
{
    __shared__ int bins[64];
    if (threadIdx.x < 64) bins[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[a[i] & 63], 1);
    __syncthreads();
    if (threadIdx.x < 64) atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}
KERNEL(histogram_match, int, int, int, int)
{
    // one atomic per distinct value of a warp
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        int v = a[i] & 63;
        unsigned active = __activemask(), same = __match_any_sync(active, v);
        if (__ffs(same) - 1 == threadIdx.x % 32) atomicAdd(&out[v], __popc(same));
    }
}
KERNEL(count_ballot, int, int, int, int)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned x = __ballot_sync(~0u, i < n && (a[i] & 7) == 3);
    if (threadIdx.x % 32 == 0) atomicAdd(out, __popc(x));
    bool all = __syncthreads_count(i < n && (a[i] & 1)) > 100;
    if (threadIdx.x == 0 && all) atomicAdd(out + 1, 1);
    if (threadIdx.x == 0 && i == 0) out[2] = __any_sync(1u, a[0] > 0);
}
KERNEL(dot_fp64, double, double, double, double)
{
    __shared__ double s[128];
    double x = 0;
    for (int j = threadIdx.x; j < n; j += 128)
        x = fma(a[blockIdx.x * n + j], b[blockIdx.x * n + j], x);
    s[threadIdx.x] = x;
    __syncthreads();
    for (int o = 64; o; o >>= 1) {
        if (threadIdx.x < o) s[threadIdx.x] += s[threadIdx.x + o];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}
KERNEL(red_cute_rows, float, float, float, float)
{
    Tensor gA = make_tensor(make_gmem_ptr(a), make_shape(m, n), LayoutRight{});
    Tensor row = gA(blockIdx.x, _);                                                  // (n)
    Tensor mine = local_partition(row, Layout<_32>{}, threadIdx.x);                  // (n/32)
    float x = 0;
    for (int i = 0; i < size(mine); i++)
        x += mine(i);
    x = warp_sum(x);
    if (threadIdx.x == 0) out[blockIdx.x] = x;
}
KERNEL(last_block_sum, float, float, float, float)
{
    // out[0]: the sum; out[1..grid]: parts; the last block to arrive adds them
    __shared__ bool last;
    float x = warp_sum(a[blockIdx.x * 32 + threadIdx.x]);
    unsigned *ticket = reinterpret_cast<unsigned *>(out + 1 + gridDim.x);
    if (threadIdx.x == 0) {
        out[1 + blockIdx.x] = x;
        __threadfence();
        last = atomicAdd(ticket, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    float s = 0;
    for (int i = threadIdx.x; i < gridDim.x; i += 32)
        s += __ldcg(out + 1 + i);
    s = warp_sum(s);
    if (threadIdx.x == 0) {
        out[0] = s;
        *ticket = 0;
    }
}
