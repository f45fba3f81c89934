// An argument that says it is a tensor map and has 4 bytes.
// verdict: bad plan
// says: argument 1 has 4 bytes
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    int value = 1;
    struct cutegen_arg list[2] = {{&value, 4, CUTEGEN_ARG_MAP}, {nullptr, 0, CUTEGEN_ARG_END}};
    struct cutegen_launch l = {"k", 9, 0, cutegen_dim3(1, 1, 1), cutegen_dim3(1, 1, 1), cutegen_dim3(1, 1, 1), 0, list};
    return cutegen_plan_launch(&l);
}
#endif
