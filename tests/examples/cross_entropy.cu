// cross_entropy: a loss for each row, then their mean
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

template <int THREADS>
__device__ float all_of(float v, float *part, bool largest)
{
    part[threadIdx.x] = v;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (int(threadIdx.x) < half) {
            float const other = part[threadIdx.x + half];
            part[threadIdx.x] = largest ? fmaxf(part[threadIdx.x], other) : part[threadIdx.x] + other;
        }
        __syncthreads();
    }
    float const all = part[0];
    __syncthreads();
    return all;
}

template <int THREADS>
__global__ void rows(float const *x, int64_t const *target, float *loss, int classes)
{
    using namespace cute;
    __shared__ float part[THREADS];
    Tensor gX = make_tensor(make_gmem_ptr(x + int64_t(blockIdx.x) * classes), make_shape(classes)); // (classes)
    float most = -__int_as_float(0x7f800000), sum = 0.0f;

    for (int i = int(threadIdx.x); i < classes; i += THREADS)
        most = fmaxf(most, gX(i));
    most = all_of<THREADS>(most, part, true);
    for (int i = int(threadIdx.x); i < classes; i += THREADS)
        sum += expf(gX(i) - most);
    sum = all_of<THREADS>(sum, part, false);
    if (threadIdx.x == 0)
        loss[blockIdx.x] = logf(sum) + most - gX(int(target[blockIdx.x]));
}

template <int THREADS>
__global__ void mean(float const *loss, float *out, int n)
{
    __shared__ float part[THREADS];
    float sum = 0.0f;

    for (int i = int(threadIdx.x); i < n; i += THREADS)
        sum += loss[i];
    sum = all_of<THREADS>(sum, part, false);
    if (threadIdx.x == 0)
        *out = sum / float(n);
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0];
    int n = (int)x->shape[0];
    float *loss = (float *)cutegen_workspace(call, (int64_t)n * 4);

    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (rows<128>), cutegen_dim3(n, 1, 1), cutegen_dim3(128, 1, 1), 0,
                               CUTEGEN_DATA(float const, x), CUTEGEN_DATA(int64_t const, &call->in[1]), loss,
                               (int)x->shape[1]));
    return CUTEGEN_LAUNCH(call, (mean<256>), cutegen_dim3(1, 1, 1), cutegen_dim3(256, 1, 1), 0, loss,
                          CUTEGEN_DATA(float, &call->out[0]), n);
}
#endif
