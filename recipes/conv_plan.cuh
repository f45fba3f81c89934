// conv_plan.cuh - workspace, tensor maps and launches; a part of convolution.cu.
//! if w_last or y_last
// Channels last, without gaps?
static int lies_last(const struct cutegen_tensor *t)
{
    int64_t step = t->shape[1];
    int ok = t->shape[1] == 1 || t->strides[1] == 1;

    for (int d = t->ndim - 1; d >= 0; d--) {
        ok = ok && (d == 1 || t->shape[d] == 1 || t->strides[d] == step);
        step *= d == 1 ? 1 : t->shape[d];
    }
    return ok;
}

//! end
//! if direct
// (PIXELS,channels,N) in fp32 for TMA.
static struct cutegen_map image_map(struct cutegen_call *call, void *data, int64_t channels, int64_t n, int box_p, int box_c, int swizzle)
{
    struct cutegen_map_spec s;

    for (int i = 0; i < 5; i++)
        s.dims[i] = 1, s.strides_bytes[i] = 0, s.box[i] = 1, s.element_strides[i] = 1;
    s.data = data;
    s.dtype = CUTEGEN_F32;
    s.rank = 3;
    s.dims[0] = PIXELS, s.dims[1] = channels, s.dims[2] = n;
    s.strides_bytes[0] = (int64_t)PIXELS * 4, s.strides_bytes[1] = (int64_t)PIXELS * channels * 4;
    s.box[0] = box_p, s.box[1] = box_c;
    s.swizzle = swizzle;
    s.fill = CUTEGEN_FILL_ZERO;
    s.l2 = CUTEGEN_L2_256;
    return cutegen_map_tiled(call, &s);
}

//! elif wgmma
//! if bulk
// The results for TMA: runs of pixels, 32 of 16 channels at a time.
static struct cutegen_map results_map(struct cutegen_call *call, void *data, int64_t n)
{
    struct cutegen_map_spec s;

    for (int i = 0; i < 5; i++)
        s.dims[i] = 1, s.strides_bytes[i] = 0, s.box[i] = 1, s.element_strides[i] = 1;
    s.data = data;
    s.dtype = CUTEGEN_F32;
    s.rank = 4;
    s.dims[0] = RUN_P, s.dims[1] = PIXELS / RUN_P, s.dims[2] = C_OUT, s.dims[3] = n;
    s.strides_bytes[0] = (int64_t)RUN_P * 4, s.strides_bytes[1] = (int64_t)PIXELS * 4, s.strides_bytes[2] = (int64_t)PIXELS * C_OUT * 4;
    s.box[0] = 32, s.box[2] = 16;
    s.swizzle = CUTEGEN_SWIZZLE_128;
    s.fill = CUTEGEN_FILL_ZERO;
    s.l2 = CUTEGEN_L2_256;
    return cutegen_map_tiled(call, &s);
}

//! end
//! if boxes
// x or y as they lie, channels last, for TMA: boxes of `channels_box` channels.
static struct cutegen_map boxes_map(struct cutegen_call *call, void *data, int channels, int wide, int high, int deep, int64_t n, int channels_box, int box_w, int step_w, int step_h, int swizzle)
{
    struct cutegen_map_spec s;

    for (int i = 0; i < 5; i++)
        s.dims[i] = 1, s.strides_bytes[i] = 0, s.box[i] = 1, s.element_strides[i] = 1;
    s.data = data;
    s.dtype = $map_type;
    s.rank = 5;
    s.dims[0] = channels, s.dims[1] = wide, s.dims[2] = high, s.dims[3] = deep, s.dims[4] = n;
    s.strides_bytes[0] = channels * 2, s.strides_bytes[1] = s.strides_bytes[0] * wide, s.strides_bytes[2] = s.strides_bytes[1] * high, s.strides_bytes[3] = s.strides_bytes[2] * deep;
    s.box[0] = channels_box, s.box[1] = (box_w - 1) * step_w + 1, s.box[2] = (BOX_H - 1) * step_h + 1, s.box[4] = BOX_N;
    s.element_strides[1] = step_w, s.element_strides[2] = step_h;
    s.swizzle = swizzle;
    s.fill = CUTEGEN_FILL_ZERO;
    s.l2 = CUTEGEN_L2_256;
    return cutegen_map_tiled(call, &s);
}

//! end
// Rows of `elements` for TMA, boxes of ROW elements of `box` rows.
static struct cutegen_map rows_map(struct cutegen_call *call, void *data, int64_t elements, int64_t rows, int box)
{
    struct cutegen_map_spec s;

    for (int i = 0; i < 5; i++)
        s.dims[i] = 1, s.strides_bytes[i] = 0, s.box[i] = 1, s.element_strides[i] = 1;
    s.data = data;
    s.dtype = $map_type;
    s.rank = 2;
    s.dims[0] = elements, s.dims[1] = rows;
    s.strides_bytes[0] = elements * 2;
    s.box[0] = ROW, s.box[1] = box;
    s.swizzle = ROW == 32 ? CUTEGEN_SWIZZLE_64 : CUTEGEN_SWIZZLE_128;
    s.fill = CUTEGEN_FILL_ZERO;
    s.l2 = CUTEGEN_L2_256;
    return cutegen_map_tiled(call, &s);
}

//! end
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[$x_index]; // $x_name
    const struct cutegen_tensor *w = &call->in[$w_index]; // $w_name
    const struct cutegen_tensor *y = &call->out[0];
//! each leaf
    const struct cutegen_tensor *$x = &call->in[$i];
//! end

    CUTEGEN_REQUIRE(call, x->ndim == $ndim && w->ndim == $ndim && y->ndim == $ndim, "x, w and y must be $ndim-dimensional");
//! each leaf
    CUTEGEN_REQUIRE(call, $x->ndim == $ndim, "$x must be $ndim-dimensional");
//! end
//! each check
    CUTEGEN_REQUIRE(call, $condition, "$text");
//! end
//! each scalar
    CUTEGEN_REQUIRE(call, call->scalar[$k].f == $value, "$name is written into the kernel as $value");
//! end
    int64_t N = y->shape[0];
    CUTEGEN_REQUIRE(call, x->shape[0] == N, "x and y must have one batch");
    CUTEGEN_REQUIRE(call, $w_lies && $y_lies, "$lie");
//! if columns
    CUTEGEN_REQUIRE(call, cutegen_aligned(x, 16) && cutegen_aligned(y, 16), "x and y must start on 16 bytes");
    int64_t tiles = cutegen_ceil_div(OUT_W, $lanes * 4) * cutegen_ceil_div(OUT_H, 8 * (128 / $lanes));
    return CUTEGEN_LAUNCH(call, ${kernel}_columns, cutegen_dim3(tiles * C_OUT * N, 1, 1), cutegen_dim3(128, 1, 1), 0, $args);
//! elif direct
    CUTEGEN_REQUIRE(call, cutegen_contiguous(x) && cutegen_aligned(x, 16) && cutegen_aligned(y, 16), "x and y must be contiguous and start on 16 bytes");
    struct cutegen_map map_x = image_map(call, (void *)CUTEGEN_DATA(float const, x), C_IN, N, TILE_P, TERMS, CUTEGEN_SWIZZLE_NONE);
    struct cutegen_map map_y = image_map(call, CUTEGEN_DATA(float, y), C_OUT, N, 32, 64, CUTEGEN_SWIZZLE_128);
    int64_t tiles = cutegen_ceil_div(PIXELS, TILE_P) * N, tiles_k = cutegen_ceil_div(C_OUT, TILE_K);
    int64_t blocks = cutegen_min(tiles, cutegen_max(call->device.sm_count / tiles_k, 1));
    return CUTEGEN_LAUNCH(call, ${kernel}_direct, cutegen_dim3(blocks, tiles_k, 1), cutegen_dim3(384, 1, 1), SMEM_BYTES, map_x, map_y, $args);
//! elif boxes
    CUTEGEN_REQUIRE(call, lies_last(x) && cutegen_aligned(x, 16) && cutegen_aligned(y, 16), "x must lie channels last without gaps, x and y start on 16 bytes");
//! if w_there
    CUTEGEN_REQUIRE(call, cutegen_aligned(w, 16), "w must start on 16 bytes");
    void *planes_w = (void *)CUTEGEN_DATA($w_type const, w);
//! else
//! if joined
    uint16_t *planes_w = (uint16_t *)((struct pooled_call *)call)->ready.weights;
//! else
    uint16_t *planes_w = (uint16_t *)cutegen_workspace(call, (int64_t)ROWS * STEPS * ROW * 2);
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, ${kernel}_prepare, cutegen_dim3(ROWS, 1, 1), cutegen_dim3(256, 1, 1), 0, CUTEGEN_DATA($x_type const, x), CUTEGEN_DATA($w_type const, w), planes_w, (float *)planes_w, (uint32_t *)planes_w, (int64_t)0, 0));
//! end
//! end
    struct cutegen_map map_x = boxes_map(call, (void *)CUTEGEN_DATA($x_type const, x), C_IN, IN_W, IN_H, IN_D, N, ROW, BOX_W, $box_step_w, $box_step_h, ROW == 32 ? CUTEGEN_SWIZZLE_64 : CUTEGEN_SWIZZLE_128);
    struct cutegen_map map_y = boxes_map(call, CUTEGEN_DATA($y_type, y), C_OUT, OUT_W, OUT_H, OUT_D, N, 64, USE_W, 1, 1, CUTEGEN_SWIZZLE_128);
    struct cutegen_map map_w = rows_map(call, planes_w, (int64_t)STEPS * ROW, ROWS, TILE_K);
    int64_t tiles = cutegen_ceil_div(cutegen_ceil_div(N, BOX_N) * OUT_D * BOXES_H * BOXES_W, SIDE) * cutegen_ceil_div(C_OUT, TILE_K);
//! if overlap and not w_there
    uint32_t flags = CUTEGEN_OVERLAP;
//! else
    uint32_t flags = 0;
//! end
    return CUTEGEN_LAUNCH_EX(call, ${kernel}_last, cutegen_dim3(cutegen_min(tiles, call->device.sm_count), 1, 1), cutegen_dim3(384, 1, 1), cutegen_dim3(1, 1, 1), SMEM_BYTES, flags, map_x, map_w, map_y, $args);
//! elif tensor
    int64_t rows = PARTS * N * WALK, pixels = N * WALK, processors = call->device.sm_count;
    CUTEGEN_REQUIRE(call, rows + 1024 < INT32_MAX, "rows of planes are counted in 32 bits");
//! if joined
    const struct ready_part *ready = &((struct pooled_call *)call)->ready;
//! end
    uint16_t *planes_x = (uint16_t *)cutegen_workspace(call, rows * CHUNKS_X * ROW * 2);
//! if joined
    uint16_t *planes_w = (uint16_t *)ready->weights;
//! else
    uint16_t *planes_w = (uint16_t *)cutegen_workspace(call, (int64_t)ROWS * STEPS * ROW * 2);
//! end
//! if overlap
    uint32_t flags = CUTEGEN_OVERLAP;
//! else
    uint32_t flags = 0;
//! end
    struct cutegen_dim one = cutegen_dim3(1, 1, 1);
//! if narrow
    float *unscale = (float *)planes_w; // not read
    uint32_t *state = (uint32_t *)planes_w, *lost = state;
    const uint32_t *tops = state;
    int64_t blocks_x = 0;
//! else
//! if joined
    float *unscale = (float *)(planes_w + (int64_t)ROWS * STEPS * ROW);
    uint32_t *state = ready->state, *lost = (uint32_t *)unscale + ROWS;
    const uint32_t *tops = ready->tops;
    int64_t blocks_x = ready->tops_count;
//! else
    int64_t blocks_x = cutegen_min(processors * 4, cutegen_ceil_div(cutegen_numel(x), 1024 * EVERY));
    float *unscale = (float *)cutegen_workspace(call, ROWS * 4);
    uint32_t *state = (uint32_t *)cutegen_workspace(call, (4 + blocks_x + ROWS) * 4), *lost = state + 4 + blocks_x;
    const uint32_t *tops = state + 4;
//! end
    CUTEGEN_REQUIRE(call, cutegen_aligned(x, 16), "x must start on 16 bytes");
//! end
//! if joined and not narrow
    if (blocks_x == 0) {
        blocks_x = cutegen_min(processors * 4, cutegen_ceil_div(cutegen_numel(x), 1024 * EVERY));
        uint32_t *found = (uint32_t *)cutegen_workspace(call, blocks_x * 4);
        CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, ${kernel}_largest, cutegen_dim3(blocks_x, 1, 1), cutegen_dim3(256, 1, 1), one, 0, flags, CUTEGEN_DATA(float const, x), found, cutegen_numel(x), (int)blocks_x));
        tops = found;
    }
//! elif not joined
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, ${kernel}_prepare, cutegen_dim3(blocks_x + ROWS, 1, 1), cutegen_dim3(256, 1, 1), 0, CUTEGEN_DATA($x_type const, x), CUTEGEN_DATA($w_type const, w), planes_w, unscale, state, cutegen_numel(x), (int)blocks_x));
//! end
    CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, ${kernel}_split_x, cutegen_dim3(cutegen_ceil_div(pixels, 256) * PARTS, CHUNKS_X, 1), cutegen_dim3(256, 1, 1), one, 0, flags, CUTEGEN_DATA($x_type const, x), planes_x, state, (uint32_t const *)tops, (uint32_t const *)lost, (int)blocks_x, (int)N, $x_strides));
//! if wgmma
    struct cutegen_map map_x = rows_map(call, planes_x, CHUNKS_X * ROW, rows, BOX_P);
    struct cutegen_map map_halo = rows_map(call, planes_x, CHUNKS_X * ROW, rows, HALO > 0 ? HALO : 8);
    struct cutegen_map map_w = rows_map(call, planes_w, (int64_t)STEPS * ROW, ROWS, TILE_K);
//! if bulk
    CUTEGEN_REQUIRE(call, cutegen_aligned(y, 16), "y must start on 16 bytes");
    struct cutegen_map map_y = results_map(call, CUTEGEN_DATA(float, y), N);
//! end
    int64_t tiles = cutegen_ceil_div(pixels, TILE_P) * cutegen_ceil_div(ROWS, TILE_K);
//! if split_sums
    int64_t pitch = cutegen_ceil_div(pixels, TILE_P) * TILE_P;
    float *partial = (float *)cutegen_workspace(call, SPLITS * ROWS_K * pitch * 4);
    CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, ${kernel}_product, cutegen_dim3(cutegen_min(tiles * SPLITS, processors), 1, 1), cutegen_dim3(384, 1, 1), one, SMEM_BYTES, flags, map_x, map_halo, map_w, partial, (float const *)unscale, (uint32_t const *)state, (int)N));
    int64_t adders = cutegen_ceil_div(cutegen_numel(y), 256);
    return CUTEGEN_LAUNCH_EX(call, ${kernel}_add_parts, cutegen_dim3(adders, 1, 1), cutegen_dim3(256, 1, 1), one, 0, flags, (float const *)partial, (uint32_t const *)state, (int)pitch, $args);
//! else
    int64_t blocks = cutegen_min(tiles, processors);
//! end
//! end
//! if not split_sums
    // A phase of a transposed convolution after the other; any other has one.
    for (int phase = 0; phase < $phases; phase++) {
//! if interleaved
        int d = phase / STRIDE_H, h = phase % STRIDE_H, v = 0;
//! elif transposed
        int d = phase / (STRIDE_H * STRIDE_W), h = phase / STRIDE_W % STRIDE_H, v = phase % STRIDE_W;
//! else
        int d = 0, h = 0, v = 0;
//! end
//! if wgmma
//! if bulk
        CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, ${kernel}_product, cutegen_dim3(blocks, 1, 1), cutegen_dim3(384, 1, 1), one, SMEM_BYTES, flags, map_x, map_halo, map_w, map_y, (float const *)unscale, (uint32_t const *)state, d, h, v, $args));
//! else
        CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, ${kernel}_product, cutegen_dim3(blocks, 1, 1), cutegen_dim3(384, 1, 1), one, SMEM_BYTES, flags, map_x, map_halo, map_w, (float const *)unscale, (uint32_t const *)state, d, h, v, $args));
//! end
//! else
        CUTEGEN_TRY(CUTEGEN_LAUNCH(call, ${kernel}_product, cutegen_dim3(cutegen_ceil_div(pixels, TILE_P), cutegen_ceil_div(ROWS, TILE_K), 1), cutegen_dim3(256, 1, 1), 0, (uint16_t const *)planes_x, (uint16_t const *)planes_w, (float const *)unscale, (uint32_t const *)state, d, h, v, $args));
//! end
    }
    return 0;
//! end
//! else
    return CUTEGEN_LAUNCH(call, ${kernel}_plain, cutegen_dim3(cutegen_min(cutegen_ceil_div(cutegen_numel(y), 256), 1 << 20), 1, 1), cutegen_dim3(256, 1, 1), 0, $args);
//! end
}
