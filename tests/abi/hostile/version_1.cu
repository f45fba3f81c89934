// Forms that only C has, which version 1 took.
// verdict: compile error
// says: 
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    return _Generic(call->in_count, int: 1, default: 0);
}
#endif
