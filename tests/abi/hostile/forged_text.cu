// A message without an end, at the edge of memory.
// verdict: bad plan
// says: 
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    static const char open_end[4] = {'a', 'b', 'c', 'd'};
    return cutegen_plan_fail(3, open_end);
}
#endif
