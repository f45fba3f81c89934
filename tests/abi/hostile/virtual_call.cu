// A virtual function: a pointer in disguise.
// verdict: bad plan
// says: which is not a table
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
struct base {
    virtual int size() { return 1; }
};
struct other : base {
    int size() override { return 2; }
};

CUTEGEN_PLAN(call)
{
    other o;
    volatile bool yes = call->in_count > 0;
    base *b = yes ? (base *)&o : nullptr;
    return b->size();
}
#endif
