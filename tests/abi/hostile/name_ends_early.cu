// A kernel's name that ends its expression.
// verdict: bad plan
// says: brackets that do not match
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    struct cutegen_arg none[1] = {{nullptr, 0, CUTEGEN_ARG_END}};
    struct cutegen_launch l = {"k), (k", 9, 0, cutegen_dim3(1, 1, 1), cutegen_dim3(1, 1, 1),
                               cutegen_dim3(1, 1, 1), 0, none};
    return cutegen_plan_launch(&l);
}
#endif
