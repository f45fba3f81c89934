// Includes a file of the machine by its whole path.
// verdict: compile error
// says: /nowhere/at/all.h
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
#include "/nowhere/at/all.h"

CUTEGEN_PLAN(call)
{
    return 0;
}
#endif
