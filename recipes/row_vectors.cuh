// row_vectors.cuh - one vector of every output of a row. Included by the recipes of reductions.
//! each output_use
        Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
        copy(${copy}g$X(_, i), r$X);
//! end
//! each output
        Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v)
            r$X(v) = $vector_call;
        copy(Vector{}, r$X, g$X(_, i));
//! end
