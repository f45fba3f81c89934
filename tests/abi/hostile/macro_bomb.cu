// Macros that expand to tens of thousands of statements.
// verdict: compile error|compile timeout|bad plan
// says: 
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
#define MANY(x) x x x x x x x x
#define MORE(x) MANY(MANY(x))

CUTEGEN_PLAN(call)
{
    volatile int z = 0;
    MORE(MORE(MANY(z = z + 1;)))
    return z;
}
#endif
