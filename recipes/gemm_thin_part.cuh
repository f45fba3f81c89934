// gemm_thin_part.cuh - what a thread that adds parts works on. Included by the recipes of thin products.
    int const r = blockIdx.x * 256 + threadIdx.x, h = blockIdx.y;
    Tensor mP = make_tensor(make_gmem_ptr(partial), make_shape($h_size, $s_size, parts),
                            make_stride($s_size, _1{}, int64_t($h_size) * $s_size)); // (H,R,parts)
//! include gemm_thin_results
//! if overlap
    cutegen_wait_for_earlier();
    cutegen_let_next_begin();
//! end
