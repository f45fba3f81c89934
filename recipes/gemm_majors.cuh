// gemm_majors.cuh - which operands of a product lie along K. Included by the recipes for sm_90a and sm_100a.
//! if a_k_major
constexpr int A_K_MAJOR = 1;
//! else
constexpr int A_K_MAJOR = 0;
//! end
//! if b_k_major
constexpr int B_K_MAJOR = 1;
//! else
constexpr int B_K_MAJOR = 0;
//! end
