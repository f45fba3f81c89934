// Templates that instantiate each other 400 deep.
// verdict: compile error|compile timeout
// says: 
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
template <int A, int B> struct tree {
    enum { v = tree<A - 1, B>::v + tree<A - 1, B + 1>::v };
};
template <int B> struct tree<0, B> {
    enum { v = B };
};

CUTEGEN_PLAN(call)
{
    return tree<400, 0>::v;
}
#endif
