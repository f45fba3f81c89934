// conv_finish.cuh - what follows the convolution, for one result; a part of convolution.cu.
//! if noted
// What the convolution behind wants to know: `top` has 32 places, zeros before the first block. Among them is at the end
// the largest magnitude of all results, as bits; NaN is larger than any other.
__device__ inline unsigned magnitude_of(float v)
{
    return __float_as_uint(fabsf(v));
}
// A warp's largest, `mine` of each lane.
__device__ inline void note_top(unsigned *top, unsigned mine)
{
    Tensor mTop = make_tensor(make_gmem_ptr(top), _32{}); // (32)
    mine = __reduce_max_sync(~0u, mine);
    if (threadIdx.x % 32 == 0 && mine != 0)
        atomicMax(&mTop((blockIdx.x + threadIdx.x / 32) % 32), mine);
}

//! end
//! if fast_math
//! each helper
// $helper_words
__device__ inline float $helper(float x)
{
    $helper_body
}

//! end
//! end
//! if epilogue
// What becomes of one sum.
__device__ inline float ${kernel}_finish($finish_params)
{
//! if fast_math
    $finish_quick
//! else
    $finish_body
//! end
}

//! end
//! if wgmma and not boxes
//! if early
// The first part of it, which needs values of its output channel alone.
__device__ inline float ${kernel}_early($early_params)
{
//! if fast_math
    $early_quick
//! else
    $early_body
//! end
}

//! end
//! if late
// The rest.
__device__ inline float ${kernel}_late($finish_params)
{
//! if fast_math
    $late_quick
//! else
    $late_body
//! end
}

//! end
//! end
