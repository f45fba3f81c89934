// conv2d: a square filter with padding, one thread per result, plainly
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

template <int THREADS>
__global__ void convolve(float const *x, float const *w, float const *bias, float *y, int batch, int in, int out, int size, int kernel)
{
    using namespace cute;
    Tensor gX = make_tensor(make_gmem_ptr(x), make_shape(size, size, in, batch));    // (column,row,channel,image)
    Tensor gW = make_tensor(make_gmem_ptr(w), make_shape(kernel, kernel, in, out));  // (column,row,channel,filter)
    Tensor gY = make_tensor(make_gmem_ptr(y), make_shape(size, size, out, batch));   // (column,row,filter,image)
    int const at = int(blockIdx.x) * THREADS + int(threadIdx.x), column = at % size, row = at / size;
    int const filter = int(blockIdx.y), image = int(blockIdx.z), pad = kernel / 2;

    if (at >= size * size)
        return;
    float sum = bias[filter];
    for (int c = 0; c < in; ++c)
        for (int r = 0; r < kernel; ++r)
            for (int s = 0; s < kernel; ++s) {
                int const i = row + r - pad, j = column + s - pad;
                if (i >= 0 && i < size && j >= 0 && j < size)
                    sum += gX(j, i, c, image) * gW(s, r, c, filter);
            }
    gY(column, row, filter, image) = sum;
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0], *w = &call->in[1];
    int batch = (int)x->shape[0], in = (int)x->shape[1], size = (int)x->shape[2], out = (int)w->shape[0];

    CUTEGEN_REQUIRE(call, x->shape[2] == x->shape[3], "square images only");
    return CUTEGEN_LAUNCH(call, (convolve<256>), cutegen_dim3(cutegen_ceil_div(size * size, 256), out, batch),
                          cutegen_dim3(256, 1, 1), 0, CUTEGEN_DATA(float const, x), CUTEGEN_DATA(float const, w),
                          CUTEGEN_DATA(float const, &call->in[2]), CUTEGEN_DATA(float, &call->out[0]), batch, in,
                          out, size, (int)w->shape[2]);
}
#endif
