// attention_head.cuh - how the plan of attention begins: operands and sizes. Included by attention's recipes.
    const struct cutegen_tensor *Q = &call->in[$q_index];
    const struct cutegen_tensor *K = &call->in[$k_index];
    const struct cutegen_tensor *V = &call->in[$v_index];
    const struct cutegen_tensor *O = &call->out[0];
//! if paged
    const struct cutegen_tensor *Table = &call->in[$table_index];
//! end
//! each leaf
    const struct cutegen_tensor *$x = &call->in[$k];
//! end

    CUTEGEN_REQUIRE(call, Q->ndim == $q_ndim && K->ndim == $k_ndim && V->ndim == $v_ndim && O->ndim == $o_ndim,
                    "Q, K, V and O must be $q_ndim-, $k_ndim-, $v_ndim- and $o_ndim-dimensional");
//! if paged
    CUTEGEN_REQUIRE(call, Table->ndim == $table_ndim, "the table of pages must be $table_ndim-dimensional");
//! end
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
