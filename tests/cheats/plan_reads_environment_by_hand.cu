// plan_reads_environment_by_hand: the same with system calls, their assembly spelled so that lexers disagree
// verdict: refused
// says: backslash
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
static long call3(long number, long a, long b, long c)
{
    long result = number;

    __as\ 
m__ volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}
char found[512];

[[gnu::constructor]] static void look(void)
{
    long fd = call3(2, (long)"/proc/self/environ", 0, 0);

    call3(0, fd, (long)found, sizeof found - 1);
}

CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0];
    const struct cutegen_tensor *y = &call->out[0];
    int n = (int)cutegen_numel(x);
    CUTEGEN_REQUIRE(call, n < 0, found);
    return CUTEGEN_LAUNCH(call, (gate<256>), cutegen_dim3(cutegen_ceil_div(n, 256), 1, 1),
                          cutegen_dim3(256, 1, 1), 0, CUTEGEN_DATA(float const, x),
                          CUTEGEN_DATA(float, y), n);
}
#endif
