// column_joined.cuh - what the joined passes of a column carry, still empty. Included twice by column_reduction.cu.
//! if not registers
//! each joined
//! if one_pass and pair
    $pair_type $acc[VEC];
    CUTE_UNROLL
    for (int v = 0; v < VEC; ++v)
        $acc[v] = $pair_type::none();
//! else
    $combine $acc[VEC];
    CUTE_UNROLL
    for (int v = 0; v < VEC; ++v)
        $acc[v] = $combine::none();
//! end
//! end
//! end
