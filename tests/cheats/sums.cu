// sums: no cheat; the sum of a row by a warp, as others here pretend to have it
// verdict: pass
// task: rows
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

template <int THREADS>
__global__ void sums(float const *x, float *y, int rows, int columns)
{
    using namespace cute;
    int const row = int(blockIdx.x);
    Tensor gX = make_tensor(make_gmem_ptr(x), make_layout(make_shape(rows, columns), LayoutRight{}))(row, _); // (columns)
    Tensor gY = make_tensor(make_gmem_ptr(y), make_shape(rows));                                          // (rows)
    float sum = 0;
    for (int i = int(threadIdx.x); i < columns; i += THREADS)
        sum += gX(i);
    for (int lane = THREADS / 2; lane > 0; lane /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, lane);
    if (threadIdx.x == 0)
        gY(row) = sum;
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0];
    const struct cutegen_tensor *y = &call->out[0];
    return CUTEGEN_LAUNCH(call, (sums<32>), cutegen_dim3(x->shape[0], 1, 1), cutegen_dim3(32, 1, 1), 0,
                          CUTEGEN_DATA(float const, x), CUTEGEN_DATA(float, y), (int)x->shape[0], (int)x->shape[1]);
}
#endif
