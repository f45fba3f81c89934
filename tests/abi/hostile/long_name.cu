// A kernel's name of 4000 characters.
// verdict: bad plan
// says: too long
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
#define TEN(x) x x x x x x x x x x
#define NAME TEN(TEN("k0123456789012345678901234567890123456789"))

CUTEGEN_PLAN(call)
{
    struct cutegen_arg none[1] = {{nullptr, 0, CUTEGEN_ARG_END}};
    struct cutegen_launch l = {NAME, 9, 0, cutegen_dim3(1, 1, 1), cutegen_dim3(1, 1, 1), cutegen_dim3(1, 1, 1), 0, none};
    return cutegen_plan_launch(&l);
}
#endif
