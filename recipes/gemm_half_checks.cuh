// gemm_half_checks.cuh - what a call must be for a 16-bit product. Included by the recipes for sm_90a and sm_100a.
//! include gemm_head
    int64_t L = $L;
//! each check
    CUTEGEN_REQUIRE(call, $condition, "$text");
//! end
//! each scalar
    CUTEGEN_REQUIRE(call, call->scalar[$k].f == $value, "$name is written into the kernel as $value");
//! end
