// uninitialised_shared: relies on shared memory being zero
// task: rows
// verdict: unsafe memory (simt), any (cuda: what is there is luck; --accept has simt look too)
// accept: unsafe memory|wrong values|non-finite
// says: uninitialised
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

template <int THREADS>
__global__ void rows(float const *x, float *y, int columns)
{
    using namespace cute;
    Tensor gX = make_tensor(make_gmem_ptr(x + int64_t(blockIdx.x) * columns), make_shape(columns)); // (columns)
    __shared__ float part[THREADS];
    for (int i = int(threadIdx.x); i < columns; i += THREADS)
        part[threadIdx.x] += gX(i);
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
