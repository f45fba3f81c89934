// A variable that a function fills before the plan begins.
// verdict: compile error
// says: dynamic initialization
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
static int slow(int n)
{
    for (;;)
        n = n * 3 + 1;
    return n;
}
static int filled = slow(1);

CUTEGEN_PLAN(call)
{
    return filled;
}
#endif
