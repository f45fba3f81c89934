// gemm_planes.cuh - a tile's sums, unscaled, finished, and written as fp16 parts for attention; a part of gemm_sm90.cu.
            // Two planes as attention_split_sm90.cu reads them: x * 2^e = hi + lo, e for 64 rows of a head. A thread has rows
            // m and m + 8, and two neighbouring columns of every eight; a warpgroup has all 64 rows.
            [[maybe_unused]] int const l = w.l;
            int const row = w.m + rank * TILE_M + half * 64 + warp * 16, m0 = row + order, n0 = w.n + lane % 4 * 2;
//! each leaf
            Tensor m$X = make_tensor(make_gmem_ptr($x$batch), make_shape(M, N), make_stride($m, $n)); // (M,N)
//! end
            float *plane_scales = reinterpret_cast<float *>(planes + 2 * int64_t(M) * N);
            float fa[2] = {1.0f, 1.0f};
//! if not fuse
            CUTE_UNROLL
            for (int q = 0; q < 2; ++q)
                fa[q] = m0 + q * 8 < M ? __ldg(scale_a + $a_l * M + m0 + q * 8) : 0.0f;
//! end
//! if cut_matters and not fuse
            float const cut[2] = {fa[0] < 0.0f ? CUT : 0.0f, fa[1] < 0.0f ? CUT : 0.0f};
//! end
            CUTE_UNROLL
            for (int piece = 0; piece < PIECES; ++piece) {
                unsigned top[HEADS] = {}; // bits of the largest magnitude of a head
                {
                    float2 f[PIECE_N / 8]; // all at once: one latency
                    CUTE_UNROLL
                    for (int i = 0; i < PIECE_N / 8; ++i)
                        f[i] = fetch_scales(scale_b + $b_l * N + cute::min(n0 + piece * PIECE_N + i * 8, N - 2));
                    CUTE_UNROLL
                    for (int i = 0; i < PIECE_N / 2; i += 2) {
                        int const q = i / 2 % 2, m = m0 + q * 8, n = n0 + piece * PIECE_N + i / 4 * 8;
//! if cut_matters
                        float x = whole_sum(sum(i, piece), cut[q], f[i / 4].x) * fabsf(fa[q]) * fabsf(f[i / 4].x);
                        float y = whole_sum(sum(i + 1, piece), cut[q], f[i / 4].y) * fabsf(fa[q]) * fabsf(f[i / 4].y);
//! else
                        float x = sum(i, piece) * fa[q] * f[i / 4].x;
                        float y = sum(i + 1, piece) * fa[q] * f[i / 4].y;
//! end
                        if (m < M && n < N) {
//! if epilogue
                            x = [&](int m, int n) { return ${kernel}_finish(x$finish); }(m, n);
                            y = [&](int m, int n) { return ${kernel}_finish(y$finish); }(m, n + 1);
//! end
                        } else {
                            x = y = 0.0f;
                        }
                        sum(i, piece) = x, sum(i + 1, piece) = y;
                        unsigned &t = top[i / 4 * 8 / PLANE_HEAD];
                        t = cute::max(t, cute::max(__float_as_uint(fabsf(x)), __float_as_uint(fabsf(y))));
                    }
                }
                CUTE_UNROLL
                for (int h = 0; h < HEADS; ++h) {
                    top[h] = __reduce_max_sync(~0u, top[h]);
                    if (lane == 0)
                        tops[turn][half][warp][h] = top[h];
                }
                asm volatile("bar.sync %0, 128;" ::"r"(4 + half) : "memory");
                float lift[HEADS]; // powers of two: the largest comes to [2^14,2^15)
                unsigned least[HEADS]; // bits of 2^-16 of the largest, about
                CUTE_UNROLL
                for (int h = 0; h < HEADS; ++h) {
                    unsigned peak = 0;
                    CUTE_UNROLL
                    for (int i = 0; i < 4; ++i)
                        peak = cute::max(peak, tops[turn][half][i][h]);
                    // The exponent is held in a range, as attention_planes.cuh says. That of zeros is the smallest, for the
                    // larger one of V's two scales is that of weights.
                    int const e = peak == 0 ? 97 : int(peak >> 23), used = cute::min(cute::max(e, 97), 157);
                    int const n = w.n + piece * PIECE_N + h * PLANE_HEAD, first = row / 64 * 64;
                    lift[h] = __uint_as_float(unsigned(268 - used) << 23);
                    least[h] = unsigned(used - 16) << 23;
                    if (thread == 0 && first < M && n < N) {
                        plane_scales[int64_t(first / 64) * (N / PLANE_HEAD) + n / PLANE_HEAD] = __uint_as_float(unsigned(used - 14) << 23);
                        if (e != used)
                            lost[0] = 1;
                    }
                }
                turn ^= 1;
                if (w.n + (piece + 1) * PIECE_N > v_from && w.n + piece * PIECE_N < v_until) {
                    // Bits are lost where all of a column of V lies far below the largest of its head: a bit for each column.
                    unsigned high = 0, some = 0;
                    CUTE_UNROLL
                    for (int i = 0; i < PIECE_N / 2; ++i) {
                        unsigned const bits = __float_as_uint(fabsf(sum(i, piece)));
                        high |= unsigned(bits >= least[i / 4 * 8 / PLANE_HEAD]) << (i / 4 * 2 + i % 2);
                        some |= unsigned(bits != 0) << (i / 4 * 2 + i % 2);
                    }
                    CUTE_UNROLL
                    for (int other = 4; other < 32; other *= 2) {
                        high |= __shfl_xor_sync(~0u, high, other);
                        some |= __shfl_xor_sync(~0u, some, other);
                    }
                    if (lane < 4)
                        marks[half][warp][lane][0] = high, marks[half][warp][lane][1] = some;
                    asm volatile("bar.sync %0, 128;" ::"r"(4 + half) : "memory");
                    if (thread < 4) {
                        high = some = 0;
                        CUTE_UNROLL
                        for (int i = 0; i < 4; ++i)
                            high |= marks[half][i][thread][0], some |= marks[half][i][thread][1];
                        CUTE_UNROLL
                        for (int h = 0; h < HEADS; ++h) {
                            int const n = w.n + piece * PIECE_N + h * PLANE_HEAD;
                            unsigned const mine = (~0u >> (32 - PLANE_HEAD / 4)) << (h * PLANE_HEAD / 4);
                            if (n >= v_from && n < v_until && (some & ~high & mine))
                                lost[0] = 1;
                        }
                    }
                }
                CUTE_UNROLL
                for (int j = 0; j < PIECE_N / 32; ++j) { // 32 columns of two rows: 64 bytes of each plane
                    CUTE_UNROLL
                    for (int q = 0; q < 2; ++q) {
                        unsigned hi[4], lo[4];
                        float const up = lift[j * 32 / PLANE_HEAD];
                        CUTE_UNROLL
                        for (int i = 0; i < 4; ++i)
                            plane_pair(sum(j * 16 + i * 4 + q * 2, piece) * up, sum(j * 16 + i * 4 + q * 2 + 1, piece) * up, hi[i], lo[i]);
                        turn_four(hi, lane);
                        turn_four(lo, lane);
                        int const m = m0 + q * 8, n = w.n + piece * PIECE_N + j * 32 + lane % 4 * 8;
                        half_t *to = planes + int64_t(m) * N + n;
                        if (m < M && n < N) {
                            *reinterpret_cast<uint4 *>(to) = make_uint4(hi[0], hi[1], hi[2], hi[3]);
                            *reinterpret_cast<uint4 *>(to + int64_t(M) * N) = make_uint4(lo[0], lo[1], lo[2], lo[3]);
                        }
                    }
                }
            }
            __syncwarp(); // wgmma is for whole warps
