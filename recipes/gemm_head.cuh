// gemm_head.cuh - how the plan of a product begins: operands and sizes. Included by the recipes of products.
    const struct cutegen_tensor *A = &call->in[$a_index]; // $a_name
    const struct cutegen_tensor *B = &call->in[$b_index]; // $b_name
    const struct cutegen_tensor *C = &call->out[0];
//! each leaf
    const struct cutegen_tensor *$x = &call->in[$k];
//! end

    CUTEGEN_REQUIRE(call, A->ndim == $a_ndim && B->ndim == $b_ndim && C->ndim == $c_ndim,
                    "A, B and C must be $a_ndim-, $b_ndim- and $c_ndim-dimensional");
//! each leaf
    CUTEGEN_REQUIRE(call, $x->ndim == $ndim, "$x must be $ndim-dimensional");
//! end
    int64_t M = $M;
    int64_t N = $N;
    int64_t K = $K;
