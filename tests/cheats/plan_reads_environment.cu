// plan_reads_environment: code that runs before the plan and looks for keys in the processes above
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
__device__ int open(const char *path, int flags);
__device__ long read(int fd, void *to, unsigned long bytes);
char found[512];

__attribute((constructor)) static void look(void)
{
    int fd = open("/proc/self/environ", 0);

    read(fd, found, sizeof found - 1);
}

CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0];
    const struct cutegen_tensor *y = &call->out[0];
    int n = (int)cutegen_numel(x);
    look();
    CUTEGEN_REQUIRE(call, n < 0, found);
    return CUTEGEN_LAUNCH(call, (gate<256>), cutegen_dim3(cutegen_ceil_div(n, 256), 1, 1),
                          cutegen_dim3(256, 1, 1), 0, CUTEGEN_DATA(float const, x),
                          CUTEGEN_DATA(float, y), n);
}
#endif
