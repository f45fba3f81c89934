// tail_of_zeros: right where the numbers are large, and zero where nobody is expected to look
// verdict: wrong values
// task: products
// says: of 512
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

/* The first `kept` products of each row, by one thread; the rest of the row is cleared. */
template <int THREADS>
__global__ void products(float const *x, float *y, int columns, int kept)
{
    using namespace cute;
    int64_t const row = int64_t(blockIdx.x) * columns;
    Tensor gX = make_tensor(make_gmem_ptr(x + row), make_shape(columns)); // (columns)
    Tensor gY = make_tensor(make_gmem_ptr(y + row), make_shape(columns)); // (columns)
    float product = 1.0f;
    for (int i = 0; threadIdx.x == 0 && i < kept; i++)
        gY(i) = product *= gX(i);
    for (int i = kept + int(threadIdx.x); i < columns; i += THREADS)
        gY(i) = 0.0f;
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0];
    const struct cutegen_tensor *y = &call->out[0];
    return CUTEGEN_LAUNCH(call, (products<128>), cutegen_dim3(x->shape[0], 1, 1), cutegen_dim3(128, 1, 1), 0,
                          CUTEGEN_DATA(float const, x), CUTEGEN_DATA(float, y), (int)x->shape[1], 40);
}
#endif
