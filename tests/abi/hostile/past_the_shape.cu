// Reads far past the shapes.
// verdict: bad plan
// says: outside its memory
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    return (int)call->in[0].shape[1 << 20];
}
#endif
