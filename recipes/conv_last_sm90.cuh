// conv_last_sm90.cuh - the product where x and y lie channels last, by wgmma and TMA; a part of convolution.cu.

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

// The first pixel of a box.
struct Corner {
    int n, d, h, w;
};

__device__ inline Corner corner_of(int box)
{
    int const plane = box / (BOXES_W * BOXES_H);
    return {plane / OUT_D * BOX_N, plane % OUT_D, box / BOXES_W % BOXES_H * BOX_H, box % BOXES_W * USE_W};
}

// Rows of ROW elements in shared memory for wgmma, swizzled as TMA brings them: eight rows are a group.
__device__ inline uint64_t operand(Element const *rows)
{
    constexpr uint64_t GROUP = ROW * 2 * 8 / 16, SWIZZLE = ROW == 64 ? 1 : 2; // 128 or 64 bytes
    return (cast_smem_ptr_to_uint(rows) & 0x3ffff) >> 4 | uint64_t(1) << 16 | GROUP << 32 | SWIZZLE << 62;
}

// sum(64,WIDE) = weights(64,16) * pixels(WIDE,16), added to what is there or not.
__device__ inline void multiply(float (&sum)[WIDE / 2], uint64_t weights, uint64_t pixels, int add)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %$wgmma_add, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n${wide}k16.f32.$wgmma_element.$wgmma_element {"
//! each sums
                 "$registers"
//! end
                 "}, %$wgmma_weights, %$wgmma_pixels, p, 1, 1, 0, 0;\n}\n"
                 : $wgmma_sums
                 : "l"(weights), "l"(pixels), "r"(add));
}

// Two neighbouring results as they lie in memory.
__device__ inline unsigned pack(float x, float y)
{
    cutlass::Array<float, 2> from;
    from[0] = x, from[1] = y;
    auto const pair = cutlass::NumericArrayConverter<Element, float, 2>::convert(from);
    return reinterpret_cast<unsigned const &>(pair);
}

__global__ void __launch_bounds__(384, 1)
    ${kernel}_last(const __grid_constant__ CUtensorMap map_x, const __grid_constant__ CUtensorMap map_w, const __grid_constant__ CUtensorMap map_y, $params)
{
    extern __shared__ unsigned char memory[];
    constexpr uint64_t HINT = 0x1000000000000000; // evict as usual
    unsigned const skip = -cast_smem_ptr_to_uint(memory) % 1024; // tiles start on 1024 bytes
    Element *smem_y = reinterpret_cast<Element *>(memory + skip), *smem_p = smem_y + 2 * OUTS * OUT_ROWS * 64, *smem_w = smem_p + STAGES_P * SLOT_P;
    Element *nowhere = smem_w + STAGES_W * SLOT_W; // where pixels go that are no results
    uint64_t *full_p = reinterpret_cast<uint64_t *>(nowhere + LOST), *empty_p = full_p + STAGES_P;
    uint64_t *full_w = empty_p + STAGES_P, *empty_w = full_w + STAGES_W;
    int const group = threadIdx.x / 128, boxes = (N + BOX_N - 1) / BOX_N * OUT_D * BOXES_H * BOXES_W;
    int const tiles_k = (C_OUT + TILE_K - 1) / TILE_K, tiles = (boxes + SIDE - 1) / SIDE * tiles_k;

    if (threadIdx.x < STAGES_P + STAGES_W) { // a thread for each slot
        bool const of_p = threadIdx.x < STAGES_P;
        int const i = of_p ? threadIdx.x : threadIdx.x - STAGES_P;
        initialize_barrier(of_p ? full_p[i] : full_w[i], 1);
        initialize_barrier(of_p ? empty_p[i] : empty_w[i], 2);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    // Rows of the slots that no box fills.
    for (int i = threadIdx.x; i < STAGES_P * SLOT_P / 8; i += 384)
        if (i / (ROW / 8) % ROWS_P >= BOX)
            reinterpret_cast<uint4 *>(smem_p)[i] = make_uint4(0, 0, 0, 0);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
//! if overlap
    cutegen_wait_for_earlier();
    cutegen_let_next_begin();
//! end

    if (group == 0) { // one thread fetches
        cutlass::arch::warpgroup_reg_dealloc<24>();
        Turn<STAGES_P> at_p = {0, 1};
        Turn<STAGES_W> at_w = {0, 1};
        for (int t = blockIdx.x; threadIdx.x == 0 && t < tiles; t += gridDim.x) {
            int const k0 = t % tiles_k * TILE_K, box = t / tiles_k * SIDE;
#pragma unroll 1
            for (int i = 0; i < TAPS_D * TAPS_H * (WALK_TAPS_W / RUN); ++i) {
                int const q = i / (WALK_TAPS_W / RUN) / TAPS_H, r = i / (WALK_TAPS_W / RUN) % TAPS_H, s = i % (WALK_TAPS_W / RUN);
//! if transposed
                int const d = PAD_D - q * STEP_D, h = PAD_H - r * STEP_H, v = PAD_W - (RUN > 1 ? RUN - 1 : s) * STEP_W;
//! else
                int const d = q * STEP_D - PAD_D, h = r * STEP_H - PAD_H, v = s * STEP_W - PAD_W;
//! end
#pragma unroll 1
                for (int c = 0; c < CHUNKS; ++c) {
                    wait_barrier(empty_p[at_p.slot], at_p.parity);
                    set_barrier_transaction_bytes(full_p[at_p.slot], SIDE * BOX * ROW * sizeof(Element));
                    for (int b = 0; b < SIDE; ++b) {
                        Corner const at = corner_of(box + b);
                        SM90_TMA_LOAD_5D::copy(&map_x, &full_p[at_p.slot], HINT, smem_p + at_p.slot * SLOT_P + b * ROWS_P * ROW, c * ROW, at.w * STRIDE_W + v, at.h * STRIDE_H + h, at.d * STRIDE_D + d, at.n);
                    }
                    at_p.next();
#pragma unroll 1
                    for (int u = 0; u < RUN && !(STAYS && t != blockIdx.x); u += JOINED) {
                        wait_barrier(empty_w[at_w.slot], at_w.parity);
                        set_barrier_transaction_bytes(full_w[at_w.slot], SLOT_W * sizeof(Element));
                        for (int e = 0; e < JOINED; ++e)
                            SM90_TMA_LOAD_2D::copy(&map_w, &full_w[at_w.slot], HINT, smem_w + at_w.slot * SLOT_W + e * TILE_K * ROW, (((q * TAPS_H + r) * WALK_TAPS_W + s + u + e) * CHUNKS + c) * ROW, k0);
                        at_w.next();
                    }
                }
            }
        }
    } else { // two warpgroups compute
        cutlass::arch::warpgroup_reg_alloc<240>();
        int const half = group - 1, thread = threadIdx.x % 128, lane = threadIdx.x % 32, warp = thread / 32;
        Element *out = smem_y + half * OUT_ROWS * 64;
        uint64_t const weights = operand(smem_w + (SIDE == 1 ? half * 64 * ROW : 0)), pixels = operand(smem_p + (SIDE == 1 ? 0 : half * ROWS_P * ROW));
        Turn<STAGES_P> at_p = {0, 0};
        Turn<STAGES_W> at_w = {0, 0};
        float sum[WIDE / 2]; // rows m and m + 8, two neighbours of every eight pixels
//! each leaf
        Tensor m$X = make_tensor(make_gmem_ptr($x), make_shape(N, Int<C_OUT>{}, Int<PIXELS>{}), make_stride($n, $k, $p)); // (N,C_OUT,PIXELS)
//! end

        for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
            int const k0 = t % tiles_k * TILE_K + (SIDE == 1 ? half * 64 : 0), box = t / tiles_k * SIDE + (SIDE == 1 ? 0 : half);
            Corner const corner = corner_of(box);
            int before_w = -1, before_p = -1, s = 0; // slots whose products may still be running; tap of the slot of pixels
            // Slots are let go when the next step's products have begun.
            auto const let_go = [&]() {
                if (!STAYS && before_w >= 0 && thread == 0)
                    arrive_barrier(empty_w[before_w]);
                if (before_p >= 0 && thread == 0)
                    arrive_barrier(empty_p[before_p]);
                __syncwarp(); // wgmma is for whole warps
            };
            if constexpr (STAYS)
                at_w = {0, 0}; // as they were left
#pragma unroll 1
            for (int step = 0; step < COUNT; step += JOINED) {
                if (s == 0)
                    wait_barrier(full_p[at_p.slot], at_p.parity);
                wait_barrier(full_w[at_w.slot], at_w.parity);
                CUTE_UNROLL
                for (int i = 0; i < WIDE / 2; ++i)
                    warpgroup_fence_operand(sum[i]);
                warpgroup_arrive();
                CUTE_UNROLL
                for (int u = 0; u < JOINED; ++u) {
//! if transposed
                    int const begin = RUN > 1 ? (RUN - 1 - s - u) * STEP_W : 0;
//! else
                    int const begin = RUN > 1 ? (s + u) * STEP_W : 0;
//! end
                    CUTE_UNROLL
                    for (int j = 0; j < ROW / 16; ++j)
                        multiply(sum, weights + at_w.slot * (SLOT_W / 8) + u * (TILE_K * ROW / 8) + j * 2, pixels + at_p.slot * (SLOT_P / 8) + begin * (ROW / 8) + j * 2, step + u + j > 0);
                }
                warpgroup_commit_batch();
                warpgroup_wait<1>();
                let_go();
                before_w = at_w.slot, before_p = -1;
                at_w.next();
                s += JOINED;
                if (s == RUN)
                    s = 0, before_p = at_p.slot, at_p.next();
            }
            warpgroup_wait<0>();
            CUTE_UNROLL
            for (int i = 0; i < WIDE / 2; ++i)
                warpgroup_fence_operand(sum[i]);
            let_go();

            // Out: a pixel's 64 channels are a row in shared memory, which TMA stores.
            if (thread == 0)
                tma_store_wait<OUTS - 1>(); // what was here has left shared memory
            asm volatile("bar.sync %0, 128;" ::"r"(1 + half) : "memory");
            CUTE_UNROLL
            for (int part = 0; part < WIDE / 8; part += 2) {
                unsigned pair[4];
                CUTE_UNROLL
                for (int i = 0; i < 4; ++i) {
                    int const from = part * 4 + i * 2; // behind the last eight pixels there is nothing
                    float result[2] = {0.0f, 0.0f};
                    CUTE_UNROLL
                    for (int e = 0; e < 2 && from < WIDE / 2; ++e) {
                        float const acc = sum[from + e];
//! if epilogue
                        int const at = (part + i / 2) * 8 + lane % 4 * 2 + e, row = at / BOX_W;
                        int const of_n = corner.n + row / BOX_H, of_h = corner.h + row % BOX_H, of_w = corner.w + at % BOX_W;
                        bool const there = of_n < N && of_h < OUT_H && of_w < OUT_W;
                        [[maybe_unused]] int const n = there ? of_n : 0, k = cute::min(k0 + warp * 16 + i % 2 * 8 + lane / 4, C_OUT - 1), p = there ? (corner.d * OUT_H + of_h) * OUT_W + of_w : 0;
                        result[e] = ${kernel}_finish(acc$finish);
//! else
                        result[e] = acc;
//! end
                    }
                    pair[i] = pack(result[0], result[1]);
                }
                // Lanes name the rows of four parts of 8x8: pixels 0..7 of channels 0..7 and 8..15, then pixels 8..15.
                int const at = part * 8 + lane / 16 * 8 + lane % 8, row = at / BOX_W * USE_W + at % BOX_W, eight = warp * 2 + lane / 8 % 2;
                bool const kept = at < BOX && at < WIDE && at % BOX_W < USE_W;
                Element *const to = NEAT || kept ? out + row * 64 + (eight ^ row % 8) * 8 : nowhere + (half * 128 + thread) * 8;
                SM90_U16x8_STSM_T::copy(pair[0], pair[1], pair[2], pair[3], *reinterpret_cast<uint128_t *>(to));
            }
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            asm volatile("bar.sync %0, 128;" ::"r"(1 + half) : "memory");
            if (thread == 0 && box < boxes && k0 < C_OUT) { // nothing wholly outside may be stored by TMA
                SM90_TMA_STORE_5D::copy(&map_y, out, k0, corner.w, corner.h, corner.d, corner.n);
                tma_store_arrive();
            }
            if constexpr (OUTS == 2)
                out = smem_y + half * OUT_ROWS * 64 + (out < smem_y + 2 * OUT_ROWS * 64 ? 2 * OUT_ROWS * 64 : 0);
            __syncwarp(); // wgmma is for whole warps
        }
        if (thread == 0)
            tma_store_wait<0>();
    }
}
