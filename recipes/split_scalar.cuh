// split_scalar.cuh - a number of a row: computed, or folded from the parts. Included twice by split_reduction.cu.
//! if not pass
    float const $name = $scalar_call;
//! elif one_pass and paired
    float const $name = $pair_second;
//! elif one_pass and pair
    auto const $acc = fold<$k, THREADS, $pair_type>(parts, row, $row_count, slices);
    float const $name = $pair_first;
//! else
    auto const $acc = fold<$k, THREADS, $combine>(parts, row, $row_count, slices);
    float const $name = $result;
//! end
