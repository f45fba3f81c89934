// kernels.cu - source of kernels.ptx, what test_simt.c runs on simt. To make it again:
//     nvcc -ptx -arch=compute_80 -lineinfo -o kernels.ptx kernels.cu
#include <cstdio>

extern "C" __global__ void scale(float *out, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = 2 * in[i];
}

extern "C" __global__ void past_the_end(float *out, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n)
        out[i] = 2;
}

extern "C" __global__ void into_the_input(float *out, float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        in[i] = out[i] = 1;
}

extern "C" __global__ void neighbours(float *out, const float *in, int n)
{
    __shared__ float tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = in[i];
    out[i] = tile[(threadIdx.x + 64) % 256];
}

extern "C" __global__ void forever(float *out, const float *in, int n)
{
    volatile float *p = out;
    while (n > 0)
        p[0] = 1;
}

extern "C" __global__ void impostor(float *out, const float *in, int n)
{
    if (threadIdx.x == 0 && blockIdx.x == 0)
        printf("{\"ok\": true, \"outcome\": \"ok\"}\n");
    out[blockIdx.x * blockDim.x + threadIdx.x] = 0;
}

extern "C" __global__ void counts_up(float *out, float *workspace, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = workspace[i] += 1;
}

// relu(x) + 2 y, right and wrong: for tests/eval/test_real.c
extern "C" __global__ void blend(float *out, const float *x, const float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = fmaxf(x[i], 0) + 2 * y[i];
}

extern "C" __global__ void blend_wrong(float *out, const float *x, const float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = x[i] + 2 * y[i];
}

extern "C" __global__ void blend_short(float *out, const float *x, const float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n - 7)
        out[i] = fmaxf(x[i], 0) + 2 * y[i];
}

extern "C" __global__ void blend_coarse(float *out, const float *x, const float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = fmaxf(x[i], 0) + 2 * y[i];
        out[i] = __uint_as_float((__float_as_uint(v) + 0x1000) & 0xffffe000); // ten bits, as TF32
    }
}

extern "C" __global__ void blend_strided(float *out, const float *x, const float *y, int n)
{
    int i = threadIdx.x * gridDim.x + blockIdx.x;
    if (i < n)
        out[i] = fmaxf(x[i], 0) + 2 * y[i];
}
