// column_add.cuh - a vector of columns added to what a pass carries. Included by column_walk.cuh.
//! if one_pass and pair
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v) {
            Tensor values = make_tensor<float>(_1{}); // (1)
            values(0) = $column_call;
            $acc[v].add(values);
        }
//! else
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v)
//! if super_rows
            $acc[v].add($column_call$super_place);
//! else
            $acc[v].add($column_call$column_place);
//! end
//! end
