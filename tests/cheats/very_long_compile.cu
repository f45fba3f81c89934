// very_long_compile: keeps the compiler busy, with little memory: 2^31 instantiations, each of which counts to 2^14
// verdict: compile timeout
// flags: --build-deadline 6
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

constexpr unsigned busy(unsigned n)
{
    for (int i = 0; i < (1 << 14); ++i)
        n = 3 * n + 1;
    return n;
}
template <int N, int ID> struct Count {
    static constexpr unsigned value = busy(Count<N - 1, 2 * ID>::value) + Count<N - 1, 2 * ID + 1>::value;
};
template <int ID> struct Count<0, ID> {
    static constexpr unsigned value = busy(ID);
};

template <int THREADS>
__global__ void gate(float const *x, float *y, int n)
{
    using namespace cute;
    Tensor gX = make_tensor(make_gmem_ptr(x), make_shape(n)); // (n)
    Tensor gY = make_tensor(make_gmem_ptr(y), make_shape(n)); // (n)
    int const i = int(blockIdx.x) * THREADS + int(threadIdx.x);
    if (i < n)
        gY(i) = gX(i) * float(Count<30, 0>::value);
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0];
    const struct cutegen_tensor *y = &call->out[0];
    int n = (int)cutegen_numel(x);
    return CUTEGEN_LAUNCH(call, (gate<256>), cutegen_dim3(cutegen_ceil_div(n, 256), 1, 1),
                          cutegen_dim3(256, 1, 1), 0, CUTEGEN_DATA(float const, x),
                          CUTEGEN_DATA(float, y), n);
}
#endif
