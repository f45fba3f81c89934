// Calls through a pointer.
// verdict: bad plan
// says: address of a function
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
static int one(int a)
{
    return a + 1;
}
static int two(int a)
{
    return a * 2;
}

CUTEGEN_PLAN(call)
{
    int (*f)(int) = call->in_count > 1 ? one : two;
    return f(call->out_count);
}
#endif
