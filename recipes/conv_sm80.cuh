// conv_sm80.cuh - the product by mma.sync, tiles brought by cp.async; a part of convolution.cu.

// 16 bytes into shared memory, or zeros.
__device__ inline void fetch_vector(Eight const *from, Eight *to, bool there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(cast_smem_ptr_to_uint(to)), "l"(from), "r"(there ? 16 : 0) : "memory");
}

__global__ void __launch_bounds__(256)
    ${kernel}_product(uint16_t const *planes_x, uint16_t const *planes_w, float const *unscale, unsigned const *state, int phase_d, int phase_h, int phase_w, $params)
{
    constexpr int VECTORS = ROW / 8; // of a row
    // Vectors of a row in an order that differs by row, so that eight rows' reads meet different banks.
    using Rows = decltype(composition(Swizzle<VECTORS == 8 ? 3 : 2, 3, 3>{}, Layout<Shape<_8, Int<ROW>>, Stride<Int<ROW>, _1>>{}));
    auto const layout_w = tile_to_shape(Rows{}, Shape<Int<TILE_K>, Int<ROW>, _2>{});
    auto const layout_p = tile_to_shape(Rows{}, Shape<Int<TILE_P>, Int<ROW>, _2>{});
    __shared__ alignas(128) Element smem_w[2 * TILE_K * ROW], smem_p[2 * TILE_P * ROW];
    Tensor sW = make_tensor(make_smem_ptr(smem_w), layout_w); // (TILE_K,ROW,2)
    Tensor sP = make_tensor(make_smem_ptr(smem_p), layout_p); // (TILE_P,ROW,2)
    Phase const phase = {phase_d, phase_h, phase_w};
    int const rows = PARTS * N * WALK, pixel0 = blockIdx.x * TILE_P, k0 = blockIdx.y * TILE_K;
    Tensor mP = make_tensor(make_gmem_ptr(reinterpret_cast<Eight const *>(planes_x)), make_shape(Int<VECTORS>{}, Int<CHUNKS_X>{}, rows)); // (VECTORS,CHUNKS_X,rows)
    Tensor mW = make_tensor(make_gmem_ptr(reinterpret_cast<Eight const *>(planes_w)), make_shape(Int<VECTORS>{}, Int<STEPS>{}, Int<ROWS>{})); // (VECTORS,STEPS,ROWS)

//! if not narrow
    if (state[1] != 0) { // the split may have lost bits that matter
        if (phase.d + phase.h + phase.w == 0)
            every_result($names);
        return;
    }
//! end
    auto mma = make_tiled_mma($mma{}, Layout<Shape<_2, _4, _1>>{}); // 2x4 warps
    auto thr = mma.get_slice(threadIdx.x);
    Tensor tCrW = thr.partition_fragment_A(sW(_, _, 0)); // (MMA,MMA_M,ROW/16)
    Tensor tCrP = thr.partition_fragment_B(sP(_, _, 0)); // (MMA,MMA_N,ROW/16)
    Tensor acc = partition_fragment_C(mma, Shape<Int<TILE_K>, Int<TILE_P>>{}); // (MMA,MMA_M,MMA_N)
    Tensor sum = make_tensor_like(acc); // (MMA,MMA_M,MMA_N)
    Tensor tCcC = thr.partition_C(make_identity_tensor(Shape<Int<TILE_K>, Int<TILE_P>>{})); // (MMA,MMA_M,MMA_N)
    auto copy_w = make_tiled_copy_A(Copy_Atom<SM75_U32x4_LDSM_N, Element>{}, mma);
    auto copy_p = make_tiled_copy_B(Copy_Atom<SM75_U32x2_LDSM_N, Element>{}, mma);
    Tensor tXsW = copy_w.get_slice(threadIdx.x).partition_S(sW); // (COPY,COPY_M,COPY_K,2)
    Tensor tXsP = copy_p.get_slice(threadIdx.x).partition_S(sP); // (COPY,COPY_N,COPY_K,2)
    Tensor tXrW = copy_w.get_slice(threadIdx.x).retile_D(tCrW);  // (COPY,COPY_M,COPY_K)
    Tensor tXrP = copy_p.get_slice(threadIdx.x).retile_D(tCrP);  // (COPY,COPY_N,COPY_K)
    clear(sum);

    // Brings the rows of one step: a tap, and a chunk of channels.
    auto const fetch = [&](int row, int step, int chunk, int stage) {
        for (int i = threadIdx.x; i < TILE_K * VECTORS; i += 256) {
            int const k = k0 + i / VECTORS, u = i % VECTORS;
            fetch_vector(&mW(u, step, k < ROWS ? k : 0), reinterpret_cast<Eight *>(&sW(i / VECTORS, u * 8, stage)), k < ROWS);
        }
        for (int i = threadIdx.x; i < TILE_P * VECTORS; i += 256) {
            int const at = pixel0 + row + i / VECTORS, u = i % VECTORS;
            fetch_vector(&mP(u, chunk, at < rows ? at : 0), reinterpret_cast<Eight *>(&sP(i / VECTORS, u * 8, stage)), at < rows);
        }
        cp_async_fence();
    };
    auto const multiply = [&](int stage) {
        constexpr int LOW = CHANNELS / 16; // where low parts begin, in blocks of 16
        copy(copy_w, tXsW(_, _, _, stage), tXrW);
        copy(copy_p, tXsP(_, _, _, stage), tXrP);
        clear(acc);
        CUTE_UNROLL
        for (int j = 0; j < CHANNELS / 16; ++j) {
            if constexpr (PRODUCTS == 3) { // small terms first
                gemm(mma, tCrW(_, _, j), tCrP(_, _, LOW + j), acc);
                gemm(mma, tCrW(_, _, LOW + j), tCrP(_, _, j), acc);
            }
        }
        CUTE_UNROLL
        for (int j = 0; j < CHANNELS / 16; ++j)
            gemm(mma, tCrW(_, _, j), tCrP(_, _, j), acc);
        CUTE_UNROLL
        for (int i = 0; i < size(acc); ++i)
            sum(i) += acc(i);
    };

//! if grouped
    int const chunk0 = k0 / (ROWS / GROUPS) * CHUNKS;
//! else
    constexpr int chunk0 = 0;
//! end
    int stage = 0;
    bool begun = false;
#pragma unroll 1
    for (int tap = 0; tap < TAPS_D * TAPS_H * WALK_TAPS_W; ++tap) {
        Tap const d = tap_d(tap / (TAPS_H * WALK_TAPS_W), phase.d), h = tap_h(tap / WALK_TAPS_W % TAPS_H, phase.h);
        Tap const v = tap_w(tap % WALK_TAPS_W, phase.w);
        if (!d.there || !h.there || !v.there)
            continue;
#pragma unroll 1
        for (int c = 0; c < CHUNKS; ++c) {
            fetch(row_of(d, h, v, N), tap * CHUNKS + c, chunk0 + c, stage);
            if (begun) { // the step before, while this one is fetched
                cp_async_wait<1>();
                __syncthreads();
                multiply(stage ^ 1);
                __syncthreads();
            }
            begun = true;
            stage ^= 1;
        }
    }
    if (begun) {
        cp_async_wait<0>();
        __syncthreads();
        multiply(stage ^ 1);
    }

    Tensor mY = make_tensor(make_gmem_ptr(y), make_shape(Int<PIXELS>{}, Int<C_OUT>{}, N), make_stride($y_p, $y_k, int64_t(PIXELS) * C_OUT)); // (PIXELS,C_OUT,N)
//! each leaf
    Tensor m$X = make_tensor(make_gmem_ptr($x), make_shape(N, Int<C_OUT>{}, Int<PIXELS>{}), make_stride($n, $k, $p)); // (N,C_OUT,PIXELS)
//! end
//! if not narrow
    float const unscale_x = unscale_of_x(state);
//! end
//! if noted
    unsigned mine = 0;
//! end
    CUTE_UNROLL
    for (int i = 0; i < size(sum); ++i) {
        int const line = k0 + int(get<0>(tCcC(i))), k = line / EACH_K;
        Place const to = place_of(pixel0 + int(get<1>(tCcC(i))), {phase.d, phase.h, phase.w + line % EACH_K}, N);
        if (k >= C_OUT || line % EACH_K >= $phases_w || to.p < 0)
            continue;
        [[maybe_unused]] int const n = to.n, p = to.p;
//! if narrow
        float const acc = sum(i);
//! else
        float const acc = sum(i) * unscale[line] * unscale_x;
//! end
//! if epilogue
        float const result = ${kernel}_finish(acc$finish);
        mY(p, k, n) = $y_type(result);
//! else
        float const result = acc;
        mY(p, k, n) = $y_type(result);
//! end
//! if noted
        mine = cute::max(mine, magnitude_of(result));
//! end
    }
//! if noted
    note_top(top, mine);
//! end
}
