// attention_map.cuh - tensor maps of attention; a part of its recipes for sm_90a.
// Rows for TMA, `chunk` columns and `box` rows at a time; a mode that a tensor does not have is one long.
static struct cutegen_map rows_map(struct cutegen_call *call, int dtype, void *data, int64_t columns, int64_t rows,
                                   int64_t row, int chunk, int box, int64_t n0, int64_t s0, int64_t n1, int64_t s1,
                                   int64_t n2, int64_t s2)
{
    struct cutegen_map_spec s;

    s.data = data;
    s.dtype = dtype;
    s.rank = 5;
    for (int i = 0; i < 5; i++)
        s.box[i] = 1, s.element_strides[i] = 1;
    s.dims[0] = columns;
    s.dims[1] = rows;
    s.dims[2] = n0;
    s.dims[3] = n1;
    s.dims[4] = n2;
    s.strides_bytes[0] = (row > 0 ? row : columns) * 2;
    s.strides_bytes[1] = (s0 > 0 ? s0 : columns) * 2;
    s.strides_bytes[2] = (s1 > 0 ? s1 : columns) * 2;
    s.strides_bytes[3] = (s2 > 0 ? s2 : columns) * 2;
    s.box[0] = chunk;
    s.box[1] = box;
    s.swizzle = chunk == 64 ? CUTEGEN_SWIZZLE_128 : CUTEGEN_SWIZZLE_64;
    s.fill = CUTEGEN_FILL_ZERO;
    s.l2 = CUTEGEN_L2_128;
    return cutegen_map_tiled(call, &s);
}

