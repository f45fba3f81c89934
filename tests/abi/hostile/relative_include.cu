// Includes a file beside the source.
// verdict: compile error
// says: kernel.ptx
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
#include "../kernel.ptx"

CUTEGEN_PLAN(call)
{
    return 0;
}
#endif
