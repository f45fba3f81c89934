// Reads a tensor's data.
// verdict: bad plan
// says: outside its memory
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    return *(volatile int *)CUTEGEN_DATA(int, &call->in[0]);
}
#endif
