// Two functions that call each other without an end.
// verdict: bad plan
// says: call each other too deep
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
static int ping(int n);
static int pong(int n)
{
    return ping(n + 1) + 1;
}
static int ping(int n)
{
    return pong(n + 1) + 1;
}

CUTEGEN_PLAN(call)
{
    return ping(call->in_count);
}
#endif
