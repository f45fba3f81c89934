// A loop without an end.
// verdict: bad plan
// says: did not return within 20000000 steps
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    volatile int i = 0;
    while (1)
        i = i + 1;
    return 0;
}
#endif
