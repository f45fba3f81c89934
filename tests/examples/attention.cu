// attention: softmax(q k' / sqrt(d)) v, one block per query, plainly
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
__global__ void attend(float const *q, float const *k, float const *v, float *o, int length, int head, float scale)
{
    using namespace cute;
    extern __shared__ float scores[]; // (length) scores, then THREADS partial results
    float *const part = scores + length;
    int64_t const matrix = int64_t(blockIdx.y) * length * head;
    Tensor gQ = make_tensor(make_gmem_ptr(q + matrix), make_shape(length, head), make_stride(head, Int<1>{})); // (length,head)
    Tensor gK = make_tensor(make_gmem_ptr(k + matrix), make_shape(length, head), make_stride(head, Int<1>{})); // (length,head)
    Tensor gV = make_tensor(make_gmem_ptr(v + matrix), make_shape(length, head), make_stride(head, Int<1>{})); // (length,head)
    Tensor gO = make_tensor(make_gmem_ptr(o + matrix), make_shape(length, head), make_stride(head, Int<1>{})); // (length,head)
    int const row = int(blockIdx.x);

    float most = -__int_as_float(0x7f800000);
    for (int j = int(threadIdx.x); j < length; j += THREADS) {
        float dot = 0.0f;
        for (int d = 0; d < head; ++d)
            dot += gQ(row, d) * gK(j, d);
        scores[j] = dot * scale;
        most = fmaxf(most, scores[j]);
    }
    most = all_of<THREADS>(most, part, true);
    float sum = 0.0f;
    for (int j = int(threadIdx.x); j < length; j += THREADS) {
        scores[j] = expf(scores[j] - most);
        sum += scores[j];
    }
    sum = all_of<THREADS>(sum, part, false);
    for (int d = int(threadIdx.x); d < head; d += THREADS) {
        float value = 0.0f;
        for (int j = 0; j < length; ++j)
            value += scores[j] * gV(j, d);
        gO(row, d) = value / sum;
    }
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *q = &call->in[0];
    int length = (int)q->shape[2], head = (int)q->shape[3];
    int64_t bytes = ((int64_t)length + 128) * 4;

    return CUTEGEN_LAUNCH(call, (attend<128>), cutegen_dim3(length, q->shape[0] * q->shape[1], 1),
                          cutegen_dim3(128, 1, 1), bytes, CUTEGEN_DATA(float const, q),
                          CUTEGEN_DATA(float const, &call->in[1]), CUTEGEN_DATA(float const, &call->in[2]),
                          CUTEGEN_DATA(float, &call->out[0]), length, head, (float)(1.0 / cutegen_sqrt(head)));
}
#endif
