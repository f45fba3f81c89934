// gemm_thin_split.cuh - how many parts K is split into. Included by the recipes of thin products for Hopper.
    for (int64_t p = 1; p <= cutegen_min(64, cutegen_max(1, blocks_k / 4)); p++) {
        int64_t cost = cutegen_ceil_div(tiles * p, processors) * (cutegen_ceil_div(blocks_k, p) + 4) * 4096 +
                       p * $h_size * $s_size / (2 * processors);
        if (!least || cost < least)
            least = cost, parts = p;
    }
    parts = cutegen_ceil_div(blocks_k, cutegen_ceil_div(blocks_k, parts));
