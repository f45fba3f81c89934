// Assembly that closes the function it stands in.
// verdict: bad plan
// says: 
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    asm volatile("ret; } .func other() { mov.u32 %r0, 1;");
    return CUTEGEN_LAUNCH(call, k, cutegen_dim3(1, 1, 1), cutegen_dim3(1, 1, 1), 0);
}
#endif
