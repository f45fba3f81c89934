// A launch whose argument list does not end.
// verdict: bad plan
// says: more than 32 arguments
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    static const struct cutegen_arg list[40] = {
        {"x", 1, 1}, {"x", 1, 1}, {"x", 1, 1}, {"x", 1, 1}, {"x", 1, 1}, {"x", 1, 1}, {"x", 1, 1},
        {"x", 1, 1}, {"x", 1, 1}, {"x", 1, 1}, {"x", 1, 1}, {"x", 1, 1}, {"x", 1, 1}, {"x", 1, 1},
        {"x", 1, 1}, {"x", 1, 1}, {"x", 1, 1}, {"x", 1, 1}, {"x", 1, 1}, {"x", 1, 1}, {"x", 1, 1},
        {"x", 1, 1}, {"x", 1, 1}, {"x", 1, 1}, {"x", 1, 1}, {"x", 1, 1}, {"x", 1, 1}, {"x", 1, 1},
        {"x", 1, 1}, {"x", 1, 1}, {"x", 1, 1}, {"x", 1, 1}, {"x", 1, 1}, {"x", 1, 1}, {"x", 1, 1}};
    struct cutegen_launch l = {"k", 9, 0, cutegen_dim3(1, 1, 1), cutegen_dim3(1, 1, 1), cutegen_dim3(1, 1, 1), 0, list};
    return cutegen_plan_launch(&l);
}
#endif
