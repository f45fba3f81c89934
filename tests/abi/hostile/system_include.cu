// Includes a header of the C library.
// verdict: compile error
// says: stdio.h
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
#include <stdio.h>

CUTEGEN_PLAN(call)
{
    return 0;
}
#endif
