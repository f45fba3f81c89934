// race_often: millions of races; simt counts them and runs the kernel to its end
// verdict: race
// first: shared-memory race
// never: the kernel was stopped in
// never: never written
// never: NaN
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
    for (int i = int(threadIdx.x); i < columns; i += THREADS)
        sum += gX(i);
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int i = 0; i < 4096; ++i)
        part[(threadIdx.x + 32) % THREADS] = sum + part[threadIdx.x];
    y[blockIdx.x] = part[0];
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
