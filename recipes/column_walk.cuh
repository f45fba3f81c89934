// column_walk.cuh - a thread walks down its columns, for a pass and those joined to it. Included twice by
// column_reduction.cu.
//! if unroll
#pragma unroll 8
//! end
    for (int i = from + t; i < to; i += Y) {
//! each use
        Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
        copy(${copy}g$X(_, i), r$X);
//! end
//! include column_add
//! each joined
//! include column_add
//! end
    }
