// Says that it returned, and goes on for ever.
// verdict: bad plan
// says: did not return
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    cutegen_plan_return(0);
    for (volatile int i = 0;; i = i + 1)
        if (i < 0)
            break;
    return 0;
}
#endif
