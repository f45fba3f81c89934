// Assembly that writes at an address of its own.
// verdict: bad plan
// says: outside its memory
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    asm volatile("st.u64 [%0], 1;" ::"l"(0x20000000UL));
    return CUTEGEN_LAUNCH(call, k, cutegen_dim3(1, 1, 1), cutegen_dim3(1, 1, 1), 0);
}
#endif
