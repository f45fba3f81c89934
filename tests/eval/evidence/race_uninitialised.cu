// race_uninitialised: a tree of sums without barriers; what is read too early is not written yet
// verdict: race
// says: shared-memory race in rows<128>
// says: uninitialised read
// says: race in 5 of 5 draws
// never: 6 of 5
// never: bound the index
// once: part[threadIdx.x] = sum;
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
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (int(threadIdx.x) < half)
            part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
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
