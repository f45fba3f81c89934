// The table behind call, which version 1 had.
// verdict: compile error
// says: api
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    return call->api->fail(call, 1, "x");
}
#endif
