// Conversions at the edges of their types.
// verdict: pass
// says: 
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    volatile double big = 1e300, nan = big * 1e300 * 0.0;
    int64_t a = (int64_t)big, b = (int64_t)nan;
    CUTEGEN_REQUIRE(call, a == INT64_MAX, "saturates");
    CUTEGEN_REQUIRE(call, b == 0 || b == (int64_t)1 << 63, "of nan");
    return CUTEGEN_LAUNCH(call, k, cutegen_dim3(1, 1, 1), cutegen_dim3(1, 1, 1), 0);
}
#endif
