// Large arguments, many times: the answer has a limit.
// verdict: bad plan
// says: more than 1048576 bytes
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
struct block {
    int v[1024];
};

CUTEGEN_PLAN(call)
{
    struct block b;
    b.v[0] = 1;
    for (int i = 0; i < 1000; i++)
        CUTEGEN_TRY(CUTEGEN_LAUNCH(call, k, cutegen_dim3(1, 1, 1), cutegen_dim3(1, 1, 1), 0, b));
    return 0;
}
#endif
