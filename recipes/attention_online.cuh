// attention_online.cuh - weights of a block relative to the maxima so far, and their sums. Included by the recipes for sm_90a.
                CUTE_UNROLL
                for (int r = 0; r < 2; ++r) {
                    float x = scores(r * 2), y = scores(r * 2 + 1), u = 0.0f, w = 0.0f;
                    CUTE_UNROLL
                    for (int i = 4; i < size(scores); i += 4) {
                        x = fmaxf(x, scores(i + r * 2));
                        y = fmaxf(y, scores(i + r * 2 + 1));
                    }
                    x = fmaxf(x, y);
                    x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
                    x = fmaxf(x, __shfl_xor_sync(~0u, x, 2));
                    float const top = fmaxf(best[r], x * SCALE), base = top > MINUS_INFINITY ? top : 0.0f;
                    before[r] = quick_exp2(best[r] - base);
                    best[r] = top;
//! if close
                    if (__all_sync(~0u, fabsf(base) < 16.0f)) { // then the weight of the maximum is 1 but for 1e-6
                        CUTE_UNROLL
                        for (int i = 0; i < size(scores); i += 4) {
                            float &a = scores(i + r * 2), &b = scores(i + r * 2 + 1);
                            a = quick_exp2(fmaf(a, SCALE, -base));
                            b = quick_exp2(fmaf(b, SCALE, -base));
                            u += a;
                            w += b;
                        }
                    } else
//! end
                    CUTE_UNROLL
                    for (int i = 0; i < size(scores); i += 4) {
                        float &a = scores(i + r * 2), &b = scores(i + r * 2 + 1);
                        a = quick_exp2(__fmul_rn(a, SCALE) - base); // not fused: the maximum has a weight of exactly 1
                        b = quick_exp2(__fmul_rn(b, SCALE) - base);
                        u += a;
                        w += b;
                    }
                    sum[r] = fmaf(sum[r], before[r], u + w);
                }
