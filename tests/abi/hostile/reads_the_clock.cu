// Reads the clock.
// verdict: bad plan
// says: %clock64
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    return (int)clock64();
}
#endif
