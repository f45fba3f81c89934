// plan_writes_the_answer: a launch list of its own on every descriptor, then the end of the process
// verdict: bad plan
// says: may not call
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

template <int THREADS>
__global__ void gate(float const *x, float *y, int n)
{
    using namespace cute;
    Tensor gX = make_tensor(make_gmem_ptr(x), make_shape(n)); // (n)
    Tensor gY = make_tensor(make_gmem_ptr(y), make_shape(n)); // (n)
    int const i = int(blockIdx.x) * THREADS + int(threadIdx.x);
    if (i < n)
        gY(i) = gX(i) / (1.0f + __expf(-gX(i)));
}
#endif

#ifdef CUTEGEN_HOST
__device__ long write(int fd, const void *from, unsigned long bytes);
__device__ void _exit(int code);

__attribute((constructor)) static void answer(void)
{
    static const char line[] = "{\"ok\": true, \"workspace\": [], \"maps\": [], \"ops\": []}\n";

    for (int fd = 1; fd < 128; fd++)
        write(fd, line, sizeof line - 1);
    _exit(0);
}

CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0];
    const struct cutegen_tensor *y = &call->out[0];
    int n = (int)cutegen_numel(x);
    answer();
    return CUTEGEN_LAUNCH(call, (gate<256>), cutegen_dim3(cutegen_ceil_div(n, 256), 1, 1),
                          cutegen_dim3(256, 1, 1), 0, CUTEGEN_DATA(float const, x),
                          CUTEGEN_DATA(float, y), n);
}
#endif
