// A system call in the assembly of x86_64.
// verdict: bad plan
// says: syscall
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    asm volatile("syscall;");
    return CUTEGEN_LAUNCH(call, k, cutegen_dim3(1, 1, 1), cutegen_dim3(1, 1, 1), 0);
}
#endif
