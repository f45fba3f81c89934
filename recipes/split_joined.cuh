// split_joined.cuh - a vector added to what a joined pass carries. Included twice by split_reduction.cu.
//! if one_pass and pair
        Tensor values$k = make_tensor<float>(Int<VEC>{}); // (VEC)
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v)
            values$k(v) = $vector_call;
        $acc.add(values$k);
//! else
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v)
            $acc.add($vector_call$vector_place);
//! end
