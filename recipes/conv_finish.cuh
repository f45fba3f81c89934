// conv_finish.cuh - what follows the convolution, for one result; a part of convolution.cu.
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
