// Writes a constant table through a cast.
// verdict: bad plan
// says: may only read
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
static const int sizes[4] = {32, 64, 128, 256};

CUTEGEN_PLAN(call)
{
    ((volatile int *)sizes)[call->in_count & 3] = 1;
    return CUTEGEN_LAUNCH(call, k, cutegen_dim3(1, 1, 1), cutegen_dim3(1, 1, 1), 0);
}
#endif
