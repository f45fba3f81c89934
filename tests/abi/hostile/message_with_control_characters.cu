// A message with escapes for the terminal.
// verdict: bad plan
// says: plan: ?[2Jgone?
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    return CUTEGEN_FAIL(call, "\033[2Jgone\n");
}
#endif
