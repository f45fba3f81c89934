// An honest switch: a table of jumps.
// verdict: pass
// says: 
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    int64_t n = call->in[0].shape[0], v;
    switch (n % 16) {
    case 0:
        v = 3;
        break;
    case 1:
        v = 77;
        break;
    case 2:
        v = n * 3;
        break;
    case 3:
        v = n / 7;
        break;
    case 4:
        v = 91;
        break;
    case 5:
        v = 12;
        break;
    case 6:
        v = n * n;
        break;
    default:
        v = 1;
    }
    return CUTEGEN_LAUNCH(call, k, cutegen_dim3(v, 1, 1), cutegen_dim3(1, 1, 1), 0);
}
#endif
