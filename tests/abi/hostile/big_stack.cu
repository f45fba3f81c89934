// A local array larger than the stack.
// verdict: bad plan
// says: more than 1048576 bytes of variables
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    volatile char big[2 << 20];
    for (int i = 0; i < 2 << 20; i++)
        big[i] = (char)i;
    return big[5];
}
#endif
