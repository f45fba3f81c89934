// common.cuh - what the kernels of the differential test share. Each has the
// same parameters, so that one program can launch them all: three inputs, an
// output and three numbers (tests/simt/kernels.def says what they are).
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using f16 = __half;
using bf16 = __nv_bfloat16;

#define KERNEL(name, TA, TB, TC, TO)                                                               \
    extern "C" __global__ void name(const TA *__restrict__ a, const TB *__restrict__ b,            \
                                    const TC *__restrict__ c, TO *__restrict__ out, int m, int n,  \
                                    int k)

__device__ inline float warp_sum(float x)
{
    for (int o = 16; o; o >>= 1)
        x += __shfl_xor_sync(~0u, x, o);
    return x;
}
__device__ inline float warp_max(float x)
{
    for (int o = 16; o; o >>= 1)
        x = fmaxf(x, __shfl_xor_sync(~0u, x, o));
    return x;
}
