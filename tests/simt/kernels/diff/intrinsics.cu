// intrinsics.cu - what CUDA's headers and libcu++ make of their intrinsics: bit tricks,
// SIMD in a word, half arithmetic, warp collectives, cooperative groups, pipelines, calls.
#include "common.cuh"
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_fp8.h>
namespace cg = cooperative_groups;

KERNEL(intr_ints, int, int, int, int)
{
    int i = threadIdx.x, at = 0;
    unsigned x = a[i], y = a[i + 32], z = b[i];
    unsigned long long u = (unsigned long long)x << 32 | (unsigned)b[i], v = b[i + 32] | 1;
    auto put = [&](long long r) { out[at++ * 32 + i] = (int)r; };
    put(__popc(x));
    put(__popcll(u));
    put(__clz(x));
    put(__clzll(u));
    put(__ffs(x));
    put(__ffsll(u));
    put(__brev(x));
    put((unsigned)__brevll(u));
    put(__byte_perm(x, y, 0x3120));
    put(__funnelshift_r(x, y, 5));
    put(__funnelshift_lc(x, y, 40));
    put(__mul24(x, y));
    put(__umul24(x, y));
    put(__mulhi((int)x, (int)y));
    put(__umulhi(x, y));
    put((unsigned)__mul64hi(u, v));
    put((unsigned)__umul64hi(u, v));
    put(__sad(x, y, z));
    put(__usad(x, y, z));
    put(__hadd(x, y));
    put(__rhadd(x, y));
    put(__uhadd(x, y));
    put(abs((int)x));
    put(min(x, y));
    put(max((int)x, (int)y));
    put(__vadd2(x, y));
    put(__vadd4(x, y));
    put(__vaddss2(x, y));
    put(__vaddus4(x, y));
    put(__vsub2(x, y));
    put(__vsubss4(x, y));
    put(__vabs2(x));
    put(__vabsdiffu4(x, y));
    put(__vabsdiffs2(x, y));
    put(__vavgu4(x, y));
    put(__vavgs2(x, y));
    put(__vmaxs2(x, y));
    put(__vminu4(x, y));
    put(__vmaxu2(x, y));
    put(__vcmpeq4(x, y));
    put(__vcmpgts2(x, y));
    put(__vsetltu4(x, y));
    put(__vsads4(x, y));
    put(__vsadu2(x, y));
    put(__vneg4(x));
    put(__vnegss2(x));
    put(__vimax_s32_relu(x, y));
    put(__vimax3_s32(x, y, z));
    put(__vimin_s16x2_relu(x, y));
    put(__viaddmax_s32(x, y, z));
    put(__vimax_s16x2_relu(x, y));
    put(__vimax3_u16x2(x, y, z));
    put(__dp4a((int)x, (int)y, (int)z));
    put(__dp4a(x, y, z));
    put(__dp2a_lo((int)x, (int)y, (int)z));
    put(__dp2a_hi(x, y, z));
    put((unsigned)(u / v));
    put((unsigned)(u % (v | 1)));
    put((unsigned)((long long)u / (long long)(v | 1)));
    put(x / (y | 1));
    put((int)x % (int)(y | 1));
    put((unsigned)(u >> (y & 63)));
    put((unsigned)((__int128)u * v >> 64));
    put((unsigned)(((unsigned __int128)u << 64 | v) / 7));
}
KERNEL(intr_halves, f16, bf16, f16, float)
{
    int i = threadIdx.x;
    const half2 *ha = reinterpret_cast<const half2 *>(a);

    const __nv_bfloat162 *hb = reinterpret_cast<const __nv_bfloat162 *>(b);

    half2 x = ha[i], y = ha[i + 32], z = x;
    __nv_bfloat162 p = hb[i], q = hb[i + 32], r = p;

    z = __hadd2(z, y);
    z = __hsub2(z, x);
    z = __hmul2(z, y);
    z = __hfma2(x, y, z);
    z = __h2div(z, y);
    z = __habs2(z);
    z = __hneg2(z);
    z = __hmin2(z, y);
    z = __hmax2(z, y);
    z = __hmin2_nan(z, y);
    z = __hadd2_sat(z, y);
    z = __hfma2_sat(x, y, z);
    z = __hfma2_relu(x, y, z);
    z = h2exp(z);
    z = h2exp2(z);
    z = h2log(z);
    z = h2sqrt(z);
    z = h2rsqrt(z);
    z = h2rcp(z);
    z = h2sin(z);
    z = h2cos(z);
    z = h2floor(z);
    z = h2ceil(z);
    z = h2rint(z);
    z = h2trunc(z);
    z = h2tanh_approx(z);
    z = __hcmadd(x, y, z);

    z = __heq2(z, y);
    z = __hltu2(z, x);
    z = __shfl_xor_sync(~0u, z, 1);

    r = __hadd2(r, q);
    r = __hfma2(p, q, r);
    r = h2exp(r);
    r = h2log(r);
    r = __hmax2(r, q);
    r = h2sqrt(r);
    r = h2tanh_approx(r);
    r = __hmul2_rn(r, q);
    r = h2rcp(r);
    r = __hge2(r, q);
    r = __hfma2_relu(p, q, r);

    float s = __low2float(z) + __high2float(z) + __low2float(r) + __high2float(r) +
              __half2int_rn(x.x) + __half2uint_rz(y.y) + __half2ll_rn(x.x) +
              __half2float(__int2half_rn(i)) + __half2float(__ushort2half_rz(i)) +
              __half2float(__double2half(0.1 * i)) + __bfloat162float(__double2bfloat16(0.1 * i)) +
              __bfloat162float(__int2bfloat16_rn(i)) + __bfloat162int_rn(p.x) + __hisnan(x.x) +
              __hgt(x.x, y.x) + __hbeq2(x, y) + __half2short_rn(x.x) + (float)__half2char_rz(y.x);

    __nv_fp8_e4m3 f8(s);
    __nv_fp8_e5m2 g8(s);
    __nv_fp8x4_e4m3 h8(make_float4(s, 1, 2, 3));
    out[i] = s + float(f8) + float(g8) + float4(h8).w;
}
KERNEL(intr_warps, int, int, int, int)
{
    int i = threadIdx.x, x = a[i];

    int y = __shfl_sync(~0u, x, 3) + __shfl_up_sync(~0u, x, 1) + __shfl_down_sync(~0u, x, 2, 16) +
            __shfl_xor_sync(~0u, x, 4) + __ballot_sync(~0u, x > 3) + __all_sync(~0u, x) +
            __any_sync(~0u, x) + __activemask() + __match_any_sync(~0u, x) +
            __reduce_add_sync(~0u, x) + __reduce_min_sync(~0u, x) +
            __reduce_or_sync(~0u, (unsigned)x);
    int p;
    y += __match_all_sync(~0u, x, &p) + p;
    y += (int)__shfl_sync(~0u, (long long)x, 2) + (int)__shfl_sync(~0u, (double)x, 2);

    y += __syncthreads_count(x) + __syncthreads_and(x) + __syncthreads_or(x);
    __syncwarp(~0u);
    auto t = cg::tiled_partition<8>(cg::this_thread_block());
    y += cg::reduce(t, x, cg::plus<int>()) + cg::inclusive_scan(t, x) + t.shfl(x, 2) + t.any(x) +
         t.thread_rank();
    t.sync();
    auto g = cg::coalesced_threads();
    y += g.size() + g.thread_rank();
    if (x & 1) {
        auto c = cg::coalesced_threads();
        y += c.shfl(x, 0) + c.size();
    }
    auto l = cg::labeled_partition(cg::coalesced_threads(), x & 3);
    y += l.size();
    out[i] = y;
}
KERNEL(intr_pipes, float, float, float, float)
{
    auto blk = cg::this_thread_block();
    __shared__ alignas(16) float s[2][64];
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> st;

    if (blk.thread_rank() == 0)
        init(&bar, blk.size());
    blk.sync();
    cg::memcpy_async(blk, s[0], a, sizeof s[0]);
    cg::wait(blk);
    cuda::memcpy_async(blk, s[1], a + 64, cuda::aligned_size_t<16>(sizeof s[1]), bar);
    bar.arrive_and_wait();
    auto p = cuda::make_pipeline(blk, &st);
    p.producer_acquire();
    cuda::memcpy_async(blk, s[0], a + 64, sizeof s[0], p);
    p.producer_commit();
    p.consumer_wait();
    out[threadIdx.x] = s[0][threadIdx.x] + s[1][threadIdx.x];
    p.consumer_release();
}
__device__ __noinline__ float helper(float x, int n)
{
    float y = x;
    for (int i = 0; i < n; i++)
        y = y * x + 1;
    return y;
}
struct five {
    float a[5];
    int n;
};
__device__ __noinline__ five twist(five s)
{
    five t = s;
    for (int i = 0; i < 5; i++)
        t.a[i] = s.a[4 - i] * s.n;
    return t;
}
__constant__ float table[64] = {1, 2, 3};
__device__ float grid_var[4] = {1.5f, 2.5f};
KERNEL(intr_calls, float, float, float, float)
{
    five s, t;
    for (int i = 0; i < 5; i++)
        s.a[i] = a[threadIdx.x + i];
    s.n = n + threadIdx.x % 7;
    t = twist(s);
    float x[16];
    for (int i = 0; i < 16; i++)
        x[i] = helper(a[i], i) + table[(i + s.n) & 63];
    out[threadIdx.x] = t.a[s.n % 5] + x[s.n & 15] + grid_var[s.n & 3];
    if (n > 1000)
        printf("n %d %f\n", s.n, t.a[0]);
}
