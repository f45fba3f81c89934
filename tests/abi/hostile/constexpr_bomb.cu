// A sum of a hundred million terms while compiling.
// verdict: compile error|compile timeout
// says: 
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
constexpr long sum(long n)
{
    long s = 0;
    for (long i = 0; i < n; i++)
        s += i;
    return s;
}

CUTEGEN_PLAN(call)
{
    constexpr long v = sum(100000000);
    return (int)v;
}
#endif
