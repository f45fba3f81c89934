// Shared memory.
// verdict: bad plan
// says: shared
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    __shared__ int s[4];
    s[call->in_count & 3] = 1;
    return s[0];
}
#endif
