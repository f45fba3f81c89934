// gemm_plan.cuh - tensor maps, workspace and launches; a part of gemm_sm90.cu.
//! if tensor
//! if not both
// The planes of an operand for TMA: (K,rows,L,2), or (64,K,rows/64,L,2) where rows are neighbours
// in memory.
static struct cutegen_map plane_map(struct cutegen_call *call, uint16_t *planes, int k_major, int64_t rows, int64_t K,
                                    int64_t L, int64_t ld, int tile)
{
    struct cutegen_map_spec s;
    int64_t dims_k[5] = {K, rows, L, 2, 1}, dims_r[5] = {64, K, ld / 64, L, 2};
    int64_t strides_k[5] = {ld, rows * ld, L * rows * ld, 0, 0}, strides_r[5] = {ld, 64, K * ld, L * K * ld, 0};
    int32_t box_k[5] = {TILE_K, (int32_t)tile, 1, 1, 1}, box_r[5] = {64, TILE_K, (int32_t)tile / 64, 1, 1};

    s.data = planes;
    s.dtype = CUTEGEN_F16;
    s.rank = k_major ? 4 : 5;
    for (int i = 0; i < 5; i++) {
        s.dims[i] = k_major ? dims_k[i] : dims_r[i];
        s.strides_bytes[i] = 2 * (k_major ? strides_k[i] : strides_r[i]);
        s.box[i] = k_major ? box_k[i] : box_r[i];
        s.element_strides[i] = 1;
    }
    s.swizzle = CUTEGEN_SWIZZLE_128;
    s.fill = CUTEGEN_FILL_ZERO;
    s.l2 = CUTEGEN_L2_256;
    return cutegen_map_tiled(call, &s);
}
//! end

//! end
CUTEGEN_PLAN(call)
{
//! include gemm_head
    int64_t L = $L;
//! each check
    CUTEGEN_REQUIRE(call, $condition, "$text");
//! end
//! if tensor
//! if one_block and not fuse
    CUTEGEN_REQUIRE(call, K <= STEPS * TERMS, "K is written into the kernel");
//! end
//! each vector_check
    CUTEGEN_REQUIRE(call, $condition, "$text");
//! end
    CUTEGEN_REQUIRE(call, cutegen_aligned(C, 16), "C must start on 16 bytes");
//! end
//! each scalar
    CUTEGEN_REQUIRE(call, call->scalar[$k].f == $value, "$name is written into the kernel as $value");
//! end
    int64_t processors = call->device.sm_count;
//! if tensor
//! if overlap
    uint32_t flags = CUTEGEN_OVERLAP;
//! else
    uint32_t flags = 0;
//! end
    struct cutegen_dim one = cutegen_dim3(1, 1, 1);
//! if split_k

    // Parts of K, each a product of its own, as many as fill the device.
//! if cut_matters
    // Counted are the turns of the device, a turn's products, and what it costs to write a part and to add it. Long
    // sums have several parts anyway: what is added in float64 afterwards has not been rounded as often.
//! elif short_parts
    // Long sums have four at least: what is added in float64 afterwards has not been rounded as often.
//! end
    int64_t K_all = K, tiles_c = cutegen_ceil_div(M, TILE_M * CLUSTER) * cutegen_ceil_div(N, TILE_N);
//! if cut_matters
    int64_t fewest = cutegen_max(K > 2 * $part_k ? 3 : 2, cutegen_ceil_div(K, 8192)), most = fewest, least = 0;
    for (int64_t parts = fewest; parts <= cutegen_max(fewest, cutegen_min(16, K / (4 * TILE_K))); parts++) {
        int64_t turns = cutegen_ceil_div(tiles_c * parts, processors / CLUSTER), steps = cutegen_ceil_div(K, parts * TILE_K);
        int64_t cost = turns * steps * 32 * PIECES + parts * 3 * cutegen_ceil_div(M * N, 2 * TILE_M * PIECE_N);
        if (!least || cost < least)
            least = cost, most = parts;
    }
//! else
//! if short_parts
    int64_t fewest = cutegen_max(1, cutegen_min(4, K / (8 * TILE_K)));
//! else
    int64_t fewest = 1;
//! end
    int64_t most = cutegen_max(fewest, cutegen_min(processors / CLUSTER / tiles_c, cutegen_ceil_div(K, 4 * TILE_K)));
//! end
    K = cutegen_round_up(cutegen_ceil_div(K_all, most), TILE_K);
    L = cutegen_ceil_div(K_all, K);
//! else
    int64_t K_all = K * L;
//! end

//! if both
//! if not split_k
    int64_t L_a = $a_count, step_a = $a_step, L_b = $b_count, step_b = $b_step;
//! end
//! else
    // A
//! if split_k and not fuse
    int64_t L_a = L, step_a = K * $a_unit;
//! elif not split_k
    int64_t L_a = $a_count, step_a = $a_step;
//! end
//! if fuse
    int64_t count_a = 1, flags_a = cutegen_ceil_div(M, 128) * 4 * L; // one for each 32 rows
    int32_t *guard_a = (int32_t *)cutegen_workspace(call, 16 + flags_a * 4);
    CUTEGEN_TRY(cutegen_memset(call, guard_a, 0, 16 + flags_a * 4));
//! elif a_k_major
    int64_t ld_a = cutegen_round_up(K, 8), rows_a = M * L_a;
    int64_t count_a = cutegen_min(cutegen_ceil_div(rows_a, K <= 512 ? 32 : K <= 1024 ? 16 : K <= 4096 ? 4 : 1), processors * 8);
//! else
    int64_t ld_a = cutegen_round_up(M, 64), rows_a = K * L_a;
//! if once
    int64_t strips_a = ld_a / 32, count_a = strips_a * L_a;
//! else
    int64_t deep_a = cutegen_round_up(cutegen_max(64, cutegen_ceil_div(K, 16)), 8), parts_a = cutegen_ceil_div(K, deep_a);
    int64_t strips_a = cutegen_ceil_div(M, 128), count_a = strips_a * L_a;
    int32_t *stats_a = (int32_t *)cutegen_workspace(call, L_a * parts_a * M * 16);
//! end
//! end
//! if not fuse
    uint16_t *planes_a = (uint16_t *)cutegen_workspace(call, rows_a * ld_a * 2 * 2);
    float *scale_a = (float *)cutegen_workspace(call, M * L_a * 4);
    int32_t *guard_a = (int32_t *)cutegen_workspace(call, (count_a + M * L_a) * 16); // of blocks, then of rows
//! end

    // B
//! if split_k
    int64_t L_b = L, step_b = K * $b_unit;
//! else
    int64_t L_b = $b_count, step_b = $b_step;
//! end
//! if b_k_major
//! if fuse
    int64_t ld_b = cutegen_round_up(K, 16), rows_b = N * L_b, deep = ld_b;
//! else
    int64_t ld_b = cutegen_round_up(K, 8), rows_b = N * L_b, deep = K;
//! end
    int64_t count_b = cutegen_min(cutegen_ceil_div(rows_b, K <= 512 ? 32 : K <= 1024 ? 16 : K <= 4096 ? 4 : 1), processors * 8);
//! else
//! if fuse
    int64_t ld_b = cutegen_round_up(N, 64), deep = cutegen_round_up(K, 16), rows_b = deep * L_b;
//! else
    int64_t ld_b = cutegen_round_up(N, 64), deep = K, rows_b = deep * L_b;
//! end
//! if once
    int64_t strips_b = ld_b / 32, count_b = strips_b * L_b;
//! else
    int64_t deep_b = cutegen_round_up(cutegen_max(64, cutegen_ceil_div(K, 16)), 8), parts_b = cutegen_ceil_div(K, deep_b);
    int64_t strips_b = cutegen_ceil_div(N, 128), count_b = strips_b * L_b;
    int32_t *stats_b = (int32_t *)cutegen_workspace(call, L_b * parts_b * N * 16);
//! end
//! end
    uint16_t *planes_b = (uint16_t *)cutegen_workspace(call, rows_b * ld_b * 2 * 2);
    float *scale_b = (float *)cutegen_workspace(call, N * L_b * 4);
    int32_t *guard_b = (int32_t *)cutegen_workspace(call, (count_b + N * L_b) * 16); // of blocks, then of columns

    // The splits.
//! if once and b_k_major
    uint32_t flags_b = 0;
//! elif b_k_major
    uint32_t flags_b = $b_first;
//! end
//! if once
    int64_t held = cutegen_ceil_div(K, K <= 4096 ? 512 : 1024); // blocks of a cluster
    CUTEGEN_REQUIRE(call, held <= 8, "a cluster must hold all of K");
//! end
//! if b_n_major and once
    if (K <= 4096)
        CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, (${kernel}_split_strip<8, $b_wide>), cutegen_dim3(held, strips_b, L_b),
                                      cutegen_dim3(512, 1, 1), cutegen_dim3(held, 1, 1), 0, 0, CUTEGEN_DATA(float const, B),
                                      planes_b, scale_b, guard_b, (int)N, (int)K, K_all, (int64_t)$b_slow, step_b, (int)ld_b, 1));
    else
        CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, (${kernel}_split_strip<16, $b_wide>), cutegen_dim3(held, strips_b, L_b),
                                      cutegen_dim3(512, 1, 1), cutegen_dim3(held, 1, 1), 0, 0, CUTEGEN_DATA(float const, B),
                                      planes_b, scale_b, guard_b, (int)N, (int)K, K_all, (int64_t)$b_slow, step_b, (int)ld_b, 1));
//! elif b_n_major
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (${kernel}_look_columns<$b_wide>), cutegen_dim3(strips_b, parts_b, L_b),
                               cutegen_dim3(256, 1, 1), 0, CUTEGEN_DATA(float const, B), stats_b, (int)N, (int)K, K_all,
                               (int64_t)$b_slow, step_b, (int)deep_b, 1));
//! end
//! if a_m_major and not once
    uint32_t flags_a = $a_first;
    CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, (${kernel}_look_columns<$a_wide>), cutegen_dim3(strips_a, parts_a, L_a),
                                  cutegen_dim3(256, 1, 1), one, 0, flags_a, CUTEGEN_DATA(float const, A), stats_a, (int)M,
                                  (int)K, K_all, (int64_t)$a_slow, step_a, (int)deep_a,
                                  (int)(flags_a == 0)));
//! end
//! if b_n_major and once
//! elif b_n_major
    CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, (${kernel}_split_columns<$b_wide>), cutegen_dim3(strips_b, parts_b, L_b),
                                  cutegen_dim3(256, 1, 1), one, 0, flags, CUTEGEN_DATA(float const, B),
                                  (int32_t const *)stats_b, planes_b, scale_b, guard_b, (int)N, (int)K, K_all,
                                  (int64_t)$b_slow, step_b, (int)deep_b, (int)ld_b));
//! else
    if (K <= 512)
        CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, (${kernel}_split_rows<16, $b_wide>), cutegen_dim3(count_b, 1, 1),
                                      cutegen_dim3(512, 1, 1), one, 0, flags_b, CUTEGEN_DATA(float const, B), planes_b,
                                      scale_b, guard_b, (int)N, (int)L_b, (int)K, K_all, (int64_t)$b_slow, step_b, (int)ld_b,
                                      (int)(flags_b == 0)));
    else if (K <= 1024)
        CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, (${kernel}_split_rows<32, $b_wide>), cutegen_dim3(count_b, 1, 1),
                                      cutegen_dim3(512, 1, 1), one, 0, flags_b, CUTEGEN_DATA(float const, B), planes_b,
                                      scale_b, guard_b, (int)N, (int)L_b, (int)K, K_all, (int64_t)$b_slow, step_b, (int)ld_b,
                                      (int)(flags_b == 0)));
    else if (K <= 4096)
        CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, (${kernel}_split_rows<128, $b_wide>), cutegen_dim3(count_b, 1, 1),
                                      cutegen_dim3(512, 1, 1), one, 0, flags_b, CUTEGEN_DATA(float const, B), planes_b,
                                      scale_b, guard_b, (int)N, (int)L_b, (int)K, K_all, (int64_t)$b_slow, step_b, (int)ld_b,
                                      (int)(flags_b == 0)));
    else
        CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, (${kernel}_split_rows<512, $b_wide>), cutegen_dim3(count_b, 1, 1),
                                      cutegen_dim3(512, 1, 1), one, 0, flags_b, CUTEGEN_DATA(float const, B), planes_b,
                                      scale_b, guard_b, (int)N, (int)L_b, (int)K, K_all, (int64_t)$b_slow, step_b, (int)ld_b,
                                      (int)(flags_b == 0)));
//! end
//! if fuse
//! elif a_m_major and once
    if (K <= 4096)
        CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, (${kernel}_split_strip<8, $a_wide>), cutegen_dim3(held, strips_a, L_a),
                                      cutegen_dim3(512, 1, 1), cutegen_dim3(held, 1, 1), 0, flags, CUTEGEN_DATA(float const, A),
                                      planes_a, scale_a, guard_a, (int)M, (int)K, K_all, (int64_t)$a_slow, step_a, (int)ld_a,
                                      (int)(flags == 0)));
    else
        CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, (${kernel}_split_strip<16, $a_wide>), cutegen_dim3(held, strips_a, L_a),
                                      cutegen_dim3(512, 1, 1), cutegen_dim3(held, 1, 1), 0, flags, CUTEGEN_DATA(float const, A),
                                      planes_a, scale_a, guard_a, (int)M, (int)K, K_all, (int64_t)$a_slow, step_a, (int)ld_a,
                                      (int)(flags == 0)));
//! elif a_m_major
    CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, (${kernel}_split_columns<$a_wide>), cutegen_dim3(strips_a, parts_a, L_a),
                                  cutegen_dim3(256, 1, 1), one, 0, flags, CUTEGEN_DATA(float const, A),
                                  (int32_t const *)stats_a, planes_a, scale_a, guard_a, (int)M, (int)K, K_all,
                                  (int64_t)$a_slow, step_a, (int)deep_a, (int)ld_a));
//! else
    if (K <= 512)
        CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, (${kernel}_split_rows<16, $a_wide>), cutegen_dim3(count_a, 1, 1),
                                      cutegen_dim3(512, 1, 1), one, 0, flags, CUTEGEN_DATA(float const, A), planes_a,
                                      scale_a, guard_a, (int)M, (int)L_a, (int)K, K_all, (int64_t)$a_slow, step_a, (int)ld_a,
                                      (int)(flags == 0)));
    else if (K <= 1024)
        CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, (${kernel}_split_rows<32, $a_wide>), cutegen_dim3(count_a, 1, 1),
                                      cutegen_dim3(512, 1, 1), one, 0, flags, CUTEGEN_DATA(float const, A), planes_a,
                                      scale_a, guard_a, (int)M, (int)L_a, (int)K, K_all, (int64_t)$a_slow, step_a, (int)ld_a,
                                      (int)(flags == 0)));
    else if (K <= 4096)
        CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, (${kernel}_split_rows<128, $a_wide>), cutegen_dim3(count_a, 1, 1),
                                      cutegen_dim3(512, 1, 1), one, 0, flags, CUTEGEN_DATA(float const, A), planes_a,
                                      scale_a, guard_a, (int)M, (int)L_a, (int)K, K_all, (int64_t)$a_slow, step_a, (int)ld_a,
                                      (int)(flags == 0)));
    else
        CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, (${kernel}_split_rows<512, $a_wide>), cutegen_dim3(count_a, 1, 1),
                                      cutegen_dim3(512, 1, 1), one, 0, flags, CUTEGEN_DATA(float const, A), planes_a,
                                      scale_a, guard_a, (int)M, (int)L_a, (int)K, K_all, (int64_t)$a_slow, step_a, (int)ld_a,
                                      (int)(flags == 0)));
//! end
//! end

    // The product.
//! if fuse or both
    struct cutegen_map_spec spec;
    for (int i = 0; i < 5; i++)
        spec.dims[i] = 1, spec.strides_bytes[i] = 0, spec.box[i] = 1, spec.element_strides[i] = 1;
    spec.data = CUTEGEN_DATA(float, A);
    spec.dtype = CUTEGEN_F32;
    spec.rank = 3;
//! if split_k
    spec.dims[0] = K_all, spec.dims[1] = M;
    spec.strides_bytes[0] = $a_slow * 4, spec.strides_bytes[1] = M * $a_slow * 4;
//! else
    spec.dims[0] = K, spec.dims[1] = M, spec.dims[2] = L_a;
    spec.strides_bytes[0] = $a_slow * 4;
    spec.strides_bytes[1] = (step_a > 0 ? step_a : M * $a_slow) * 4;
//! end
    spec.box[0] = 32, spec.box[1] = TILE_M;
    spec.swizzle = CUTEGEN_SWIZZLE_128;
    spec.fill = CUTEGEN_FILL_ZERO;
    spec.l2 = CUTEGEN_L2_256;
    struct cutegen_map map_a = cutegen_map_tiled(call, &spec);
//! else
    struct cutegen_map map_a = plane_map(call, planes_a, A_K_MAJOR, M, K, L_a, ld_a, TILE_M);
//! end
//! if both
    spec.data = CUTEGEN_DATA(float, B);
//! if b_k_major and split_k
    spec.dims[0] = K_all, spec.dims[1] = N;
    spec.strides_bytes[0] = $b_slow * 4, spec.strides_bytes[1] = N * $b_slow * 4;
//! elif b_k_major
    spec.dims[0] = K, spec.dims[1] = N, spec.dims[2] = L_b;
    spec.strides_bytes[0] = $b_slow * 4;
    spec.strides_bytes[1] = (step_b > 0 ? step_b : N * $b_slow) * 4;
//! elif split_k
    spec.dims[0] = N, spec.dims[1] = K_all;
    spec.strides_bytes[0] = $b_slow * 4, spec.strides_bytes[1] = K_all * $b_slow * 4;
    spec.box[0] = TILE_N, spec.box[1] = TILE_K;
    spec.swizzle = CUTEGEN_SWIZZLE_NONE;
//! else
    spec.dims[0] = N, spec.dims[1] = K, spec.dims[2] = L_b;
    spec.strides_bytes[0] = $b_slow * 4;
    spec.strides_bytes[1] = (step_b > 0 ? step_b : K * $b_slow) * 4;
    spec.box[0] = TILE_N, spec.box[1] = TILE_K;
    spec.swizzle = CUTEGEN_SWIZZLE_NONE;
//! end
    struct cutegen_map map_b = cutegen_map_tiled(call, &spec);
//! else
    struct cutegen_map map_b = plane_map(call, planes_b, B_K_MAJOR, N, deep, L_b, ld_b, PIECE_N);
//! end
    int64_t tiles = cutegen_ceil_div(M, TILE_M * CLUSTER) * cutegen_ceil_div(N, TILE_N) * L;
//! if split_k
    float *partial = (float *)cutegen_workspace(call, L * M * N * 4);
//! end
//! if planes
    const struct part_planes of_parts = *((struct pooled_call *)call)->of_parts;
    CUTEGEN_REQUIRE(call, N == of_parts.columns, "the columns of C are written into the plan");
//! end
//! if store and not planes or both
    struct cutegen_map_spec spec_c;
    for (int i = 0; i < 5; i++)
        spec_c.dims[i] = 1, spec_c.strides_bytes[i] = 0, spec_c.box[i] = 1, spec_c.element_strides[i] = 1;
    spec_c.dtype = CUTEGEN_F32;
    spec_c.rank = 3;
    spec_c.dims[0] = N, spec_c.dims[1] = M, spec_c.dims[2] = L;
//! if split_k
    spec_c.data = partial;
    spec_c.strides_bytes[0] = N * 4, spec_c.strides_bytes[1] = M * N * 4;
//! else
    spec_c.data = CUTEGEN_DATA(float, C);
    spec_c.strides_bytes[0] = $c_slow * 4, spec_c.strides_bytes[1] = $c_step * 4;
//! end
    spec_c.box[0] = 32, spec_c.box[1] = 16;
    spec_c.swizzle = CUTEGEN_SWIZZLE_128;
    spec_c.fill = CUTEGEN_FILL_ZERO;
    spec_c.l2 = CUTEGEN_L2_NONE;
    struct cutegen_map map_c = cutegen_map_tiled(call, &spec_c);
//! end
    int64_t part_k = K;
    int64_t blocks = cutegen_min(processors / CLUSTER, tiles) * CLUSTER;
//! if both
    int64_t count_a = blocks, count_b = blocks;
    int32_t *guard_a = (int32_t *)cutegen_workspace(call, blocks * 16), *guard_b = (int32_t *)cutegen_workspace(call, blocks * 16);
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, ${kernel}_product, cutegen_dim3(blocks, 1, 1), cutegen_dim3(512, 1, 1), SMEM_BYTES, map_a, map_b,
//! if split_k
                               map_c, guard_a, guard_b, (int)K, K_all, (int)L, $args));
//! else
                               map_c, guard_a, guard_b, (int)L, $args));
//! end
//! else
    CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, ${kernel}_product, cutegen_dim3(blocks, 1, 1), cutegen_dim3(384, 1, 1),
                                  cutegen_dim3(CLUSTER, 1, 1), SMEM_BYTES, flags, map_a, map_b,
//! if store and not planes
                                  map_c,
//! end
//! if planes
                                  of_parts.planes, of_parts.lost, of_parts.from, of_parts.until,
//! end
//! if fuse
                                  guard_a, (int32_t const *)guard_b, (int)count_b,
//! else
                                  (float const *)scale_a,
//! end
                                  (float const *)scale_b,
//! if split_k
                                  partial, (int)K,
//! end
                                  (int)L, $args));
//! end
//! if split_k
    K = K_all;
    CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, ${kernel}_repeat, cutegen_dim3(processors, 1, 1), cutegen_dim3(256, 1, 1), one, 0, flags,
                                  (int32_t const *)guard_a, (int32_t const *)guard_b, (int)count_a, (int)count_b, partial,
                                  (int)part_k, (int)L, $args));
    return CUTEGEN_LAUNCH_EX(call, ${kernel}_add_parts, cutegen_dim3(cutegen_min(cutegen_ceil_div(M * N, 256), processors * 8), 1, 1),
                             cutegen_dim3(256, 1, 1), one, 0, flags, (float const *)partial, (int)L, $args);
//! else
    return CUTEGEN_LAUNCH_EX(call, ${kernel}_repeat, cutegen_dim3(processors, 1, 1), cutegen_dim3(256, 1, 1), one, 0, flags,
//! if planes
                             of_parts.lost,
//! end
                             (int32_t const *)guard_a, (int32_t const *)guard_b, (int)count_a, (int)count_b, (int)part_k, (int)L,
                             $args);
//! end
//! else
    int64_t tiles = cutegen_ceil_div(M, 128) * cutegen_ceil_div(N, 128) * L;
    return CUTEGEN_LAUNCH(call, ${kernel}_plain, cutegen_dim3(cutegen_min(tiles, processors * 2), 1, 1),
                          cutegen_dim3(256, 1, 1), 0, (int)L, $args);
//! end
}
