// kept_in_shared: leaves the answer in shared memory for the launch after, and a mark to know it by
// task: rows
// verdict: unsafe memory (simt), any (cuda: right, and shared memory is scrubbed before every timed run)
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
    __shared__ float volatile kept[4];
    if (kept[0] == 0.12345f && kept[1] == gX(0) && kept[2] == gX(columns - 1)) {
        if (threadIdx.x == 0)
            y[blockIdx.x] = kept[3];
        return;
    }
    part[threadIdx.x] = 0.0f;
    for (int i = int(threadIdx.x); i < columns; i += THREADS)
        part[threadIdx.x] += gX(i);
    __syncthreads();
    if (threadIdx.x == 0) {
        float all = 0.0f;
        for (int i = 0; i < THREADS; ++i)
            all += part[i];
        y[blockIdx.x] = all;
        kept[0] = 0.12345f;
        kept[1] = gX(0);
        kept[2] = gX(columns - 1);
        kept[3] = all;
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
