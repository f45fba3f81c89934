// attention_warp.cuh - sums and maxima over a warp; included by attention's forms on the FMA units.
__device__ inline float warp_max(float x)
{
    for (int i = 16; i > 0; i /= 2)
        x = fmaxf(x, __shfl_xor_sync(~0u, x, i));
    return x;
}

__device__ inline float warp_sum(float x)
{
    for (int i = 16; i > 0; i /= 2)
        x += __shfl_xor_sync(~0u, x, i);
    return x;
}

