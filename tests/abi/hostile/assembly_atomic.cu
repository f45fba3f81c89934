// Assembly with an atomic.
// verdict: bad plan
// says: instruction atom
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    int x = 0;
    asm volatile("atom.add.u32 %0, [%1], 1;" : "=r"(x) : "l"((void *)call));
    return x;
}
#endif
