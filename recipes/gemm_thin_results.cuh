// gemm_thin_results.cuh - the result of a thin product and what finishes it. Included by the recipes of thin products.
    Tensor mC = make_tensor(make_gmem_ptr(C), make_shape(M, N), make_stride($c_m, $c_n)); // (M,N)
//! each leaf
    Tensor m$X = make_tensor(make_gmem_ptr($x), make_shape(M, N), make_stride($m, $n)); // (M,N)
//! end
