// A function that would run when a program is loaded.
// verdict: pass
// says: 
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
__attribute__((constructor)) static void early(void)
{
    for (;;) {
    }
}

CUTEGEN_PLAN(call)
{
    return CUTEGEN_LAUNCH(call, k, cutegen_dim3(1, 1, 1), cutegen_dim3(1, 1, 1), 0);
}
#endif
