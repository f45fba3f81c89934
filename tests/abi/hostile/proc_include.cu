// Includes what the compiler's own process has.
// verdict: compile error|bad plan
// says: 
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
#include "/proc/self/environ"

CUTEGEN_PLAN(call)
{
    return CUTEGEN_LAUNCH(call, k, cutegen_dim3(1, 1, 1), cutegen_dim3(1, 1, 1), 0);
}
#endif
