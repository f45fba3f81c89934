// Workspace upon workspace.
// verdict: bad plan
// says: workspace 512 of 1048576 bytes
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    for (int i = 0; i < 1000000000; i++)
        if (!cutegen_workspace(call, 1 << 20))
            break;
    return CUTEGEN_LAUNCH(call, k, cutegen_dim3(1, 1, 1), cutegen_dim3(1, 1, 1), 0);
}
#endif
