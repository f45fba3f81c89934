// pointwise_store.cuh - one vector computed and stored, or an element of the tail. Included twice by pointwise.cu.
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v) {
//! each function
            $vector_store
//! end
        }
//! each output
        copy(Vector{}, r$X, g$X(_, i));
//! end
//! if flat
    } else if (i - n / VEC < n % VEC) { // the tail, one element per thread
        $index const j = n / VEC * VEC + (i - n / VEC);
//! each function
        $tail_store
//! end
    }
//! else
    }
//! end
