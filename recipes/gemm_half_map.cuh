// gemm_half_map.cuh - a matrix of 16-bit elements for TMA. Included by the recipes for sm_90a and sm_100a.
static struct cutegen_map matrix_map(struct cutegen_call *call, void *data, int k_major, int64_t rows, int64_t K,
                                     int64_t L, int64_t slow, int64_t step, int box_rows)
{
    struct cutegen_map_spec s;

    s.data = data;
    s.dtype = $map_type;
    s.rank = 3;
    for (int i = 0; i < 5; i++)
        s.dims[i] = 1, s.strides_bytes[i] = 0, s.box[i] = 1, s.element_strides[i] = 1;
    s.dims[0] = k_major ? K : rows;
    s.dims[1] = k_major ? rows : K;
    s.dims[2] = L;
    s.strides_bytes[0] = slow * 2;
    s.strides_bytes[1] = (step > 0 ? step : slow * s.dims[1]) * 2;
    s.box[0] = 64;
    s.box[1] = k_major ? box_rows : TILE_K;
    s.swizzle = CUTEGEN_SWIZZLE_128;
    s.fill = CUTEGEN_FILL_ZERO;
    s.l2 = CUTEGEN_L2_256;
    return cutegen_map_tiled(call, &s);
}
