// gemm_finish.cuh - the epilogue of one element. Included by the recipes of products.
//! if epilogue
// What becomes of one element of the product.
__device__ inline float ${kernel}_finish($finish_params)
{
    $finish_body
}

//! end
