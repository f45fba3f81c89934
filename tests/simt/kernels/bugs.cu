// Kernels with one mistake each, and their correct twins (suffix _ok). The line
// with the mistake ends in a comment "BUG:name", which the test looks up.
#include <cuda_pipeline_primitives.h>
#define K extern "C" __global__ void

K oob_read(const float *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i + 1]; // BUG:oob_read
}
K oob_read_ok(const float *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i + 1 < n ? i + 1 : 0];
}
K oob_write(const float *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) out[i] = in[0]; // BUG:oob_write
}
K oob_write_ok(const float *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[0];
}
K oob_shared(const float *in, float *out, int n)
{
    __shared__ float s[128];
    s[threadIdx.x + n - 255] = in[threadIdx.x]; // BUG:oob_shared
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x & 63];
}
K oob_shared_ok(const float *in, float *out, int n)
{
    __shared__ float s[128];
    s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x & 63];
}
K misaligned(const float *in, float *out, int n)
{
    float4 v = *(const float4 *)(in + 1 + 4 * (threadIdx.x % 8)); // BUG:misaligned
    out[threadIdx.x] = v.x + v.w;
}
K misaligned_ok(const float *in, float *out, int n)
{
    float4 v = *(const float4 *)(in + 4 * (threadIdx.x % 8));
    out[threadIdx.x] = v.x + v.w;
}
K write_input(const float *in, float *out, int n)
{
    out[threadIdx.x] = in[threadIdx.x];
    if (threadIdx.x == 3) ((float *)in)[threadIdx.x] = 0; // BUG:write_input
}
K write_input_ok(const float *in, float *out, int n)
{
    out[threadIdx.x] = in[threadIdx.x];
}
K race_read(const float *in, float *out, int n)
{
    __shared__ float s[128];
    s[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = s[127 - threadIdx.x]; // BUG:race_read
}
K race_read_ok(const float *in, float *out, int n)
{
    __shared__ float s[128];
    s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = s[127 - threadIdx.x];
}
K race_reuse(const float *in, float *out, int n)
{
    __shared__ float s[128];
    float x = 0;
    for (int k = 0; k < 3; k++) {
        s[threadIdx.x] = in[threadIdx.x] + k; // BUG:race_reuse
        __syncthreads();
        x += s[127 - threadIdx.x];
    }
    out[threadIdx.x] = x;
}
K race_reuse_ok(const float *in, float *out, int n)
{
    __shared__ float s[128];
    float x = 0;
    for (int k = 0; k < 3; k++) {
        s[threadIdx.x] = in[threadIdx.x] + k;
        __syncthreads();
        x += s[127 - threadIdx.x];
        __syncthreads();
    }
    out[threadIdx.x] = x;
}
K race_write(const float *in, float *out, int n)
{
    __shared__ float s[64];
    volatile float *v = s;
    v[threadIdx.x / 2] = in[threadIdx.x]; // a benign twin writes by one thread of the pair
    v[(threadIdx.x + 40) % 64] = 1; // BUG:race_write
    __syncthreads();
    out[threadIdx.x] = v[threadIdx.x / 2];
}
K race_write_ok(const float *in, float *out, int n)
{
    __shared__ float s[64];
    volatile float *v = s;
    if (threadIdx.x % 2 == 0) v[threadIdx.x / 2] = in[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < 64) v[(threadIdx.x + 40) % 64] = 1;
    __syncthreads();
    out[threadIdx.x] = v[threadIdx.x / 2];
}
K race_warp(const float *in, float *out, int n)
{
    __shared__ float s[128];
    volatile float *v = s;
    int t = threadIdx.x;
    v[t] = in[t];
    out[t] = v[t ^ 1]; // BUG:race_warp
}
K race_warp_ok(const float *in, float *out, int n)
{
    __shared__ float s[128];
    volatile float *v = s;
    int t = threadIdx.x;
    v[t] = in[t];
    __syncwarp();
    out[t] = v[t ^ 1];
}
K uninit_shared(const float *in, float *out, int n)
{
    __shared__ float s[128];
    if (threadIdx.x < 64) s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x]; // BUG:uninit_shared
}
K uninit_shared_ok(const float *in, float *out, int n)
{
    __shared__ float s[128];
    s[threadIdx.x] = threadIdx.x < 64 ? in[threadIdx.x] : 0;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];
}
K uninit_global(const float *in, float *out, int n)
{
    out[threadIdx.x] += in[threadIdx.x]; // BUG:uninit_global
}
K uninit_global_ok(const float *in, float *out, int n)
{
    out[threadIdx.x] = 1;
    out[threadIdx.x] += in[threadIdx.x];
}
K race_blocks(const float *in, float *out, int n)
{
    out[threadIdx.x] = in[threadIdx.x] + blockIdx.x; // BUG:race_blocks
}
K race_blocks_ok(const float *in, float *out, int n)
{
    if (blockIdx.x == 0) out[threadIdx.x] = in[threadIdx.x];
}
K divergent_bar(const float *in, float *out, int n)
{
    __shared__ float s[128];
    s[threadIdx.x] = in[threadIdx.x];
    if (threadIdx.x % 32 < n % 32) asm volatile("bar.sync 0;" ::: "memory"); // BUG:divergent_bar
    asm volatile("bar.sync 0;" ::: "memory");
    out[threadIdx.x] = s[threadIdx.x];
}
K divergent_bar_ok(const float *in, float *out, int n)
{
    __shared__ float s[128];
    s[threadIdx.x] = in[threadIdx.x];
    if (n % 32) asm volatile("bar.sync 0;" ::: "memory");
    asm volatile("bar.sync 0;" ::: "memory");
    out[threadIdx.x] = s[threadIdx.x];
}
K deadlock(const float *in, float *out, int n)
{
    if (threadIdx.x < 64) asm volatile("bar.sync 1, 128;" ::: "memory"); // BUG:deadlock
    else asm volatile("bar.sync 2, 128;" ::: "memory");
    out[threadIdx.x] = in[threadIdx.x];
}
K deadlock_ok(const float *in, float *out, int n)
{
    if (threadIdx.x < 64) asm volatile("bar.sync 1, 64;" ::: "memory");
    else asm volatile("bar.sync 2, 64;" ::: "memory");
    out[threadIdx.x] = in[threadIdx.x];
}
K spin(const float *in, float *out, int n)
{
    volatile float *v = out;
    if (threadIdx.x == 0) while (v[0] != 42.0f) {} // BUG:spin
    out[1] = in[0];
}
K spin_ok(const float *in, float *out, int n)
{
    volatile float *v = out;
    if (threadIdx.x == 33) v[0] = 42.0f;
    if (threadIdx.x == 0) while (v[0] != 42.0f) {}
    if (threadIdx.x == 0) out[1] = in[0];
}
K async_no_wait(const float *in, float *out, int n)
{
    __shared__ float s[128];
    __pipeline_memcpy_async(&s[threadIdx.x], &in[threadIdx.x], 4);
    __pipeline_commit();
    __syncthreads();
    out[threadIdx.x] = s[127 - threadIdx.x]; // BUG:async_no_wait
}
K async_no_wait_ok(const float *in, float *out, int n)
{
    __shared__ float s[128];
    __pipeline_memcpy_async(&s[threadIdx.x], &in[threadIdx.x], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    out[threadIdx.x] = s[127 - threadIdx.x];
}
K async_overwrite(const float *in, float *out, int n)
{
    __shared__ float s[128];
    __pipeline_memcpy_async(&s[threadIdx.x], &in[threadIdx.x], 4);
    __pipeline_commit();
    s[threadIdx.x] = 1; // BUG:async_overwrite
    __pipeline_wait_prior(0);
    __syncthreads();
    out[threadIdx.x] = s[127 - threadIdx.x];
}
K async_overwrite_ok(const float *in, float *out, int n)
{
    __shared__ float s[128];
    __pipeline_memcpy_async(&s[threadIdx.x], &in[threadIdx.x], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    s[threadIdx.x] += 1;
    __syncthreads();
    out[threadIdx.x] = s[127 - threadIdx.x];
}
K async_no_sync(const float *in, float *out, int n)
{
    __shared__ float s[128];
    __pipeline_memcpy_async(&s[threadIdx.x], &in[threadIdx.x], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[threadIdx.x] = s[127 - threadIdx.x]; // BUG:async_no_sync
}
K async_no_sync_ok(const float *in, float *out, int n)
{
    __shared__ float s[128];
    __pipeline_memcpy_async(&s[threadIdx.x], &in[threadIdx.x], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[threadIdx.x] = s[threadIdx.x];
}
K shfl_part(const float *in, float *out, int n)
{
    float x = in[threadIdx.x];
    if (threadIdx.x % 32 < n % 32) x += __shfl_down_sync(0xffffffffu, x, 1); // BUG:shfl_part
    out[threadIdx.x] = x;
}
K shfl_part_ok(const float *in, float *out, int n)
{
    float x = in[threadIdx.x], y = __shfl_down_sync(0xffffffffu, x, 1);
    if (threadIdx.x % 32 < n % 32) x += y;
    out[threadIdx.x] = x;
}
K trap(const float *in, float *out, int n)
{
    if (n > 0 && threadIdx.x == 5) __trap(); // BUG:trap
    out[threadIdx.x] = in[threadIdx.x];
}
K trap_ok(const float *in, float *out, int n)
{
    if (n < 0 && threadIdx.x == 5) __trap();
    out[threadIdx.x] = in[threadIdx.x];
}
