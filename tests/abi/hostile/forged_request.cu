// Calls the planner with a launch made of nothing.
// verdict: bad plan
// says: outside its memory
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    return cutegen_plan_launch((const struct cutegen_launch *)0x20000000UL);
}
#endif
