// Writes through a null pointer.
// verdict: bad plan
// says: a null pointer
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    *(volatile int *)(intptr_t)(call->in_count - 1) = 7;
    return CUTEGEN_LAUNCH(call, k, cutegen_dim3(1, 1, 1), cutegen_dim3(1, 1, 1), 0);
}
#endif
