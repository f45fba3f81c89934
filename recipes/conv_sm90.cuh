// conv_sm90.cuh - the product by wgmma, tiles brought by TMA; a part of convolution.cu.

// (ROWS,ROW,STAGES): rows of a ring whose slots have SLOT elements, in the order in which TMA brings and wgmma reads them
template <int ROWS, int SLOT, int STAGES>
CUTE_HOST_DEVICE constexpr auto ring_layout()
{
    using Atom = conditional_t<ROW == 32, GMMA::Layout_K_SW64_Atom<Element>, GMMA::Layout_K_SW128_Atom<Element>>;
    auto const tile = tile_to_shape(Atom{}, Shape<Int<ROWS>, Int<ROW>>{});
    return composition(tile.layout_a(), tile.offset(), make_layout(get<0>(tile.layout_b()), get<1>(tile.layout_b()), make_layout(Int<STAGES>{}, Int<SLOT>{})));
}

// A place in a ring, and the parity of its turn.
template <int STAGES>
struct Turn {
    int slot, parity;
    __device__ void next()
    {
        if (++slot == STAGES)
            slot = 0, parity ^= 1;
    }
};

// Operands in shared memory, `rows` rows further on.
template <class Fragment>
__device__ inline auto further(Fragment const &f, int rows)
{
    return make_tensor(f.data() + rows * (ROW / 8), f.layout());
}

__global__ void __launch_bounds__(384, 1)
//! if bulk
    ${kernel}_product(const __grid_constant__ CUtensorMap map_x, const __grid_constant__ CUtensorMap map_halo, const __grid_constant__ CUtensorMap map_w, const __grid_constant__ CUtensorMap map_y, float const *unscale, unsigned const *state, int phase_d, int phase_h, int phase_w, $params)
//! elif split_sums
    ${kernel}_product(const __grid_constant__ CUtensorMap map_x, const __grid_constant__ CUtensorMap map_halo, const __grid_constant__ CUtensorMap map_w, float *partial, float const *unscale, unsigned const *state, int N)
//! else
    ${kernel}_product(const __grid_constant__ CUtensorMap map_x, const __grid_constant__ CUtensorMap map_halo, const __grid_constant__ CUtensorMap map_w, float const *unscale, unsigned const *state, int phase_d, int phase_h, int phase_w, $params)
//! end
{
    extern __shared__ unsigned char memory[];
    constexpr uint64_t HINT = 0x1000000000000000; // evict as usual
    unsigned const skip = -cast_smem_ptr_to_uint(memory) % 1024; // tiles start on 1024 bytes
    Element *smem_p = reinterpret_cast<Element *>(memory + skip), *smem_w = smem_p + STAGES_P * SLOT_P;
    float *smem_y = reinterpret_cast<float *>(smem_w + STAGES_W * SLOT_W);
    uint64_t *full_p = reinterpret_cast<uint64_t *>(smem_y + OUT_BYTES / 4), *empty_p = full_p + STAGES_P;
    uint64_t *full_w = empty_p + STAGES_P, *empty_w = full_w + STAGES_W;
//! if split_sums
    constexpr Phase phase = {0, 0, 0};
//! else
    Phase const phase = {phase_d, phase_h, phase_w};
//! end
    int const group = threadIdx.x / 128, pixels = N * WALK;
    int const tiles_k = (ROWS + TILE_K - 1) / TILE_K, tiles = (pixels + TILE_P - 1) / TILE_P * tiles_k;

    if (threadIdx.x < STAGES_P + STAGES_W) { // a thread for each slot
        bool const of_p = threadIdx.x < STAGES_P;
        int const i = of_p ? threadIdx.x : threadIdx.x - STAGES_P;
        initialize_barrier(of_p ? full_p[i] : full_w[i], 1);
        initialize_barrier(of_p ? empty_p[i] : empty_w[i], 2);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
//! if overlap
    cutegen_wait_for_earlier();
    cutegen_let_next_begin();
//! end
//! if not narrow
    bool const again = state[1] != 0; // the split may have lost bits that matter
//! if split_sums
    if (again)
        return;
//! else
    if (again) {
        if (phase.d + phase.h + phase.w == 0)
            every_result($names);
        return;
    }
//! end
//! end

    if (group == 0) { // one thread fetches
        cutlass::arch::warpgroup_reg_dealloc<24>();
        Turn<STAGES_P> at_p = {0, 1};
        Turn<STAGES_W> at_w = {0, 1};
        auto const fetch_pixels = [&](int row, int chunk) {
            Element *to = smem_p + at_p.slot * SLOT_P;
            wait_barrier(empty_p[at_p.slot], at_p.parity);
            set_barrier_transaction_bytes(full_p[at_p.slot], SLOT_P * sizeof(Element));
            for (int i = 0; i < TILE_P; i += BOX_P)
                SM90_TMA_LOAD_2D::copy(&map_x, &full_p[at_p.slot], HINT, to + i * ROW, chunk * ROW, row + i);
            if constexpr (HALO > 0)
                SM90_TMA_LOAD_2D::copy(&map_halo, &full_p[at_p.slot], HINT, to + TILE_P * ROW, chunk * ROW, row + TILE_P);
            at_p.next();
        };
        auto const fetch_weights = [&](int k, int step) {
            wait_barrier(empty_w[at_w.slot], at_w.parity);
            set_barrier_transaction_bytes(full_w[at_w.slot], SLOT_W * sizeof(Element));
            SM90_TMA_LOAD_2D::copy(&map_w, &full_w[at_w.slot], HINT, smem_w + at_w.slot * SLOT_W, step * ROW, k);
            at_w.next();
        };
//! if split_sums
        for (int t = blockIdx.x; threadIdx.x == 0 && t < tiles * SPLITS; t += gridDim.x) {
            int const part = t / tiles, k0 = t % tiles_k * TILE_K, pixel0 = t % tiles / tiles_k * TILE_P;
#pragma unroll 1
            for (int slot = SLOTS * part / SPLITS; slot < SLOTS * (part + 1) / SPLITS; ++slot) {
                int const c = slot % CHUNKS, line = slot / CHUNKS / (WALK_TAPS_W / RUN), first = slot / CHUNKS % (WALK_TAPS_W / RUN);
                Tap const d = tap_d(line / TAPS_H, 0), h = tap_h(line % TAPS_H, 0);
//! if share and transposed
                Tap const v = tap_w(RUN - 1, 0); // the one that begins first
//! else
                Tap const v = tap_w(first, 0);   // the one that begins first
//! end
                fetch_pixels(pixel0 + row_of(d, h, v, N), c);
#pragma unroll 1
                for (int s = 0; s < RUN; ++s)
                    fetch_weights(k0, (line * WALK_TAPS_W + first + s) * CHUNKS + c);
            }
        }
//! else
        for (int t = blockIdx.x; threadIdx.x == 0 && t < tiles; t += gridDim.x) {
            int const k0 = t % tiles_k * TILE_K, pixel0 = t / tiles_k * TILE_P;
//! if grouped
            int const chunk0 = k0 / (ROWS / GROUPS) * CHUNKS;
//! else
            constexpr int chunk0 = 0;
//! end
#pragma unroll 1
            for (int i = 0; i < TAPS_D * TAPS_H; ++i) {
                Tap const d = tap_d(i / TAPS_H, phase.d), h = tap_h(i % TAPS_H, phase.h);
                if (!d.there || !h.there)
                    continue;
//! if share
//! if transposed and not interleaved
                Tap const v = tap_w(RUN - 1, phase.w); // the one that begins first
//! else
                Tap const v = tap_w(0, phase.w);       // the one that begins first
//! end
#pragma unroll 1
                for (int c = 0; c < CHUNKS; ++c) {
                    fetch_pixels(pixel0 + row_of(d, h, v, N), chunk0 + c);
#pragma unroll 1
                    for (int s = 0; s < RUN; ++s)
                        fetch_weights(k0, (i * WALK_TAPS_W + s) * CHUNKS + c);
                }
//! else
#pragma unroll 1
                for (int s = 0; s < WALK_TAPS_W; ++s) {
                    Tap const v = tap_w(s, phase.w);
                    if (!v.there)
                        continue;
#pragma unroll 1
                    for (int c = 0; c < CHUNKS; ++c) {
                        fetch_pixels(pixel0 + row_of(d, h, v, N), chunk0 + c);
                        fetch_weights(k0, (i * WALK_TAPS_W + s) * CHUNKS + c);
                    }
                }
//! end
            }
        }
//! end
    } else { // two warpgroups compute
        cutlass::arch::warpgroup_reg_alloc<240>();
        int const half = group - 1, thread = threadIdx.x % 128, lane = threadIdx.x % 32, warp = thread / 32;
//! if not split_sums
        int const steps = taps_of(phase) * CHUNKS;
//! end
        auto mma = make_tiled_mma(SM90_64x128x16_F32${wgmma_type}_SS<GMMA::Major::K, GMMA::Major::K>{});
        auto thr = mma.get_slice(thread);
        Tensor sW = make_tensor(make_smem_ptr(smem_w + (TILE_K == 128 ? half * 64 * ROW : 0)), ring_layout<64, SLOT_W, STAGES_W>());             // (64,ROW,STAGES_W)
        Tensor sP = make_tensor(make_smem_ptr(smem_p + (TILE_K == 128 ? 0 : half * PIECES * PIECE * ROW)), ring_layout<PIECE, SLOT_P, STAGES_P>()); // (PIECE,ROW,STAGES_P)
        Tensor tCrW = thr.partition_fragment_A(sW); // (MMA,1,ROW/16,STAGES_W)
        Tensor tCrP = thr.partition_fragment_B(sP); // (MMA,1,ROW/16,STAGES_P)
        Tensor sum = make_tensor<float>(Shape<Int<PIECE / 2>, Int<PIECES>>{}); // (MMA,PIECES)
//! if split_sums
        Tensor mPart = make_tensor(make_gmem_ptr(partial), make_shape(tiles / tiles_k * TILE_P, Int<ROWS_K>{}, Int<SPLITS>{})); // (pixels,ROWS_K,SPLITS)
//! else
//! if bulk
        Tensor sY = make_tensor(make_smem_ptr(smem_y + (half * 4 + warp) * 2 * 16 * 32), tile_to_shape(GMMA::Layout_K_SW128_Atom<float>{}, Shape<_16, _32, _2>{})); // (16,32,2)
//! elif aligned
        Tensor sY = make_tensor(make_smem_ptr(smem_y + (half * 4 + warp) * 16 * PITCH), Layout<Shape<_64, _16>, Stride<_1, Int<PITCH>>>{}); // (64,16): two parts
//! else
        Tensor sY = make_tensor(make_smem_ptr(smem_y + (half * 4 + warp) * 16 * PITCH), Layout<Shape<_32, _16>, Stride<_1, Int<PITCH>>>{}); // (32,16)
//! end
        Tensor mY = make_tensor(make_gmem_ptr(y), make_shape(Int<PIXELS>{}, Int<C_OUT>{}, N), make_stride($y_p, $y_k, int64_t(PIXELS) * C_OUT)); // (PIXELS,C_OUT,N)
//! each leaf
        Tensor m$X = make_tensor(make_gmem_ptr($x), make_shape(N, Int<C_OUT>{}, Int<PIXELS>{}), make_stride($n, $k, $p)); // (N,C_OUT,PIXELS)
//! end
//! end
//! if noted and not split_sums
        unsigned mine = 0; // the largest magnitude that this thread has stored
//! end
        Turn<STAGES_P> at_p = {0, 0};
        Turn<STAGES_W> at_w = {0, 0};
        int s = 0; // tap of the slot of pixels
        // Where the pixels of a tap begin in their slot.
        auto const begin_of = [&](int tap) {
//! if share
//! if interleaved
            return tap;
//! elif transposed
            return (RUN - 1 - tap) * STEP_W;
//! else
            return tap * STEP_W;
//! end
//! else
            return 0;
//! end
        };

//! if turns and not single
        if (half == 1)
            asm volatile("bar.arrive 1, 256;" ::: "memory");
//! end
//! if split_sums
        for (int t = blockIdx.x; t < tiles * SPLITS; t += gridDim.x) {
            int const part = t / tiles, steps = (SLOTS * (part + 1) / SPLITS - SLOTS * part / SPLITS) * RUN;
            int const pixel0 = t % tiles / tiles_k * TILE_P + (TILE_K == 128 ? 0 : half * PIECES * PIECE);
//! else
        for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
            int const pixel0 = t / tiles_k * TILE_P + (TILE_K == 128 ? 0 : half * PIECES * PIECE);
//! end
            int const k0 = t % tiles_k * TILE_K + (TILE_K == 128 ? half * 64 : 0) + warp * 16;
            clear(sum);
//! if narrow or single
//! include conv_columns
//! end
            if constexpr (PRODUCTS == 3) {
                constexpr int LOW = CHANNELS / 16; // where low parts begin, in blocks of 16
                Tensor acc = partition_fragment_C(mma, Shape<_64, Int<PIECE>>{}); // (MMA,1,1)
//! if sparse
                Tensor lost = make_tensor<float>(Shape<Int<PIECE / 2>, Int<PIECES>>{}); // (MMA,PIECES): what additions rounded away
                clear(lost);
//! end
                // Adds COUNT steps. The accumulator truncates, so sums in it are short; small terms come first.
                auto const multiply = [&](auto count) {
                    constexpr int COUNT = decltype(count)::value;
                    int slot_w[COUNT], slot_p[COUNT], begin[COUNT], done[COUNT];
                    CUTE_UNROLL
                    for (int u = 0; u < COUNT; ++u) {
                        if (s == 0)
                            wait_barrier(full_p[at_p.slot], at_p.parity);
                        wait_barrier(full_w[at_w.slot], at_w.parity);
                        slot_w[u] = at_w.slot, slot_p[u] = at_p.slot, begin[u] = begin_of(s), done[u] = 0;
                        at_w.next();
                        if (++s == RUN)
                            s = 0, done[u] = 1, at_p.next();
                    }
                    CUTE_UNROLL
                    for (int piece = 0; piece < PIECES; ++piece) {
//! if turns and not single
                        asm volatile("bar.sync %0, 256;" ::"r"(1 + half) : "memory");
//! end
                        warpgroup_fence_operand(acc);
                        warpgroup_arrive();
                        mma.accumulate_ = GMMA::ScaleOut::Zero;
                        CUTE_UNROLL
                        for (int u = 0; u < COUNT; ++u) {
                            CUTE_UNROLL
                            for (int j = 0; j < CHANNELS / 16; ++j) {
                                gemm(mma, tCrW(_, _, j, slot_w[u]), further(tCrP(_, _, LOW + j, slot_p[u]), begin[u] + piece * PIECE), acc);
                                mma.accumulate_ = GMMA::ScaleOut::One;
                                gemm(mma, tCrW(_, _, LOW + j, slot_w[u]), further(tCrP(_, _, j, slot_p[u]), begin[u] + piece * PIECE), acc);
                            }
                        }
                        CUTE_UNROLL
                        for (int u = 0; u < COUNT; ++u) {
                            CUTE_UNROLL
                            for (int j = 0; j < CHANNELS / 16; ++j)
                                gemm(mma, tCrW(_, _, j, slot_w[u]), further(tCrP(_, _, j, slot_p[u]), begin[u] + piece * PIECE), acc);
                        }
                        warpgroup_commit_batch();
//! if turns and not single
                        asm volatile("bar.arrive %0, 256;" ::"r"(2 - half) : "memory");
//! end
                        warpgroup_wait<0>();
                        warpgroup_fence_operand(acc);
                        if (piece == PIECES - 1 && thread == 0) {
                            CUTE_UNROLL
                            for (int u = 0; u < COUNT; ++u) {
                                arrive_barrier(empty_w[slot_w[u]]);
                                if (done[u])
                                    arrive_barrier(empty_p[slot_p[u]]);
                            }
                        }
                        CUTE_UNROLL
                        for (int i = 0; i < size(acc); ++i) {
//! if sparse
                            float const more = acc(i) - lost(i, piece), before = sum(i, piece);
                            sum(i, piece) = before + more;
                            lost(i, piece) = (sum(i, piece) - before) - more;
//! else
                            sum(i, piece) += acc(i);
//! end
                        }
                    }
                };
                int left = steps;
#pragma unroll 1
                for (; left >= TOGETHER; left -= TOGETHER)
                    multiply(Int<TOGETHER>{});
                if constexpr (TOGETHER > 1) {
#pragma unroll 1
                    for (; left > 0; --left)
                        multiply(_1{});
                }
            } else {
                // Sums stay in the accumulators; slots are let go when the next step's products have begun.
                Tensor acc0 = make_tensor(sum.data(), partition_shape_C(mma, Shape<_64, Int<PIECE>>{}));             // (MMA,1,1)
                Tensor acc1 = make_tensor(sum.data() + (PIECES - 1) * PIECE / 2, partition_shape_C(mma, Shape<_64, Int<PIECE>>{})); // (MMA,1,1)
                int before_w = -1, before_p = -1;
                auto const release = [&]() {
                    if (thread == 0 && before_w >= 0)
                        arrive_barrier(empty_w[before_w]);
                    if (thread == 0 && before_p >= 0)
                        arrive_barrier(empty_p[before_p]);
                    __syncwarp(); // wgmma is for whole warps
                };
                mma.accumulate_ = GMMA::ScaleOut::One;
#pragma unroll 1
                for (int left = steps; left > 0; --left) {
                    if (s == 0)
                        wait_barrier(full_p[at_p.slot], at_p.parity);
                    wait_barrier(full_w[at_w.slot], at_w.parity);
                    int const begin = begin_of(s);
                    warpgroup_fence_operand(acc0);
                    warpgroup_fence_operand(acc1);
                    warpgroup_arrive();
                    CUTE_UNROLL
                    for (int j = 0; j < CHANNELS / 16; ++j) {
                        gemm(mma, tCrW(_, _, j, at_w.slot), further(tCrP(_, _, j, at_p.slot), begin), acc0);
                        if constexpr (PIECES == 2)
                            gemm(mma, tCrW(_, _, j, at_w.slot), further(tCrP(_, _, j, at_p.slot), begin + PIECE), acc1);
                    }
                    warpgroup_commit_batch();
                    warpgroup_wait<1>();
                    release();
                    before_w = at_w.slot, before_p = -1;
                    at_w.next();
                    if (++s == RUN)
                        s = 0, before_p = at_p.slot, at_p.next();
                }
                warpgroup_wait<0>();
                warpgroup_fence_operand(acc0);
                warpgroup_fence_operand(acc1);
                release();
            }

//! if not narrow and not single
//! include conv_columns
//! end
            // A thread has rows m and m + 8 and two neighbours of every eight pixels.
            float scale[2] = {1.0f, 1.0f};
//! if not narrow
            CUTE_UNROLL
            for (int q = 0; q < 2; ++q)
                scale[q] = k0 + lane / 4 + q * 8 < ROWS ? unscale[k0 + lane / 4 + q * 8] * unscale_of_x(state) : 0.0f;
//! end
//! if split_sums
            CUTE_UNROLL
            for (int piece = 0; piece < PIECES; ++piece) {
                CUTE_UNROLL
                for (int i = 0; i < PIECE / 2; i += 2) {
                    int const q = i / 2 % 2;
                    *reinterpret_cast<float2 *>(&mPart(pixel0 + piece * PIECE + i / 4 * 8 + lane % 4 * 2, k0 + lane / 4 + q * 8, part)) = make_float2(sum(i, piece) * scale[q], sum(i + 1, piece) * scale[q]);
                }
            }
//! else
            // Out, 16 channels of 32 pixels at a time.
//! if bulk
            CUTE_UNROLL
            for (int part = 0; part < PIECES * PIECE / 32; ++part) {
                if (lane == 0)
                    tma_store_wait<1>(); // the one before the last has left shared memory
                __syncwarp();
//! if noted
                unsigned here = 0; // as `mine`, if all of this part is stored
//! end
                CUTE_UNROLL
                for (int i = 0; i < 16; i += 2) {
                    int const q = i / 2 % 2, row = lane / 4 + q * 8, from = part % 4 * 16 + i, piece = part / 4;
                    float result[2];
                    CUTE_UNROLL
                    for (int e = 0; e < 2; ++e) {
                        float const acc = sum(from + e, piece) * scale[q];
//! if early
                        result[e] = ${kernel}_early(acc$early);
//! else
                        result[e] = acc;
//! end
//! if noted
                        here = cute::max(here, k0 + row < C_OUT ? magnitude_of(result[e]) : 0);
//! end
                    }
                    *reinterpret_cast<float2 *>(&sY(row, i / 4 * 8 + lane % 4 * 2, part % 2)) = make_float2(result[0], result[1]);
                }
                asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                __syncwarp();
                Place const to = place_of(pixel0 + part * 32, phase, N), end = place_of(pixel0 + part * 32 + 31, phase, N);
                bool const whole = to.p >= 0 && to.p % RUN_P % 4 == 0 && end.n == to.n && end.p == to.p + 31 && to.p / RUN_P == end.p / RUN_P;
//! if noted
                mine = whole ? cute::max(mine, here) : mine;
//! end
                if (k0 < C_OUT && whole) { // nothing wholly outside may be stored by TMA
                    if (lane == 0)
                        SM90_TMA_STORE_4D::copy(&map_y, &sY(0, 0, part % 2), to.p % RUN_P, to.p / RUN_P, k0, to.n);
                } else if (k0 < C_OUT) {
                    Place const to = place_of(pixel0 + part * 32 + lane, phase, N);
                    CUTE_UNROLL
                    for (int i = 0; to.p >= 0 && i < 16; ++i) {
                        if (k0 + i < C_OUT) {
                            mY(to.p, k0 + i, to.n) = sY(i, lane, part % 2);
//! if noted
                            mine = cute::max(mine, magnitude_of(sY(i, lane, part % 2)));
//! end
                        }
                    }
                }
                if (lane == 0)
                    tma_store_arrive();
            }
//! else
//! if aligned
//! if beside
            // Loads of other tensors before stores, and for the parts that follow: one after the other, they would take
            // longer than the products.
            constexpr int SLOTS = PRODUCTS == 1 && $far_count == 1 ? 3 : $far_count <= 2 ? 2 : 1;
//! each far
            $value ${x}_at[SLOTS][16];
//! end
//! end
            // Where results of a channel lie next to each other they leave in whole lines: lanes store what was computed up to
            // 31 pixels before.
            constexpr int COUNT = PIECES * PIECE;
            Place const begin = place_of(pixel0, phase, N);
            int const column = pixel0 % WALK_W, length = OUT_W - column < COUNT ? OUT_W - column : COUNT;
            bool const together = begin.p >= 0 && column + COUNT <= WALK_W;
            $y_type *const line = &mY(together ? begin.p : 0, k0 < C_OUT ? k0 : 0, together ? begin.n : 0);
            unsigned const odd = unsigned(reinterpret_cast<uintptr_t>(line) / sizeof($y_type)); // elements after a whole line
//! if beside
            auto const bring = [&](int part) { // what a part needs of other tensors
                CUTE_UNROLL
                for (int i = 0; i < 16; ++i) {
                    int const at = part * 32 + lane - int((odd + i * unsigned(PIXELS)) % 32);
                    bool const there = at >= 0 && at < length && k0 + i < C_OUT;
                    [[maybe_unused]] int const n = begin.n, k = there ? k0 + i : 0, p = there ? begin.p + at : 0;
//! each far
                    ${x}_at[part % SLOTS][i] = $value(m$X(n, k, p));
//! end
                }
            };
            CUTE_UNROLL
            for (int part = 0; part < SLOTS - 1; ++part)
                if (together)
                    bring(part);
//! end
            CUTE_UNROLL
            for (int part = 0; part < COUNT / 32 + 1; ++part) {
                __syncwarp();
                CUTE_UNROLL
                for (int i = 0; part < COUNT / 32 && i < 16; i += 2) {
                    int const q = i / 2 % 2, from = part % 4 * 16 + i, piece = part / 4;
//! if early
                    float result[2];
                    CUTE_UNROLL
                    for (int e = 0; e < 2; ++e) {
                        float const acc = sum(from + e, piece) * scale[q];
                        result[e] = ${kernel}_early(acc$early);
                    }
                    *reinterpret_cast<float2 *>(&sY(part % 2 * 32 + i / 4 * 8 + lane % 4 * 2, lane / 4 + q * 8)) = make_float2(result[0], result[1]);
//! else
                    *reinterpret_cast<float2 *>(&sY(part % 2 * 32 + i / 4 * 8 + lane % 4 * 2, lane / 4 + q * 8)) = make_float2(sum(from, piece) * scale[q], sum(from + 1, piece) * scale[q]);
//! end
                }
                __syncwarp();
                if (together) {
//! if beside
                    if (part + SLOTS - 1 < COUNT / 32 + 1)
                        bring(part + SLOTS - 1);
//! end
                    float value[16];
                    CUTE_UNROLL
                    for (int i = 0; i < 16; ++i) {
                        int const at = part * 32 + lane - int((odd + i * unsigned(PIXELS)) % 32);
                        value[i] = sY((at < 0 ? lane : at) % 64, i);
                    }
//! if beside
                    float result[16];
                    CUTE_UNROLL
                    for (int i = 0; i < 16; ++i) {
                        int const at = part * 32 + lane - int((odd + i * unsigned(PIXELS)) % 32);
                        bool const there = at >= 0 && at < length && k0 + i < C_OUT;
                        [[maybe_unused]] int const n = begin.n, k = there ? k0 + i : 0, p = there ? begin.p + at : 0;
                        float const acc = value[i];
                        result[i] = ${kernel}_late(acc$finish_ahead);
                    }
                    CUTE_UNROLL
                    for (int i = 0; i < 16; ++i) {
                        int const at = part * 32 + lane - int((odd + i * unsigned(PIXELS)) % 32);
                        if (at >= 0 && at < length && k0 + i < C_OUT) {
                            line[int64_t(i) * PIXELS + at] = $y_type(result[i]);
//! if noted
                            mine = cute::max(mine, magnitude_of(result[i]));
//! end
                        }
                    }
//! else
                    CUTE_UNROLL
                    for (int i = 0; i < 16; ++i) {
                        int const at = part * 32 + lane - int((odd + i * unsigned(PIXELS)) % 32), k = k0 + i;
                        [[maybe_unused]] int const n = begin.n, p = begin.p + at;
                        float const acc = value[i];
                        if (at >= 0 && at < length && k < C_OUT) {
//! if late
                            float const result = ${kernel}_late(acc$finish);
//! else
                            float const result = acc;
//! end
                            line[int64_t(i) * PIXELS + at] = $y_type(result);
//! if noted
                            mine = cute::max(mine, magnitude_of(result));
//! end
                        }
                    }
//! end
                } else if (part < COUNT / 32) {
                    Place const to = place_of(pixel0 + part * 32 + lane, phase, N);
                    [[maybe_unused]] int const n = to.n, p = to.p;
                    CUTE_UNROLL
                    for (int i = 0; p >= 0 && i < 16; ++i) {
                        int const k = k0 + i;
                        float const acc = sY(part % 2 * 32 + lane, i);
                        if (k < C_OUT) {
//! if late
                            float const result = ${kernel}_late(acc$finish);
//! else
                            float const result = acc;
//! end
                            mY(p, k, n) = $y_type(result);
//! if noted
                            mine = cute::max(mine, magnitude_of(result));
//! end
                        }
                    }
                }
            }
//! else
//! if beside and not interleaved
            // Loads of other tensors before stores, and for the parts that follow: one after the other, they would take
            // longer than the products.
            constexpr int SLOTS = PRODUCTS == 1 && $far_count == 1 ? 3 : $far_count <= 2 ? 2 : 1;
//! each far
            $value ${x}_at[SLOTS][16];
//! end
            auto const bring = [&](int part) { // what a part needs of other tensors
                Place const to = place_of(pixel0 + part * 32 + lane, phase, N);
                CUTE_UNROLL
                for (int i = 0; i < 16; ++i) {
                    [[maybe_unused]] int const n = to.p < 0 ? 0 : to.n, k = cute::min(k0 + i, C_OUT - 1), p = to.p < 0 ? 0 : to.p;
//! each far
                    ${x}_at[part % SLOTS][i] = $value(m$X(n, k, p));
//! end
                }
            };
            CUTE_UNROLL
            for (int part = 0; part < SLOTS - 1; ++part)
                bring(part);
//! end
            CUTE_UNROLL
            for (int part = 0; part < PIECES * PIECE / 32; ++part) {
                __syncwarp();
                CUTE_UNROLL
                for (int i = 0; i < 16; i += 2) {
                    int const q = i / 2 % 2, from = part % 4 * 16 + i, piece = part / 4;
//! if early
                    float result[2];
                    CUTE_UNROLL
                    for (int e = 0; e < 2; ++e) {
                        float const acc = sum(from + e, piece) * scale[q];
                        result[e] = ${kernel}_early(acc$early);
                    }
                    *reinterpret_cast<float2 *>(&sY(i / 4 * 8 + lane % 4 * 2, lane / 4 + q * 8)) = make_float2(result[0], result[1]);
//! else
                    *reinterpret_cast<float2 *>(&sY(i / 4 * 8 + lane % 4 * 2, lane / 4 + q * 8)) = make_float2(sum(from, piece) * scale[q], sum(from + 1, piece) * scale[q]);
//! end
                }
                __syncwarp();
//! if interleaved
                // Results of a channel lie next to each other, a pixel's phases and then the next pixel's.
                CUTE_UNROLL
                for (int c = 0; c < STRIDE_W; ++c) {
                    int const pixel = (c * 32 + lane) / STRIDE_W, f = (c * 32 + lane) % STRIDE_W;
                    Place const to = place_of(pixel0 + part * 32 + pixel, {phase.d, phase.h, f}, N);
                    [[maybe_unused]] int const n = to.n, p = to.p;
                    float value[16 / EACH_K];
                    CUTE_UNROLL
                    for (int i = 0; i < 16 / EACH_K; ++i)
                        value[i] = sY(pixel, i * EACH_K + f);
                    if (p < 0)
                        continue;
//! if late
                    CUTE_UNROLL
                    for (int i = 0; i < 16 / EACH_K; ++i) { // all loads before the first store
                        int const k = cute::min(k0 / EACH_K + i, C_OUT - 1);
                        float const acc = value[i];
                        value[i] = ${kernel}_late(acc$finish);
                    }
//! end
                    CUTE_UNROLL
                    for (int i = 0; i < 16 / EACH_K; ++i)
                        if (k0 / EACH_K + i < C_OUT) {
                            mY(p, k0 / EACH_K + i, n) = $y_type(value[i]);
//! if noted
                            mine = cute::max(mine, magnitude_of(value[i]));
//! end
                        }
                }
            }
//! else
                Place const to = place_of(pixel0 + part * 32 + lane, phase, N);
                float value[16];
                CUTE_UNROLL
                for (int i = 0; i < 16; ++i)
                    value[i] = sY(lane, i);
                [[maybe_unused]] int const n = to.n, p = to.p;
//! if beside
                if (part + SLOTS - 1 < PIECES * PIECE / 32)
                    bring(part + SLOTS - 1);
//! end
                if (p >= 0) {
//! if beside
                    float result[16];
                    CUTE_UNROLL
                    for (int i = 0; i < 16; ++i) {
                        [[maybe_unused]] int const k = cute::min(k0 + i, C_OUT - 1);
                        float const acc = value[i];
                        result[i] = ${kernel}_late(acc$finish_ahead);
                    }
                    CUTE_UNROLL
                    for (int i = 0; i < 16; ++i)
                        if (k0 + i < C_OUT) {
                            mY(p, k0 + i, n) = $y_type(result[i]);
//! if noted
                            mine = cute::max(mine, magnitude_of(result[i]));
//! end
                        }
//! else
                    CUTE_UNROLL
                    for (int i = 0; i < 16; ++i) {
                        int const k = k0 + i;
                        float const acc = value[i];
                        if (k < C_OUT) {
//! if late
                            float const result = ${kernel}_late(acc$finish);
//! else
                            float const result = acc;
//! end
                            mY(p, k, n) = $y_type(result);
//! if noted
                            mine = cute::max(mine, magnitude_of(result));
//! end
                        }
                    }
//! end
                }
            }
//! end
//! end
//! end
//! end
            __syncwarp(); // wgmma is for whole warps
        }
//! if noted and not split_sums
        note_top(top, mine);
//! end
//! if turns and not single
        if (half == 0)
            asm volatile("bar.sync 1, 256;" ::: "memory"); // take up the last arrival
//! end
//! if bulk
        if (lane == 0)
            tma_store_wait<0>();
//! end
    }
}
