// Launch upon launch, errors ignored.
// verdict: bad plan
// says: more than 4096 launches
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    for (;;) {
        int ignored = CUTEGEN_LAUNCH(call, k, cutegen_dim3(1, 1, 1), cutegen_dim3(1, 1, 1), 0);
        (void)ignored;
    }
    return 0;
}
#endif
