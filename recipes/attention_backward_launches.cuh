// attention_backward_launches.cuh - launches of the forms for sm_80. Included by the recipes of gradients.
//! if tensor
    int64_t tiles = cutegen_ceil_div(queries, 64) * $heads;
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, ${kernel}_gradient<NUMBERS>, cutegen_dim3(tiles, 1, 1), cutegen_dim3(128, 1, 1),
                               GRADIENT_BYTES, (float *)lse, (float *)delta, (int)padded, $args));
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, ${kernel}_gradient<OF_KEYS>, cutegen_dim3(cutegen_ceil_div(keys, 64) * $key_heads, 1, 1),
                               cutegen_dim3(128, 1, 1), GRADIENT_BYTES, (float *)lse, (float *)delta, (int)padded, $args));
    return CUTEGEN_LAUNCH(call, ${kernel}_gradient<OF_QUERIES>, cutegen_dim3(tiles, 1, 1), cutegen_dim3(128, 1, 1),
                          GRADIENT_BYTES, (float *)lse, (float *)delta, (int)padded, $args);
//! else
    int64_t tiles = cutegen_ceil_div(queries, WARPS) * $heads;
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, ${kernel}_numbers, cutegen_dim3(tiles, 1, 1), cutegen_dim3(WARPS * 32, 1, 1), 0,
                               (float *)lse, (float *)delta, (int)padded, $args));
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, ${kernel}_keys, cutegen_dim3(cutegen_ceil_div(keys, WARPS) * $key_heads, 1, 1),
                               cutegen_dim3(WARPS * 32, 1, 1), 0, (float const *)lse, (float const *)delta, (int)padded,
                               $args));
    return CUTEGEN_LAUNCH(call, ${kernel}_queries, cutegen_dim3(tiles, 1, 1), cutegen_dim3(WARPS * 32, 1, 1), 0,
                          (float const *)lse, (float const *)delta, (int)padded, $args);
//! end
