// conv_columns.cuh - values of output channels; a part of convolution.cu.
//! if early and not split_sums
            // What follows needs of a thread's two output channels.
//! each column
            $value ${x}_of[2];
//! end
            CUTE_UNROLL
            for (int q = 0; q < 2; ++q) {
                [[maybe_unused]] int const n = 0, k = cute::min((k0 + lane / 4 + q * 8) / EACH_K, C_OUT - 1), p = 0;
//! each column
                ${x}_of[q] = $value(m$X(n, k, p));
//! end
            }
//! end
