// Embeds a file.
// verdict: compile error
// says: 
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    static const unsigned char x[] = {
#embed "/etc/passwd"
    };
    return x[0];
}
#endif
