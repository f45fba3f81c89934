// A kernel without a name.
// verdict: bad plan
// says: is empty
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    struct cutegen_arg none[1] = {{nullptr, 0, CUTEGEN_ARG_END}};
    struct cutegen_launch l = {"", 9, 0, cutegen_dim3(1, 1, 1), cutegen_dim3(1, 1, 1), cutegen_dim3(1, 1, 1), 0, none};
    return cutegen_plan_launch(&l);
}
#endif
