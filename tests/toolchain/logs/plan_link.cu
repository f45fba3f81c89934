#include <cutegen/kernel.h>
#ifdef CUTEGEN_HOST
int puts(const char *);
CUTEGEN_PLAN(call)
{
    return puts("x");
}
#endif
