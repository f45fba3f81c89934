// Declares a function of the C library and calls it.
// verdict: bad plan
// says: may not call getenv
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
extern "C" __device__ const char *getenv(const char *);

CUTEGEN_PLAN(call)
{
    return CUTEGEN_FAIL(call, getenv("HOME"));
}
#endif
