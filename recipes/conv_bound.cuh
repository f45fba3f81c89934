// conv_bound.cuh - how large a result can be, by what is known before; a part of convolution.cu.
// The largest x times the sum of a channel's weights, through what follows, which takes its extremes at the extremes of
// what it reads (conv_epilogue.c). It needs `seats` and `seat`: how many threads share the channels, and which this is.
    unsigned bound = 0;
    if (behind.there) {
        float const most_x = __uint_as_float(largest_word(words + behind.tops, behind.tops_count));
        [[maybe_unused]] float const most_beside = behind.beside_count > 0 ? __uint_as_float(largest_word(words + behind.beside, behind.beside_count)) : 0.0f;
        Tensor mNorm = make_tensor(make_gmem_ptr(words + behind.norms), make_layout(C_OUT * behind.norms_each)); // (C_OUT*norms_each)
        for (int j = seat; j < C_OUT; j += seats) {
            [[maybe_unused]] int const n = 0, k = j, p = 0;
            float const most = most_x * __uint_as_float(mNorm(k * behind.norms_each));
            CUTE_UNROLL
            for (int corner = 0; corner < 4; ++corner) {
                float const acc = corner % 2 ? -most : most;
                [[maybe_unused]] float const beside = corner < 2 ? most_beside : -most_beside;
//! if epilogue
                bound = cute::max(bound, magnitude_of(${kernel}_finish(acc$finish_bound)));
//! else
                bound = cute::max(bound, magnitude_of(acc));
//! end
            }
        }
        bound = __reduce_max_sync(~0u, bound);
    }
