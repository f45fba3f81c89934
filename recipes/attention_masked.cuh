// attention_masked.cuh - scores at the border of what a row sees. Included by the recipes for sm_90a.
                    CUTE_UNROLL
                    for (int i = 0; i < size(scores); ++i) {
                        [[maybe_unused]] int const n = block * TILE_N + i / 4 * 8 + lane % 4 * 2 + i % 2, m = row + i / 2 % 2 * 8;
//! if scaled and causal
                        if (n >= keys || n > m)
                            scores(i) = MINUS_INFINITY;
//! elif scaled
                        if (n >= keys)
                            scores(i) = MINUS_INFINITY;
//! elif causal
                        scores(i) = n < keys && n <= m && m < queries ? ${kernel}_score2(scores(i)$score_args) : UNSEEN;
//! else
                        scores(i) = n < keys && m < queries ? ${kernel}_score2(scores(i)$score_args) : UNSEEN;
//! end
                    }
