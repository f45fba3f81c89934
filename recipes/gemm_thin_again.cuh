// gemm_thin_again.cuh - elements of a thin product that are not finite, computed again. Included by gemm_thin.cu and
// gemm_thin_sm90.cu.
    Tensor mS = make_tensor(make_gmem_ptr($s_tensor), make_shape($s_size, K), make_stride($s_row, $s_k)); // (R,K)
    Tensor mH = make_tensor(make_gmem_ptr($h_tensor), make_shape($h_size, K), make_stride($h_row, $h_k)); // (H,K)
    int const lane = threadIdx.x % 32;
    unsigned again = __ballot_sync(~0u, !isfinite(acc));
    for (; again; again &= again - 1) {
        int const which = __ffs(again) - 1;
        float one = 0.0f;
        for (int k = lane; k < K && one == one; k += 32)
            one += mH(h, k) * mS(r - lane + which, k);
        for (int step = 16; step; step /= 2)
            one += __shfl_xor_sync(~0u, one, step);
        if (lane == which)
            acc = one;
    }
