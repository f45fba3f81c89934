#include <cutegen/kernel.h>
#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    int64_t n = cutegen_numel(&call->in[0]);
    float *w = cutegen_workspace(call, 4 * n);
    return CUTEGEN_LAUNCH(call, (k<1>), cutegen_dim3(m, 1, 1), cutegen_dim3(256, 1, 1), 0, w, n);
}
#endif
