// Recursion whose frames fill the stack.
// verdict: bad plan
// says: call each other too deep
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
static int64_t deeper(int64_t n)
{
    volatile int64_t kept[2048];
    kept[n & 2047] = n;
    return deeper(n + 1) + kept[0];
}

CUTEGEN_PLAN(call)
{
    return (int)deeper(1);
}
#endif
