// gemm_epilogue.cuh - what becomes of the sums of a tile: unscaled, finished, stored; a part of gemm_sm90.cu.
            // Unscale. A thread has rows m and m + 8, and two neighbouring columns of every eight.
            int const l = w.l;
            int const row = w.m + rank * TILE_M + half * 64 + warp * 16, m0 = row + order, n0 = w.n + lane % 4 * 2;
//! if store
//! if not split_k
//! each leaf
            Tensor m$X = make_tensor(make_gmem_ptr($x$batch), make_shape(M, N), make_stride($m, $n)); // (M,N)
//! end
//! end
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
                float2 f[PIECE_N / 8]; // all at once: one latency
                CUTE_UNROLL
                for (int i = 0; i < PIECE_N / 8; ++i)
                    f[i] = fetch_scales(scale_b + $b_l * N + cute::min(n0 + piece * PIECE_N + i * 8, N - 2));
                CUTE_UNROLL
                for (int j = 0; j < PIECE_N / 32; ++j) { // 32 columns; each warp goes its own way
                    int const place = (piece * (PIECE_N / 32) + j) % STORES;
                    if (lane == 0)
                        tma_store_wait<STORES - 1>(); // what was here before is on its way
                    __syncwarp();
                    CUTE_UNROLL
                    for (int i = 0; i < 16; i += 2) {
                        int const q = i / 2 % 2;
//! if cut_matters
                        float x = whole_sum(sum(j * 16 + i, piece), cut[q], f[j * 4 + i / 4].x) * fabsf(fa[q]) * fabsf(f[j * 4 + i / 4].x);
                        float y = whole_sum(sum(j * 16 + i + 1, piece), cut[q], f[j * 4 + i / 4].y) * fabsf(fa[q]) * fabsf(f[j * 4 + i / 4].y);
//! else
                        float x = sum(j * 16 + i, piece) * fa[q] * f[j * 4 + i / 4].x;
                        float y = sum(j * 16 + i + 1, piece) * fa[q] * f[j * 4 + i / 4].y;
//! end
//! if epilogue and not split_k
                        int const m = m0 + q * 8, n = n0 + piece * PIECE_N + j * 32 + i / 4 * 8;
                        if (m < M && n < N) {
                            x = [&](int m, int n) { return ${kernel}_finish(x$finish); }(m, n);
                            y = [&](int m, int n) { return ${kernel}_finish(y$finish); }(m, n + 1);
                        }
//! end
                        sC(order + q * 8, i / 4 * 4 + lane % 4, place) = make_float2(x, y);
                    }
                    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                    __syncwarp();
                    if (lane == 0) {
                        store_part(&map_c, smem_c + place * 16 * 16, w.n + piece * PIECE_N + j * 32, row, l);
                        tma_store_arrive();
                    }
                }
            }
            __syncwarp(); // wgmma is for whole warps
//! else
//! if split_k
            Tensor mC = make_tensor(make_gmem_ptr(partial + int64_t(l) * M * N), make_shape(M, N),
                                    make_stride(int64_t(N), _1{})); // (M,N)
//! else
            Tensor mC = make_tensor(make_gmem_ptr(C$c_batch), make_shape(M, N), make_stride($c_m, $c_n)); // (M,N)
//! each leaf
            Tensor m$X = make_tensor(make_gmem_ptr($x$batch), make_shape(M, N), make_stride($m, $n)); // (M,N)
//! end
//! end
            bool const whole = row + 16 <= M && w.n + TILE_N <= N;
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
                CUTE_UNROLL
                for (int i = 0; i < PIECE_N / 2; i += 2) {
                    int const m = m0 + i / 2 % 2 * 8, n = n0 + piece * PIECE_N + i / 4 * 8;
                    float const f0 = n < N ? __ldg(scale_b + $b_l * N + n) : 0.0f;
                    float const f1 = n + 1 < N ? __ldg(scale_b + $b_l * N + n + 1) : 0.0f;
//! if cut_matters
                    sum(i, piece) = whole_sum(sum(i, piece), cut[i / 2 % 2], f0) * fabsf(fa[i / 2 % 2]) * fabsf(f0);
                    sum(i + 1, piece) = whole_sum(sum(i + 1, piece), cut[i / 2 % 2], f1) * fabsf(fa[i / 2 % 2]) * fabsf(f1);
//! else
                    sum(i, piece) = sum(i, piece) * fa[i / 2 % 2] * f0;
                    sum(i + 1, piece) = sum(i + 1, piece) * fa[i / 2 % 2] * f1;
//! end
//! if epilogue and not split_k
                    if (whole || (m < M && n < N))
                        sum(i, piece) = [&](int m, int n) { return ${kernel}_finish(sum(i, piece)$finish); }(m, n);
                    if (whole || (m < M && n + 1 < N))
                        sum(i + 1, piece) = [&](int m, int n) { return ${kernel}_finish(sum(i + 1, piece)$finish); }(m, n + 1);
//! end
                }
            }
            bool const aligned = int64_t(stride<1>(mC)) == 1 && int64_t(stride<0>(mC)) % 4 == 0;
            if (whole && aligned) {
                // Neighbouring lanes exchange, so that four of them store 64 bytes of a row.
                bool const odd = lane % 2;
                float *to = &mC(m0, w.n + odd * 8 + lane / 2 % 2 * 4);
                CUTE_UNROLL
                for (int piece = 0; piece < PIECES; ++piece) {
                    CUTE_UNROLL
                    for (int i = 0; i < PIECE_N / 2; i += (i % 4 ? 6 : 2)) {
                        float const x0 = __shfl_xor_sync(~0u, odd ? sum(i, piece) : sum(i + 4, piece), 1);
                        float const x1 = __shfl_xor_sync(~0u, odd ? sum(i + 1, piece) : sum(i + 5, piece), 1);
                        float4 const v = odd ? make_float4(x0, x1, sum(i + 4, piece), sum(i + 5, piece))
                                             : make_float4(sum(i, piece), sum(i + 1, piece), x0, x1);
                        *reinterpret_cast<float4 *>(to + i % 4 * 4 * stride<0>(mC) + piece * PIECE_N + i / 4 * 8) = v;
                    }
                }
            } else {
                // Lanes of different rows exchange 8x8 values, so that a warp stores 32 columns of
                // one row.
                int const place = lane / 4, n = w.n + place / 2 * 8 + lane % 4 * 2 + place % 2;
                CUTE_UNROLL
                for (int piece = 0; piece < PIECES; ++piece) {
                    CUTE_UNROLL
                    for (int j = 0; j < PIECE_N / 16; ++j) { // 32 columns, rows 0 to 7 or 8 to 15
                        float v[8];
                        CUTE_UNROLL
                        for (int i = 0; i < 8; ++i)
                            v[i] = sum((j / 2 * 4 + i / 2) * 4 + j % 2 * 2 + i % 2, piece);
                        CUTE_UNROLL
                        for (int bit = 1; bit < 8; bit *= 2) {
                            CUTE_UNROLL
                            for (int i = 0; i < 8; ++i) {
                                if (i & bit)
                                    continue;
                                float const x = __shfl_xor_sync(~0u, place & bit ? v[i] : v[i | bit], bit * 4);
                                if (place & bit)
                                    v[i] = x;
                                else
                                    v[i | bit] = x;
                            }
                        }
                        CUTE_UNROLL
                        for (int i = 0; i < 8; ++i) {
//! if fuse
                            int const m = row + j % 2 * 8 + i / 2 + i % 2 * 4;
//! else
                            int const m = row + j % 2 * 8 + i;
//! end
                            if (m < M && n + piece * PIECE_N + j / 2 * 32 < N)
                                mC(m, n + piece * PIECE_N + j / 2 * 32) = v[i];
                        }
                    }
                }
            }
//! end
