// brace: the loop's body is not closed
// verdict: compile error
// says: closing brace
// says: is not closed
// never: a kernel the plan launches
// never: does not define
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

template <int THREADS>
__global__ void rows(float const *x, float *y, int columns)
{
    using namespace cute;
    Tensor gX = make_tensor(make_gmem_ptr(x + int64_t(blockIdx.x) * columns), make_shape(columns)); // (columns)
    __shared__ float part[THREADS];
    float sum = 0.0f;
    for (int i = int(threadIdx.x); i < columns; i += THREADS) {
        sum += gX(i);
    part[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        float all = 0.0f;
        for (int i = 0; i < THREADS; ++i)
            all += part[i];
        y[blockIdx.x] = all;
    }
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0];

    return CUTEGEN_LAUNCH(call, (rows<128>), cutegen_dim3(x->shape[0], 1, 1), cutegen_dim3(128, 1, 1), 0,
                          CUTEGEN_DATA(float const, x), CUTEGEN_DATA(float, &call->out[0]),
                          (int)x->shape[1]);
}
#endif
