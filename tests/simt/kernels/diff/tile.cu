// tile.cu - tiles in shared memory: transposes, stencils, convolutions, copies that run ahead.
#include "common.cuh"
#include <cuda_pipeline_primitives.h>
#include <cute/tensor.hpp>
using namespace cute;

KERNEL(transpose_naive, float, float, float, float)
{
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x < n && y < m) out[x * m + y] = a[y * n + x];
}
KERNEL(transpose_pad, float, float, float, float)
{
    __shared__ float s[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < n && y + j < m) s[threadIdx.y + j][threadIdx.x] = a[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < m && y + j < n) out[(y + j) * m + x] = s[threadIdx.x][threadIdx.y + j];
}
KERNEL(transpose_swizzle, float, float, float, float)
{
    __shared__ float smem[32 * 32];
    auto layout = composition(Swizzle<5, 0, 5>{}, Layout<Shape<_32, _32>, Stride<_32, _1>>{});
    Tensor s = make_tensor(make_smem_ptr(smem), layout);                        // (32,32)
    Tensor st = make_tensor(make_smem_ptr(smem), composition(layout, Layout<Shape<_32, _32>, Stride<_32, _1>>{}));
    Tensor gA = local_tile(make_tensor(make_gmem_ptr(a), make_shape(m, n), LayoutRight{}),
                           Shape<_32, _32>{}, make_coord(blockIdx.y, blockIdx.x));
    Tensor gO = local_tile(make_tensor(make_gmem_ptr(out), make_shape(n, m), LayoutRight{}),
                           Shape<_32, _32>{}, make_coord(blockIdx.x, blockIdx.y));
    auto thr = make_layout(Shape<_8, _32>{}, LayoutRight{});
    int t = threadIdx.y * 32 + threadIdx.x;
    Tensor tA = local_partition(gA, thr, t);
    Tensor tS = local_partition(s, thr, t);
    for (int i = 0; i < size(tA); i++)
        tS(i) = tA(i);
    __syncthreads();
    Tensor tD = local_partition(st, thr, t);
    Tensor tO = local_partition(gO, thr, t);
    for (int i = 0; i < size(tO); i++)
        tO(i) = tD(i);
}
KERNEL(transpose_half_vec, f16, f16, f16, f16)
{
    __shared__ alignas(16) f16 s[64][72];
    int t = threadIdx.x, bx = blockIdx.x * 64, by = blockIdx.y * 64;
    for (int i = t; i < 64 * 8; i += 128)
        *reinterpret_cast<uint4 *>(&s[i / 8][i % 8 * 8]) =
            *reinterpret_cast<const uint4 *>(&a[(by + i / 8) * n + bx + i % 8 * 8]);
    __syncthreads();
    for (int i = t; i < 64 * 32; i += 128) {
        int r = i / 32, col = i % 32 * 2;
        *reinterpret_cast<half2 *>(&out[(bx + r) * m + by + col]) = __halves2half2(s[col][r], s[col + 1][r]);
    }
}
KERNEL(conv1d_halo, float, float, float, float)
{
    __shared__ float s[128 + 8], w[9];
    int base = blockIdx.x * 128;
    for (int i = threadIdx.x; i < 136; i += 128) {
        int at = base + i - 4;
        s[i] = at >= 0 && at < n ? a[at] : 0.0f;
    }
    if (threadIdx.x < 9) w[threadIdx.x] = b[threadIdx.x];
    __syncthreads();
    float x = 0;
    for (int j = 0; j < 9; j++)
        x += s[threadIdx.x + j] * w[j];
    if (base + threadIdx.x < n) out[base + threadIdx.x] = x;
}
KERNEL(conv2d_direct, float, float, float, float)
{
    // one channel in, k filters of 3x3 out, borders zero
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y, f = blockIdx.z;
    if (x >= n || y >= m) return;
    float s = 0;
    for (int i = -1; i <= 1; i++)
        for (int j = -1; j <= 1; j++)
            if (y + i >= 0 && y + i < m && x + j >= 0 && x + j < n)
                s = fmaf(a[(y + i) * n + x + j], b[f * 9 + (i + 1) * 3 + j + 1], s);
    out[(f * m + y) * n + x] = s;
}
KERNEL(conv2d_tile, float, float, float, float)
{
    __shared__ float s[18][18];
    int x = blockIdx.x * 16, y = blockIdx.y * 16, f = blockIdx.z, t = threadIdx.y * 16 + threadIdx.x;
    for (int i = t; i < 18 * 18; i += 256) {
        int yy = y + i / 18 - 1, xx = x + i % 18 - 1;
        s[i / 18][i % 18] = yy >= 0 && yy < m && xx >= 0 && xx < n ? a[yy * n + xx] : 0.0f;
    }
    __syncthreads();
    float r = 0;
    for (int i = 0; i < 9; i++)
        r = fmaf(s[threadIdx.y + i / 3][threadIdx.x + i % 3], __ldg(b + f * 9 + i), r);
    if (x + threadIdx.x < n && y + threadIdx.y < m) out[(f * m + y + threadIdx.y) * n + x + threadIdx.x] = r;
}
KERNEL(maxpool_2x2, float, float, float, float)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= n / 2) return;
    const float2 *p = reinterpret_cast<const float2 *>(a + 2 * y * n) + x;
    float2 u = p[0], v = p[n / 2];
    out[y * (n / 2) + x] = fmaxf(fmaxf(u.x, u.y), fmaxf(v.x, v.y));
}
KERNEL(stencil_5, float, float, float, float)
{
    __shared__ float s[18][34];
    int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * 32 + tx, y = blockIdx.y * 16 + ty;
    auto at = [&](int yy, int xx) { return a[min(max(yy, 0), m - 1) * n + min(max(xx, 0), n - 1)]; };
    s[ty + 1][tx + 1] = at(y, x);
    if (ty == 0) s[0][tx + 1] = at(y - 1, x);
    if (ty == 15) s[17][tx + 1] = at(y + 1, x);
    if (tx == 0) s[ty + 1][0] = at(y, x - 1);
    if (tx == 31) s[ty + 1][33] = at(y, x + 1);
    __syncthreads();
    out[y * n + x] = 0.5f * s[ty + 1][tx + 1] +
                     0.125f * (s[ty][tx + 1] + s[ty + 2][tx + 1] + s[ty + 1][tx] + s[ty + 1][tx + 2]);
}
KERNEL(gather_rows, float, int, float, float)
{
    int row = b[blockIdx.x] & (m - 1);
    for (int j = threadIdx.x; j < n / 4; j += blockDim.x)
        reinterpret_cast<float4 *>(out + blockIdx.x * n)[j] = __ldg(reinterpret_cast<const float4 *>(a + row * n) + j);
}
KERNEL(permute_0213, float, float, float, float)
{
    // (m, n, k, 8) -> (m, k, n, 8) by CuTe strides
    Tensor in = make_tensor(make_gmem_ptr(a), make_shape(8, k, n, m), make_stride(1, 8, 8 * k, 8 * k * n));
    Tensor o = make_tensor(make_gmem_ptr(out), make_shape(8, k, n, m), make_stride(1, 8 * n, 8, 8 * k * n));
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < size(in); i += gridDim.x * blockDim.x)
        o(i) = in(i);
}
KERNEL(async_copy_4, float, float, float, float)
{
    __shared__ float s[2][128];
    int t = threadIdx.x, tiles = n / 128;
    __pipeline_memcpy_async(&s[0][t], a + t, 4);
    __pipeline_commit();
    for (int i = 0; i < tiles; i++) {
        if (i + 1 < tiles) __pipeline_memcpy_async(&s[(i + 1) & 1][t], a + (i + 1) * 128 + t, 4);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        out[i * 128 + t] = s[i & 1][127 - t] * 2.0f;
        __syncthreads();
    }
}
KERNEL(async_copy_16, float, float, float, float)
{
    extern __shared__ float4 ring[];
    int t = threadIdx.x, tiles = n / 512;
    const float4 *src = reinterpret_cast<const float4 *>(a);
    for (int i = 0; i < 3; i++) {
        if (i < tiles) __pipeline_memcpy_async(&ring[i * 128 + t], src + i * 128 + t, 16);
        __pipeline_commit();
    }
    for (int i = 0; i < tiles; i++) {
        __pipeline_wait_prior(2);
        __syncthreads();
        float4 v = ring[i % 4 * 128 + (t ^ 1)];
        if (i + 3 < tiles) __pipeline_memcpy_async(&ring[(i + 3) % 4 * 128 + t], src + (i + 3) * 128 + t, 16);
        __pipeline_commit();
        reinterpret_cast<float4 *>(out)[i * 128 + t] = make_float4(v.w, v.z, v.y, v.x);
    }
}
KERNEL(async_zfill, float, float, float, float)
{
    // rows of k out of n elements: what is missing arrives as zero
    __shared__ alignas(16) float s[32][36];
    int r = threadIdx.x / 8, col = threadIdx.x % 8 * 4, row = blockIdx.x * 32 + r;
    int have = max(0, min(4, k - col)) * 4;
    __pipeline_memcpy_async(&s[r][col], a + (row < m ? row : 0) * n + col, 16, row < m ? 16 - have : 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    if (row < m) {
        float x = 0;
        for (int j = 0; j < 4; j++)
            x += s[r][col + j];
        for (int o = 4; o; o >>= 1)
            x += __shfl_xor_sync(~0u, x, o);
        if (col == 0) out[row] = x;
    }
}
KERNEL(named_barriers, float, float, float, float)
{
    // warps 0-1 produce, warps 2-3 consume: two buffers, barriers 1-2 full, 3-4 empty
    __shared__ float s[2][64];
    int t = threadIdx.x & 63, tiles = n / 64;
    if (threadIdx.x < 64) {
        for (int i = 0; i < tiles; i++) {
            if (i >= 2) asm volatile("bar.sync %0, 128;" ::"r"(3 + (i & 1)) : "memory");
            s[i & 1][t] = a[i * 64 + t] + 1.0f;
            asm volatile("bar.arrive %0, 128;" ::"r"(1 + (i & 1)) : "memory");
        }
    } else {
        for (int i = 0; i < tiles; i++) {
            asm volatile("bar.sync %0, 128;" ::"r"(1 + (i & 1)) : "memory");
            out[i * 64 + t] = s[i & 1][63 - t];
            if (i + 2 < tiles) asm volatile("bar.arrive %0, 128;" ::"r"(3 + (i & 1)) : "memory");
        }
    }
}
KERNEL(mbarrier_ring, float, float, float, float)
{
    // the same with mbarriers, and asynchronous copies that arrive on them
    __shared__ alignas(16) float s[2][64];
    __shared__ alignas(8) unsigned long long full[2], empty[2];
    int t = threadIdx.x & 63, tiles = n / 64;
    auto at = [](void *p) { return (unsigned)__cvta_generic_to_shared(p); };
    auto wait = [&](unsigned long long *bar, int phase) {
        asm volatile("{ .reg .pred p; L%=: mbarrier.test_wait.parity.shared.b64 p, [%0], %1; @!p bra L%=; }" ::"r"(
                         at(bar)),
                     "r"(phase)
                     : "memory");
    };
    if (threadIdx.x == 0)
        for (int i = 0; i < 2; i++) {
            asm volatile("mbarrier.init.shared.b64 [%0], 64;" ::"r"(at(&full[i])) : "memory");
            asm volatile("mbarrier.init.shared.b64 [%0], 64;" ::"r"(at(&empty[i])) : "memory");
        }
    __syncthreads();
    if (threadIdx.x < 64) {
        for (int i = 0; i < tiles; i++) {
            if (i >= 2) wait(&empty[i & 1], (i / 2 - 1) & 1);
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at(&s[i & 1][t])), "l"(a + i * 64 + t)
                         : "memory");
            asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(at(&full[i & 1])) : "memory");
        }
        asm volatile("cp.async.wait_all;" ::: "memory");
    } else {
        for (int i = 0; i < tiles; i++) {
            wait(&full[i & 1], i / 2 & 1);
            out[i * 64 + t] = s[i & 1][t ^ 5];
            asm volatile("{ .reg .b64 st; mbarrier.arrive.shared.b64 st, [%0]; }" ::"r"(at(&empty[i & 1])) : "memory");
        }
    }
}
