// Allocates.
// verdict: bad plan
// says: may not call malloc
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    char *p = (char *)malloc(1 << 30);
    p[0] = 1;
    return p != nullptr;
}
#endif
