// conv_direct_sm90.cuh - the product with a filter of one tap, without planes; a part of convolution.cu.

// The power of two that brings a largest magnitude, given as bits, to 2^14, where it is neither tiny nor huge.
__device__ inline int exponent_for(unsigned largest)
{
    return 14 - (cute::min(cute::max(int(largest >> 23), 67), 187) - 127);
}
__device__ inline bool out_of_range(unsigned largest)
{
    return largest != 0 && (int(largest >> 23) < 67 || int(largest >> 23) > 187);
}
__device__ inline float power_of_two(int e)
{
    return __uint_as_float(unsigned(e + 127) << 23);
}

// A place in a ring, and the parity of its turn.
template <int COUNT>
struct Turn {
    int slot, parity;
    __device__ void next()
    {
        if (++slot == COUNT)
            slot = 0, parity ^= 1;
    }
};

// What the splitting warpgroup says of a chunk.
struct Chunk {
    float unscale;
    unsigned bad[4]; // by warp: bits that matter may be lost
};

__global__ void __launch_bounds__(384, 1)
    ${kernel}_direct(const __grid_constant__ CUtensorMap map_x, const __grid_constant__ CUtensorMap map_y, $params)
{
    extern __shared__ unsigned char memory[];
    __shared__ Chunk said[PLACES_P];
    constexpr uint64_t HINT = 0x1000000000000000; // evict as usual
    unsigned const skip = -cast_smem_ptr_to_uint(memory) % 1024; // tiles start on 1024 bytes
    half_t *smem_w = reinterpret_cast<half_t *>(memory + skip), *smem_p = smem_w + CHUNKS * SLOT_W;
    float *smem_x = reinterpret_cast<float *>(smem_p + PLACES_P * 2 * SLOT_P), *smem_y = smem_x + STAGES * SLOT_P;
    float *column = smem_y + OUT_BYTES / 4, *unscale = column + 8 * TILE_P;
    uint64_t *full_x = reinterpret_cast<uint64_t *>(unscale + TILE_K), *full_p = full_x + STAGES, *empty_p = full_p + PLACES_P;
    unsigned *tops = reinterpret_cast<unsigned *>(empty_p + PLACES_P); // by warp, of two chunks
    constexpr int ACROSS = (PIXELS + TILE_P - 1) / TILE_P;             // tiles of an image
    int const group = threadIdx.x / 128, thread = threadIdx.x % 128, lane = threadIdx.x % 32, warp = thread / 32;
    int const tiles = N * ACROSS, first_k = blockIdx.y * TILE_K;

    if (threadIdx.x < STAGES)
        initialize_barrier(full_x[threadIdx.x], 1);
    if (threadIdx.x < PLACES_P) {
        initialize_barrier(full_p[threadIdx.x], 128);
        initialize_barrier(empty_p[threadIdx.x], 8); // a lane of each warp
    }
    if (threadIdx.x < 32) {
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }

    // The weights, split: a row has 32 channels' high parts, then their low parts.
    auto const layout_w = tile_to_shape(GMMA::Layout_K_SW128_Atom<half_t>{}, Shape<Int<TILE_K>, Int<2 * TERMS>, Int<CHUNKS>>{});
    Tensor sW = make_tensor(make_smem_ptr(smem_w), layout_w); // (TILE_K,2*TERMS,CHUNKS)
    Tensor mW = make_tensor(make_gmem_ptr(w), Layout<Shape<Int<C_IN>, Int<C_OUT>>>{}); // (C_IN,C_OUT)
    int bad_w = 0; // bits of the weights that matter may be lost
    for (int r = threadIdx.x / 32; r < TILE_K; r += 12) {
        bool const there = first_k + r < C_OUT;
        unsigned top = 0, weak = 0;
        for (int c = lane; c < C_IN; c += 32)
            top = cute::max(top, __float_as_uint(fabsf(there ? mW(c, first_k + r) : 0.0f)));
        top = __reduce_max_sync(~0u, top);
        int const e = exponent_for(top);
        for (int c = lane; c < CHUNKS * TERMS; c += 32) {
            float const v = there && c < C_IN ? mW(c, first_k + r) * power_of_two(e) : 0.0f;
            half_t const hi = half_t(v);
            weak += v != 0.0f && fabsf(v) < 1.0f; // so far below the largest that the low part loses bits
            sW(r, c % TERMS, c / TERMS) = hi;
            sW(r, TERMS + c % TERMS, c / TERMS) = half_t(v - float(hi));
        }
        if (lane == 0)
            unscale[r] = power_of_two(-e);
        bad_w |= out_of_range(top) || (PRODUCTS == 3 && __reduce_add_sync(~0u, weak) * 4 > C_IN);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    bad_w = __syncthreads_or(bad_w); // also: barriers and weights are there

    auto const layout_p = tile_to_shape(GMMA::Layout_MN_SW128_Atom<half_t>{}, Shape<Int<TILE_P>, Int<TERMS>, Int<2 * PLACES_P>>{});
    Tensor sP = make_tensor(make_smem_ptr(smem_p), layout_p); // (TILE_P,TERMS,2*PLACES_P): high, low, high, low
    if (group == 0) { // brings and splits
        cutlass::arch::warpgroup_reg_dealloc<104>();
        constexpr int SPAN = TILE_P / 128, EACH = TERMS / 4; // vectors of a thread along the pixels; channels of a warp
        Tensor sX = make_tensor(make_smem_ptr(smem_x), Layout<Shape<Int<TILE_P>, Int<TERMS>, Int<STAGES>>>{}); // (TILE_P,TERMS,STAGES)
        Turn<STAGES> at_x = {0, 0};
        Turn<PLACES_P> at_p = {0, 1};
        int const mine = blockIdx.x < tiles ? (tiles - 1 - blockIdx.x) / gridDim.x + 1 : 0, all = mine * CHUNKS;
        auto const fetch = [&](int i) { // chunk i of this block
            int const t = blockIdx.x + i / CHUNKS * gridDim.x;
            set_barrier_transaction_bytes(full_x[i % STAGES], SLOT_P * 4);
            SM90_TMA_LOAD_3D::copy(&map_x, &full_x[i % STAGES], HINT, smem_x + i % STAGES * SLOT_P, t % ACROSS * TILE_P, i % CHUNKS * TERMS, t / ACROSS);
        };
        for (int i = 0; thread == 0 && i < STAGES && i < all; ++i)
            fetch(i);
#pragma unroll 1
        for (int i = 0; i < all; ++i) {
            float4 value[EACH][SPAN];
            float sum[SPAN][4] = {};
            unsigned top = 0;
            wait_barrier(full_x[at_x.slot], at_x.parity);
            CUTE_UNROLL
            for (int j = 0; j < EACH * SPAN; ++j) {
                int const c = j / SPAN, u = j % SPAN;
                float4 const v = value[c][u] = *reinterpret_cast<float4 *>(&sX((u * 32 + lane) * 4, warp * EACH + c, at_x.slot));
                float const a[4] = {fabsf(v.x), fabsf(v.y), fabsf(v.z), fabsf(v.w)};
                CUTE_UNROLL
                for (int e = 0; e < 4; ++e)
                    sum[u][e] += a[e], top = cute::max(top, __float_as_uint(a[e]));
            }
            top = __reduce_max_sync(~0u, top);
            int const turn = i % 2;
            if (lane == 0)
                tops[turn * 4 + warp] = top;
            CUTE_UNROLL
            for (int u = 0; u < SPAN; ++u)
                *reinterpret_cast<float4 *>(column + (turn * 4 + warp) * TILE_P + (u * 32 + lane) * 4) = make_float4(sum[u][0], sum[u][1], sum[u][2], sum[u][3]);
            asm volatile("bar.sync 3, 128;" ::: "memory");
            if (thread == 0 && i + STAGES < all)
                fetch(i + STAGES); // all have read what was there
            CUTE_UNROLL
            for (int j = 0; j < 4; ++j)
                top = cute::max(top, tops[turn * 4 + j]);
            float const scale = power_of_two(exponent_for(top));
            // Not a number, or most pixels so far below the largest that their low parts lose bits.
            unsigned bad = out_of_range(top);
            CUTE_UNROLL
            for (int u = 0; u < SPAN; ++u) {
                float total = 0.0f;
                CUTE_UNROLL
                for (int j = 0; j < 4; ++j)
                    total += column[(turn * 4 + j) * TILE_P + u * 128 + thread];
                bool const weak = total > 0.0f && total * scale < 2.0f;
                int const weak_ones = __popc(__ballot_sync(~0u, weak)), others = __popc(__ballot_sync(~0u, total > 0.0f && !weak));
                bad |= PRODUCTS == 3 && weak_ones >= 8 && weak_ones > others;
            }
            wait_barrier(empty_p[at_p.slot], at_p.parity);
            if (lane == 0)
                said[at_p.slot].bad[warp] = bad;
            if (thread == 0)
                said[at_p.slot].unscale = power_of_two(-exponent_for(top));
            CUTE_UNROLL
            for (int j = 0; j < EACH * SPAN; ++j) {
                int const c = j / SPAN, u = j % SPAN, p = (u * 32 + lane) * 4;
                float const v[4] = {value[c][u].x * scale, value[c][u].y * scale, value[c][u].z * scale, value[c][u].w * scale};
                alignas(8) half_t hi[4], lo[4];
                CUTE_UNROLL
                for (int e = 0; e < 4; ++e)
                    hi[e] = half_t(v[e]), lo[e] = half_t(v[e] - float(hi[e]));
                *reinterpret_cast<uint2 *>(&sP(p, warp * EACH + c, 2 * at_p.slot)) = *reinterpret_cast<uint2 *>(hi);
                if constexpr (PRODUCTS == 3)
                    *reinterpret_cast<uint2 *>(&sP(p, warp * EACH + c, 2 * at_p.slot + 1)) = *reinterpret_cast<uint2 *>(lo);
            }
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            arrive_barrier(full_p[at_p.slot]);
            at_x.next();
            at_p.next();
        }
    } else { // two warpgroups multiply and store
        cutlass::arch::warpgroup_reg_alloc<200>();
        int const half = group - 1, k0 = first_k + (TILE_K == 128 ? half * 64 : 0), offset = TILE_K == 128 ? 0 : half * 128;
        auto mma = make_tiled_mma(SM90_64x128x16_F32F16F16_SS<GMMA::Major::K, GMMA::Major::MN>{});
        auto thr = mma.get_slice(thread);
        Tensor tCrW = thr.partition_fragment_A(local_tile(sW, Shape<_64, Int<2 * TERMS>>{}, make_coord(TILE_K == 128 ? half : 0, 0)));  // (MMA,1,2*TERMS/16,CHUNKS)
        Tensor tCrP = thr.partition_fragment_B(local_tile(sP, Shape<_128, Int<TERMS>>{}, make_coord(TILE_K == 128 ? 0 : half, 0))); // (MMA,1,TERMS/16,2*PLACES_P)
        Tensor acc = partition_fragment_C(mma, Shape<_64, _128>{}); // (MMA,1,1)
        Tensor sum = make_tensor<float>(Shape<_64>{});              // (MMA)
        Tensor sY = make_tensor(make_smem_ptr(smem_y + half * 64 * 128), tile_to_shape(GMMA::Layout_K_SW128_Atom<float>{}, Shape<_64, _32, _4>{})); // (64,32,4)
        Tensor mY = make_tensor(make_gmem_ptr(y), make_shape(Int<PIXELS>{}, Int<C_OUT>{}, N), make_stride(_1{}, int64_t(PIXELS), int64_t(PIXELS) * C_OUT)); // (PIXELS,C_OUT,N)
//! each leaf
        Tensor m$X = make_tensor(make_gmem_ptr($x), make_shape(N, Int<C_OUT>{}, Int<PIXELS>{}), make_stride($n, $k, $p)); // (N,C_OUT,PIXELS)
//! end
        float const scale[2] = {unscale[(TILE_K == 128 ? half * 64 : 0) + warp * 16 + lane / 4], unscale[(TILE_K == 128 ? half * 64 : 0) + warp * 16 + lane / 4 + 8]};
//! if early
        // What follows needs of a thread's two output channels.
//! each column
        $value ${x}_of[2];
//! end
        CUTE_UNROLL
        for (int q = 0; q < 2; ++q) {
            [[maybe_unused]] int const n = 0, k = cute::min(k0 + warp * 16 + lane / 4 + q * 8, C_OUT - 1), p = 0;
//! each column
            ${x}_of[q] = $value(m$X(n, k, p));
//! end
        }
//! end
//! if noted
        unsigned mine = 0; // the largest magnitude that this thread has stored
//! end
        Turn<PLACES_P> at_p = {0, 0};
#pragma unroll 1
        for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
            int const n = t / ACROSS, p0 = t % ACROSS * TILE_P + offset;
            unsigned bad = 0;
            clear(sum);
#pragma unroll 1
            for (int c = 0; c < CHUNKS; ++c) {
                wait_barrier(full_p[at_p.slot], at_p.parity);
                Chunk const chunk = said[at_p.slot];
                bad |= chunk.bad[0] | chunk.bad[1] | chunk.bad[2] | chunk.bad[3];
                warpgroup_fence_operand(acc);
                warpgroup_arrive();
                mma.accumulate_ = GMMA::ScaleOut::Zero;
                if constexpr (PRODUCTS == 3) { // small terms first
                    CUTE_UNROLL
                    for (int j = 0; j < TERMS / 16; ++j) {
                        gemm(mma, tCrW(_, _, j, c), tCrP(_, _, j, 2 * at_p.slot + 1), acc);
                        mma.accumulate_ = GMMA::ScaleOut::One;
                        gemm(mma, tCrW(_, _, TERMS / 16 + j, c), tCrP(_, _, j, 2 * at_p.slot), acc);
                    }
                }
                CUTE_UNROLL
                for (int j = 0; j < TERMS / 16; ++j) {
                    gemm(mma, tCrW(_, _, j, c), tCrP(_, _, j, 2 * at_p.slot), acc);
                    mma.accumulate_ = GMMA::ScaleOut::One;
                }
                warpgroup_commit_batch();
                warpgroup_wait<0>();
                warpgroup_fence_operand(acc);
                __syncwarp(); // all have read what is said of the chunk
                if (lane == 0)
                    arrive_barrier(empty_p[at_p.slot]);
                CUTE_UNROLL
                for (int i = 0; i < size(acc); ++i)
                    sum(i) = fmaf(acc(i), chunk.unscale, sum(i));
                at_p.next();
            }
            if (k0 >= C_OUT || p0 >= PIXELS)
                continue;
            if (bad || bad_w) { // without the split
#pragma unroll 1
                for (int i = thread; i < 64 * 128; i += 128) {
                    int const k = k0 + i / 128, p = p0 + i % 128;
                    if (k < C_OUT && p < PIXELS) {
                        float const acc = convolve(x, w, n, k, p, x_n, x_c, x_d, x_h, x_w);
//! if epilogue
                        float const result = ${kernel}_finish(acc$finish);
//! else
                        float const result = acc;
//! end
                        mY(p, k, n) = $y_type(result);
//! if noted
                        mine = cute::max(mine, magnitude_of(result));
//! end
                    }
                }
                continue;
            }
            if (thread == 0)
                tma_store_wait<0>(); // the tile before has left shared memory
            asm volatile("bar.sync %0, 128;" ::"r"(1 + half) : "memory");
            CUTE_UNROLL
            for (int i = 0; i < size(sum); i += 2) {
                int const q = i / 2 % 2, row = warp * 16 + lane / 4 + q * 8, at = i / 4 * 8 + lane % 4 * 2;
                float result[2];
                CUTE_UNROLL
                for (int e = 0; e < 2; ++e) {
                    float acc = sum(i + e) * scale[q];
//! if early
                    acc = ${kernel}_early(acc$early);
//! end
//! if late
                    [[maybe_unused]] int const k = cute::min(k0 + row, C_OUT - 1), p = cute::min(p0 + at + e, PIXELS - 1);
                    acc = ${kernel}_late(acc$finish);
//! end
                    result[e] = acc;
//! if noted
                    mine = cute::max(mine, k0 + row < C_OUT && p0 + at + e < PIXELS ? magnitude_of(acc) : 0);
//! end
                }
                *reinterpret_cast<float2 *>(&sY(row, at % 32, at / 32)) = make_float2(result[0], result[1]);
            }
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            asm volatile("bar.sync %0, 128;" ::"r"(1 + half) : "memory");
            if (thread == 0) {
                for (int j = 0; j < 4 && p0 + j * 32 < PIXELS; ++j)
                    SM90_TMA_STORE_3D::copy(&map_y, &sY(0, 0, j), p0 + j * 32, k0, n);
                tma_store_arrive();
            }
            __syncwarp(); // wgmma is for whole warps
        }
//! if noted
        note_top(top, mine);
//! end
        if (thread == 0)
            tma_store_wait<0>();
    }
}
