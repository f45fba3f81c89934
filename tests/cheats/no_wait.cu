// no_wait: reads what cp.async has not brought yet
// task: rows
// verdict: race (simt), wrong values|non-finite|race|unsafe memory (cuda)
// says: asynchronous copy
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

template <int THREADS>
__global__ void rows(float const *x, float *y, int columns)
{
    using namespace cute;
    Tensor gX = make_tensor(make_gmem_ptr(x + int64_t(blockIdx.x) * columns), make_shape(columns)); // (columns)
    __shared__ alignas(16) float stage[4096];
    Tensor sX = make_tensor(make_smem_ptr(stage), make_shape(Int<4096>{})); // (4096)
    Tensor vX = make_tensor(gX.data(), make_shape(Int<4>{}, columns / 4));  // (4,columns/4)
    Tensor vS = make_tensor(sX.data(), make_shape(Int<4>{}, Int<1024>{}));  // (4,1024)
    for (int i = int(threadIdx.x); i < columns / 4; i += THREADS)
        copy(Copy_Atom<SM80_CP_ASYNC_CACHEALWAYS<uint128_t>, float>{}, vX(_, i), vS(_, i));
    cp_async_fence();
    __syncthreads();
    if (threadIdx.x == 0) {
        float all = 0.0f;
        for (int i = 0; i < columns; ++i)
            all += sX(i);
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
