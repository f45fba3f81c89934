// Tensor map upon tensor map.
// verdict: bad plan
// says: more than 1024 tensor maps
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    struct cutegen_map_spec s = {};
    s.data = CUTEGEN_DATA(float, &call->in[0]);
    s.dtype = CUTEGEN_F32;
    s.rank = 1;
    s.dims[0] = 128;
    s.box[0] = 32;
    for (int i = 0; i < 1100; i++)
        cutegen_map_tiled(call, &s);
    return CUTEGEN_LAUNCH(call, k, cutegen_dim3(1, 1, 1), cutegen_dim3(1, 1, 1), 0);
}
#endif
