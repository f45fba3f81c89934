// gemm_thin_head.cuh - how the plan of a thin product begins. Included by the recipes of thin products.
//! include gemm_head
//! each check
    CUTEGEN_REQUIRE(call, $condition, "$text");
//! end
//! each thin_check
    CUTEGEN_REQUIRE(call, $condition, "$text");
//! end
//! each scalar
    CUTEGEN_REQUIRE(call, call->scalar[$k].f == $value, "$name is written into the kernel as $value");
//! end
