// Asks which thread it is.
// verdict: bad plan
// says: %tid.x
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    return (int)threadIdx.x;
}
#endif
