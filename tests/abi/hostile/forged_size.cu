// An argument that says it is larger than it is.
// verdict: bad plan
// says: argument 1 has 4294967295 bytes
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    int value = 1;
    struct cutegen_arg list[2] = {{&value, 0xffffffffu, CUTEGEN_ARG_INT}, {nullptr, 0, CUTEGEN_ARG_END}};
    struct cutegen_launch l = {"k", 9, 0, cutegen_dim3(1, 1, 1), cutegen_dim3(1, 1, 1), cutegen_dim3(1, 1, 1), 0, list};
    return cutegen_plan_launch(&l);
}
#endif
