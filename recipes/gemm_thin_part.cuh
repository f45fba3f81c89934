// gemm_thin_part.cuh - what a thread that adds parts works on. Included by the recipes of thin products.
    int const r = blockIdx.x * 256 + threadIdx.x, h = blockIdx.y;
    Tensor mP = make_tensor(make_gmem_ptr(partial), make_shape($h_size, $s_size, parts),
                            make_stride($s_size, _1{}, int64_t($h_size) * $s_size)); // (H,R,parts)
    Tensor mC = make_tensor(make_gmem_ptr(C), make_shape(M, N), make_stride($c_m, $c_n)); // (M,N)
//! each leaf
    Tensor m$X = make_tensor(make_gmem_ptr($x), make_shape(M, N), make_stride($m, $n)); // (M,N)
//! end
//! if overlap
    asm volatile("griddepcontrol.wait;" ::: "memory");
//! end
