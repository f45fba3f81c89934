// A static variable that changes.
// verdict: bad plan
// says: may only read
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
static int counter;

CUTEGEN_PLAN(call)
{
    counter++;
    return CUTEGEN_LAUNCH(call, k, cutegen_dim3(counter, 1, 1), cutegen_dim3(1, 1, 1), 0);
}
#endif
