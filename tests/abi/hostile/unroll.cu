// A loop that asks to be unrolled 100000 times.
// verdict: bad plan
// says: returned
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    volatile int z = 0;
#pragma unroll
    for (int i = 0; i < 100000; i++)
        z = z + i;
    return z | 1;
}
#endif
