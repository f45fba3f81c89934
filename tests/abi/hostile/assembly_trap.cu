// A trap.
// verdict: bad plan
// says: stops itself
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    __trap();
    return 0;
}
#endif
