// A table larger than a plan may have.
// verdict: bad plan
// says: tables have more than
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    static const char big[8 << 20] = {1, 2, 3};
    return big[call->in_count];
}
#endif
