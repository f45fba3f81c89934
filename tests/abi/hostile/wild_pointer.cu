// Reads an address of the machine it runs on.
// verdict: bad plan
// says: reads 4 bytes at 0x7fffffffe000
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    return *(volatile int *)0x7fffffffe000UL;
}
#endif
