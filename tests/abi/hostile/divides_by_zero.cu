// Divides by zero.
// verdict: bad plan
// says: divides by 0
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    volatile int none = 0;
    return 5 / none;
}
#endif
