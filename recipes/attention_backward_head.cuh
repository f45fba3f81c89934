// attention_backward_head.cuh - how the plan of attention's gradients begins; included by their recipes.
    const struct cutegen_tensor *Q = &call->in[$q_index];
    const struct cutegen_tensor *K = &call->in[$k_index];
    const struct cutegen_tensor *V = &call->in[$v_index];
    const struct cutegen_tensor *dO = &call->in[$do_index];
    const struct cutegen_tensor *dQ = &call->out[$dq_index];
    const struct cutegen_tensor *dK = &call->out[$dk_index];
    const struct cutegen_tensor *dV = &call->out[$dv_index];
//! each leaf
    const struct cutegen_tensor *$x = &call->in[$k];
//! end

    CUTEGEN_REQUIRE(call, Q->ndim == $q_ndim && K->ndim == $k_ndim && V->ndim == $v_ndim && dO->ndim == $do_ndim,
                    "Q, K, V and dO must be $q_ndim-, $k_ndim-, $v_ndim- and $do_ndim-dimensional");
//! each leaf
    CUTEGEN_REQUIRE(call, $x->ndim == $ndim, "$x must be $ndim-dimensional");
//! end
    int64_t queries = $queries;
    int64_t keys = $keys;
//! each mode
    int64_t n$i = $size;
//! end
//! each check
    CUTEGEN_REQUIRE(call, $condition, "$text");
//! end
//! each scalar
    CUTEGEN_REQUIRE(call, call->scalar[$k].f == $value, "$name is written into the kernel as $value");
//! end
//! each strides
    struct Strides const $name = {$values};
//! end
