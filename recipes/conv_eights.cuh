// conv_eights.cuh - what a thread does that has sums of eight channels of a pixel; a part of convolution.cu.
    int const seat = threadIdx.x, seats = 256;
//! include conv_bound
    if (threadIdx.x % 32 == 0)
        bounds[threadIdx.x / 32] = bound;
    __syncthreads();
    for (int i = 0; i < 8; ++i)
        bound = cute::max(bound, bounds[i]);
    CUTE_UNROLL
    for (int i = 0; i < 8; ++i) {
        int const k = cute::min(k0 + i, C_OUT - 1);
        float const acc = sum[i];
//! if epilogue
        result[i] = ${kernel}_finish(acc$finish);
//! else
        result[i] = acc;
//! end
    }
    unsigned mine = 0;
    CUTE_UNROLL
    for (int i = 0; i < 8; ++i)
        if (there && k0 + i < C_OUT) {
            mY(p, k0 + i, n) = $y_type(result[i]);
            mine = cute::max(mine, magnitude_of(result[i]));
        }
    note_top(words + behind.noted, mine);
    if (behind.there) {
        unsigned bad = 0;
        zeros_behind(behind, planes_behind, thread, int64_t(gridDim.x) * 256, N);
        hand_eight(behind, planes_behind, there ? row_behind(behind, n, p, N) : -1, k0, result, scale_behind(bound), bad);
        doubt_behind(behind, words, bad);
        if (blockIdx.x == 0 && threadIdx.x < 32)
            tell_behind(behind, words, bound);
    }
