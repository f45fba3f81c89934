// gemm_half_finish.cuh - the epilogue of one element, exact or fast. Included by the recipes of 16-bit products.
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
// What becomes of one element of the product.
__device__ inline float ${kernel}_finish($finish_params)
{
//! if fast_math
    $finish_quick
//! else
    $finish_body
//! end
}

//! end
