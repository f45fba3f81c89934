// recipes/concat.cu - tensors side by side: each is copied to its place in the output.
//
// Lines that begin with //! direct the composer (docs/recipes.md); all else is the kernel's text.
// Seen from the dimension they are joined along, an input is `rows` runs of `n` elements, and the
// output rows of `whole` elements, of which the input's begin at `from`.
//
//! recipe concat: each input is copied to its place in the output
//! fact vectors: 16-byte accesses are possible: all runs are whole vectors
//!
//! step vectorise: move 16 bytes per load and store
//!   why: A quarter of the instructions for the same traffic.
//!   when: vectors
//! step launch_shape: launch blocks of 128 threads
//!   why: Small blocks end and start more evenly, so the memory system never runs dry between waves.
//! text
// $kernel: $ops, each input copied to its place.
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

using namespace cute;

//! if vectorise
constexpr int VEC = $vec; // elements in 16 bytes
using Vector = AutoVectorizingCopyWithAssumedAlignment<128>;

//! end
template <int THREADS>
__global__ void __launch_bounds__(THREADS)
    ${kernel}_kernel($type const *x, $type *y, int64_t n, int64_t rows, int64_t whole)
{
    int64_t const i = int64_t(blockIdx.x) * THREADS + threadIdx.x;
//! if vectorise
    Tensor gX = make_tensor(make_gmem_ptr(x), make_shape(Int<VEC>{}, make_shape(n / VEC, rows)), make_stride(_1{}, make_stride(Int<VEC>{}, n))); // (VEC,(n/VEC,rows))
    Tensor gY = make_tensor(make_gmem_ptr(y), make_shape(Int<VEC>{}, make_shape(n / VEC, rows)), make_stride(_1{}, make_stride(Int<VEC>{}, whole))); // (VEC,(n/VEC,rows))
    if (i < size<1>(gX)) {
        Tensor rX = make_tensor<$type>(Int<VEC>{}); // (VEC)
        copy(Vector{}, gX(_, i), rX);
        copy(Vector{}, rX, gY(_, i));
    }
//! else
    Tensor gX = make_tensor(make_gmem_ptr(x), make_shape(n, rows), make_stride(_1{}, n)); // (n,rows)
    Tensor gY = make_tensor(make_gmem_ptr(y), make_shape(n, rows), make_stride(_1{}, whole)); // (n,rows)
    if (i < size(gX))
        gY(i) = gX(i);
//! end
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *y = &call->out[0];
    int64_t rows = $rows, whole = cutegen_numel(y) / rows, from = 0;
    CUTEGEN_REQUIRE(call, cutegen_contiguous(y), "the output must be contiguous");
//! each input

    const struct cutegen_tensor *x$k = &call->in[$index];
    int64_t n$k = cutegen_numel(x$k) / rows;
    CUTEGEN_REQUIRE(call, cutegen_contiguous(x$k), "input $index must be contiguous");
//! if vectorise
    CUTEGEN_REQUIRE(call, n$k % $vec == 0 && whole % $vec == 0 && cutegen_aligned(x$k, 16) && cutegen_aligned(y, 16), "runs must be whole vectors");
//! if launch_shape
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (${kernel}_kernel<128>), cutegen_dim3(cutegen_ceil_div(n$k * rows / $vec, 128), 1, 1), cutegen_dim3(128, 1, 1), 0, CUTEGEN_DATA($type const, x$k), CUTEGEN_AT($type, y, from), n$k, rows, whole));
//! else
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (${kernel}_kernel<256>), cutegen_dim3(cutegen_ceil_div(n$k * rows / $vec, 256), 1, 1), cutegen_dim3(256, 1, 1), 0, CUTEGEN_DATA($type const, x$k), CUTEGEN_AT($type, y, from), n$k, rows, whole));
//! end
//! elif launch_shape
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (${kernel}_kernel<128>), cutegen_dim3(cutegen_ceil_div(n$k * rows, 128), 1, 1), cutegen_dim3(128, 1, 1), 0, CUTEGEN_DATA($type const, x$k), CUTEGEN_AT($type, y, from), n$k, rows, whole));
//! else
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (${kernel}_kernel<256>), cutegen_dim3(cutegen_ceil_div(n$k * rows, 256), 1, 1), cutegen_dim3(256, 1, 1), 0, CUTEGEN_DATA($type const, x$k), CUTEGEN_AT($type, y, from), n$k, rows, whole));
//! end
    from += n$k;
//! end
    CUTEGEN_REQUIRE(call, from == whole, "the inputs must fill the output");
    return 0;
}
#endif
