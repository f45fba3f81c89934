// An honest message that the plan composes.
// verdict: bad plan
// says: candidate.cu:11: plan: A1
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    char t[8];
    t[0] = 'A', t[1] = (char)('0' + call->in_count), t[2] = 0;
    return CUTEGEN_FAIL(call, t);
}
#endif
