// recipes/row_plan.cuh - how a plan begins: tensors, sizes and what must hold. Included by the recipes along rows.
//! each plan_tensor
    const struct cutegen_tensor *$x = &call->$side[$k];
//! end

//! each plan_tensor
    CUTEGEN_REQUIRE(call, $x->ndim == $ndim, "$x must be $ndim-dimensional");
//! end
//! each col_mode
    int64_t n$m = $size;
//! end
//! each row_mode
    int64_t rows$m = $size;
//! end
//! each check
    CUTEGEN_REQUIRE(call, $condition, "$text");
//! end
//! if vectorise
//! each vector_check
    CUTEGEN_REQUIRE(call, $condition, "$text");
//! end
//! end
//! each scalar
    CUTEGEN_REQUIRE(call, call->scalar[$k].f == $value, "$name is written into the kernel as $value");
//! end
