// gemm_fused.cuh - the product that splits both operands itself; a part of gemm_sm90.cu.
//
// 512 threads: one fetches fp32 tiles by TMA; a warpgroup splits B in place, a thread per column; two
// warpgroups split A on its way into registers and multiply. Scales are per 64 of K, of each row of A and of all
// of B's tile, applied when sums are added (a scale per column would take a multiplication more for every sum, and
// instructions are what bounds this kernel). Every byte of A and B is read from memory once and never written again.
//! if split_k
__global__ void __launch_bounds__(512, 1)
    ${kernel}_product(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
                      const __grid_constant__ CUtensorMap map_c, int32_t *guard_a, int32_t *guard_b, int part_k,
                      int64_t K_all, int L, $params)
{
    K = part_k; // the parts of the sum are products of their own
//! else
__global__ void __launch_bounds__(512, 1)
    ${kernel}_product(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
                      const __grid_constant__ CUtensorMap map_c, int32_t *guard_a, int32_t *guard_b, int L, $params)
{
//! end
    extern __shared__ unsigned char memory[];
    constexpr int SLOT_A = TILE_M * TILE_K, SLOT_B = TILE_N * TILE_K; // floats
    unsigned const skip = -cast_smem_ptr_to_uint(memory) % 1024;      // tiles start on 1024 bytes
    float *smem_a = reinterpret_cast<float *>(memory + skip), *smem_b = smem_a + STAGES_A * SLOT_A;
    float2 *smem_c = reinterpret_cast<float2 *>(smem_b + STAGES_B * SLOT_B);
    uint64_t *full_a = reinterpret_cast<uint64_t *>(smem_c + 8 * STORES * 16 * 16), *empty_a = full_a + STAGES_A;
    uint64_t *full_b = empty_a + STAGES_A, *ready_b = full_b + STAGES_B, *empty_b = ready_b + STAGES_B;
    __shared__ int limits[8];         // what the rows of A, and the columns of B, are like at worst
    __shared__ float scales[STAGES_B]; // to be multiplied with sums over a slot of B
    __shared__ unsigned peaks[2][4];   // the largest in B's tile, by warp
    int const group = threadIdx.x / 128, thread = threadIdx.x % 128, lane = threadIdx.x % 32, warp = thread / 32;

    if (threadIdx.x < 8)
        limits[threadIdx.x] = 0;
    if (threadIdx.x < STAGES_A + STAGES_B) { // a thread for each slot
        bool const of_a = threadIdx.x < STAGES_A;
        int const i = of_a ? threadIdx.x : threadIdx.x - STAGES_A;
        initialize_barrier(of_a ? full_a[i] : full_b[i], 1);
        initialize_barrier(of_a ? empty_a[i] : empty_b[i], 8); // warps that multiply
        if (!of_a)
            initialize_barrier(ready_b[i], 4); // warps that split
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
//! if overlap
    cutegen_let_next_begin();
//! end

    Work w;
    int4 worst = make_int4(0, 0, 0, 0);
    if (group == 0) { // one thread fetches
        cutlass::arch::warpgroup_reg_dealloc<24>();
        Place a = {0, 1}, b = {0, 1};
        for (int round = 0; threadIdx.x == 0 && work_of(round, M, N, K, L, w); ++round) {
            for (int k = w.begin; k < w.end; k += TILE_K) {
//! if split_k
                int const at = w.l * K + k, la = 0, lb = 0;
//! else
                int const at = k, la = $a_l, lb = $b_l;
//! end
                constexpr uint64_t hint = 0x1000000000000000; // evict as usual
                wait_barrier(empty_a[a.slot], a.turn);
                set_barrier_transaction_bytes(full_a[a.slot], SLOT_A * sizeof(float));
                for (int i = 0; i < 2; ++i)
                    SM90_TMA_LOAD_3D::copy(&map_a, &full_a[a.slot], hint, smem_a + a.slot * SLOT_A + i * TILE_M * 32,
                                           at + i * 32, w.m, la);
                wait_barrier(empty_b[b.slot], b.turn);
                set_barrier_transaction_bytes(full_b[b.slot], SLOT_B * sizeof(float));
//! if b_k_major
                for (int i = 0; i < 2; ++i)
                    SM90_TMA_LOAD_3D::copy(&map_b, &full_b[b.slot], hint, smem_b + b.slot * SLOT_B + i * TILE_N * 32,
                                           at + i * 32, w.n, lb);
//! else
                SM90_TMA_LOAD_3D::copy(&map_b, &full_b[b.slot], hint, smem_b + b.slot * SLOT_B, w.n, at, lb);
//! end
                a.next<STAGES_A>(), b.next<STAGES_B>();
            }
        }
    } else if (group == 1) { // a warpgroup splits B
        cutlass::arch::warpgroup_reg_alloc<136>();
        Place b = {0, 0};
        for (int round = 0; work_of(round, M, N, K, L, w); ++round) {
            int exponents = 0, zeros = 0;
            unsigned largest = 0, lost = 0;
#pragma unroll 1
            for (int k0 = w.begin; k0 < w.end; k0 += TILE_K) {
                float x[TILE_K], peak = 0.0f; // NaN stays in hi
                float *slot = smem_b + b.slot * SLOT_B;
                wait_barrier(full_b[b.slot], b.turn);
//! if b_k_major
                CUTE_UNROLL
                for (int i = 0; i < TILE_K / 4; ++i) // as TMA brings it: 16 bytes at a time, swizzled
                    *reinterpret_cast<float4 *>(&x[i * 4]) = *reinterpret_cast<float4 *>(
                        slot + i / 8 * TILE_N * 32 + thread * 32 + ((i ^ thread) & 7) * 4);
//! else
                CUTE_UNROLL
                for (int i = 0; i < TILE_K; ++i)
                    x[i] = slot[i * TILE_N + thread];
//! end
                CUTE_UNROLL
                for (int i = 0; i < TILE_K; ++i)
                    peak = fmaxf(peak, fabsf(x[i]));
                unsigned top = __reduce_max_sync(~0u, __float_as_uint(peak));
                if (lane == 0)
                    peaks[b.slot % 2][warp] = top;
                asm volatile("bar.sync 6, 128;" ::: "memory"); // all of the slot is in registers
                CUTE_UNROLL
                for (int i = 0; i < 4; ++i)
                    top = cute::max(top, peaks[b.slot % 2][i]);
                int const e = top == 0 ? 127 : int(top >> 23), used = cute::min(cute::max(e, 67), 187);
                float const scale = __uint_as_float(unsigned(268 - used) << 23); // to [2^14,2^15)
                largest = cute::max(largest, top);
                lost |= e != used ? 2u : 0u;
                if (thread == 0)
                    scales[b.slot] = __uint_as_float(unsigned(used - 14) << 23);
                half_t *hi = reinterpret_cast<half_t *>(slot) + thread * TILE_K, *lo = hi + SLOT_B;
                unsigned low = EXPONENTS, sum = 0; // of the exponents of high parts, as Row has them
                CUTE_UNROLL
                for (int c = 0; c < TILE_K / 8; ++c) {
                    alignas(16) unsigned h[4], l[4];
                    CUTE_UNROLL
                    for (int p = 0; p < 4; ++p) {
                        // The tensor core takes from a thread k = 2t, 2t+1, 2t+8 and 2t+9 of each sixteen; A's
                        // are 4t to 4t+3 in memory, one vector, and B is put in the same order.
                        int const k = c / 2 * 16 + p * 4 + c % 2 * 2;
                        split_pair(x[k] * scale, x[k + 1] * scale, h[p], l[p]);
                        low = __vminu2(low, h[p] & EXPONENTS);
                        sum = __dp4a(h[p] & EXPONENTS, 0x01000100u, sum);
                    }
                    int const place = ((c ^ thread) & 7) * 8; // swizzled, as wgmma reads it
                    *reinterpret_cast<uint4 *>(hi + place) = *reinterpret_cast<uint4 *>(h);
                    *reinterpret_cast<uint4 *>(lo + place) = *reinterpret_cast<uint4 *>(l);
                }
                asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                __syncwarp();
                if (lane == 0)
                    arrive_barrier(ready_b[b.slot]);
                b.next<STAGES_B>();
                exponents += int(sum >> 2) + TILE_K * (used - BELOW);
                if (cute::min(low >> 16, low & 0xffffu) < DEEP << 10) { // zero, or deep?
                    CUTE_UNROLL
                    for (int i = 0; i < TILE_K; ++i) {
                        unsigned const bits = __float_as_uint(x[i]) & 0x7fffffffu;
                        int const of_hi = int(bits >> 23) - used + BELOW;
                        zeros += bits == 0;
                        exponents -= bits == 0 ? used - BELOW : 0;
                        exponents += bits != 0 && of_hi < 0 ? of_hi : 0;
                        lost |= bits != 0 && of_hi < DEEP ? 1u : 0u;
                    }
                }
            }
            int const seen = (w.end - w.begin + TILE_K - 1) / TILE_K * TILE_K, terms = seen - zeros;
//! if split_k
            int const length = int(cute::min(int64_t(K), K_all - int64_t(w.l) * K));
//! else
            int const length = K;
//! end
            if (terms > 0)
                worst = worse(worst, make_int4(terms * int(largest >> 23) - exponents, length - terms, lost & 1, lost > 1));
        }
    } else { // two warpgroups split A and multiply
        cutlass::arch::warpgroup_reg_alloc<176>();
        int const half = group - 2;
        auto mma = make_tiled_mma(SM90_64x128x16_F32F16F16_RS<GMMA::Major::K, GMMA::Major::K>{});
        auto thr = mma.get_slice(thread);
        Tensor hi = make_tensor<half_t>(Shape<Shape<_2, _2, _2>, _1, Int<TILE_K / 16>>{}); // (MMA,1,TILE_K/16)
        Tensor lo = make_tensor<half_t>(Shape<Shape<_2, _2, _2>, _1, Int<TILE_K / 16>>{}); // (MMA,1,TILE_K/16)
        Tensor pairs_hi = recast<unsigned>(hi), pairs_lo = recast<unsigned>(lo);           // (MMA/2,1,TILE_K/16)
        Tensor sB = make_tensor(make_smem_ptr(reinterpret_cast<half_t *>(smem_b)),
                                ring_layout<true, TILE_N, TILE_N, STAGES_B>()); // (TILE_N,TILE_K,planes,STAGES_B)
        Tensor tCrB = thr.partition_fragment_B(sB);                             // (MMA,1,TILE_K/16,planes,STAGES_B)
        Tensor acc = partition_fragment_C(mma, Shape<_64, Int<TILE_N>>{});      // (MMA,1,1)
        Tensor sum = make_tensor<float>(Int<TILE_N / 2>{});                     // (MMA)
        // Two columns at a time, as TMA takes them from a warp: (16,16,STORES)
        smem_c += (half * 4 + warp) * STORES * 16 * 16;
        Tensor sC = make_tensor(make_smem_ptr(smem_c),
                                composition(Swizzle<3, 1, 3>{}, Layout<Shape<_16, _16, Int<STORES>>, Stride<_16, _1, Int<16 * 16>>>{}));
        // Rows in an order in which the four vectors of a row and those of another fill all banks.
        int const order = lane / 8 + lane / 4 % 2 * 4;
        // 16 bytes at a time, as TMA brings them. The swizzle takes the row's last three bits, which are `order`: vector v
        // of the thread's eight is at places[v % 2] + what is the same for all threads.
        int const first = (half * 64 + warp * 16 + order) * 8 + (lane % 4 ^ order), places[2] = {first, first ^ 4};
        Tensor sA = make_tensor(make_smem_ptr(reinterpret_cast<uint128_t *>(smem_a)),
                                Layout<Shape<Int<TILE_M * 8>, _2, Int<STAGES_A>>, Stride<_1, Int<TILE_M * 8>, Int<TILE_M * 16>>>{});
        auto const part_hi = [&](int q) { return [&, q](int i) -> unsigned & { return pairs_hi(make_coord(0, q, i % 2), 0, i / 2); }; };
        auto const part_lo = [&](int q) { return [&, q](int i) -> unsigned & { return pairs_lo(make_coord(0, q, i % 2), 0, i / 2); }; };
        Place a = {0, 0}, b = {0, 0};

        clear(acc);
        if (half == 1)
            asm volatile("bar.arrive 1, 256;" ::: "memory");
        for (int round = 0; work_of(round, M, N, K, L, w); ++round) {
            clear(sum);
            Row rows[2] = {{0, 0, 0, 0}, {0, 0, 0, 0}}; // of the thread
#pragma unroll 1
            for (int k0 = w.begin; k0 < w.end; k0 += TILE_K) {
                wait_barrier(full_a[a.slot], a.turn);
                int used[2]; // exponents that scales follow
                CUTE_UNROLL
                for (int q = 0; q < 2; ++q) {
                    float x[TILE_K / 4];
                    CUTE_UNROLL
                    for (int v = 0; v < TILE_K / 16; ++v)
                        *reinterpret_cast<uint128_t *>(&x[v * 4]) = sA(places[v % 2] + q * 64, v / 2, a.slot);
                    used[q] = rows[q].split(x, part_hi(q), part_lo(q));
                }
                asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                __syncwarp();
                if (lane == 0)
                    arrive_barrier(empty_a[a.slot]);
                a.next<STAGES_A>();
                wait_barrier(ready_b[b.slot], b.turn);
                // The warpgroups take turns: one multiplies while the other splits and adds.
                auto const a_hi = [&](int k) { return hi(_, _, k); };
                auto const a_lo = [&](int k) { return lo(_, _, k); };
                CUTE_UNROLL
                for (int from = 0; from < TILE_K / 16; from += TERMS / 16) {
                    if (k0 >= w.begin + LEAD)
                        asm volatile("bar.sync %0, 256;" ::"r"(1 + half) : "memory");
                    warpgroup_fence_operand(acc);
                    warpgroup_arrive();
                    start_sum(mma, a_hi, a_lo, tCrB, b.slot, from, acc);
                    if (k0 >= w.begin + LEAD)
                        asm volatile("bar.arrive %0, 256;" ::"r"(2 - half) : "memory");
                    warpgroup_wait<0>();
                    warpgroup_fence_operand(acc);
                    float const factor[2] = {__uint_as_float(unsigned(used[0] - 14) << 23) * scales[b.slot],
                                             __uint_as_float(unsigned(used[1] - 14) << 23) * scales[b.slot]};
                    CUTE_UNROLL
                    for (int i = 0; i < TILE_N / 2; ++i) // rows m and m + 8, two columns of each eight
                        sum(i) = fmaf(acc(i), factor[i / 2 % 2], sum(i));
                }
                asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                __syncwarp();
                if (lane == 0)
                    arrive_barrier(empty_b[b.slot]);
                b.next<STAGES_B>();
                CUTE_UNROLL
                for (int q = 0; q < 2; ++q)
                    rows[q].look(used[q], part_hi(q), part_lo(q));
            }

            // What the split of these rows may have lost.
//! if split_k
            int const length = int(cute::min(int64_t(K), K_all - int64_t(w.l) * K));
//! else
            int const length = K;
//! end
            CUTE_UNROLL
            for (int q = 0; q < 2; ++q) {
                Row &r = rows[q];
                r.gather();
                int const terms = (w.end - w.begin + TILE_K - 1) / TILE_K * TILE_K - r.zeros;
                if (terms > 0)
                    worst = worse(worst, make_int4(terms * int(r.largest >> 23) - r.exponents, length - terms, r.lost & 1,
                                                   r.lost > 1));
            }

            // A thread has rows m and m + 8, and two neighbouring columns of every eight.
            int const l = w.l, row = w.m + half * 64 + warp * 16, m0 = row + order, n0 = w.n + lane % 4 * 2;
//! if not split_k
//! each leaf
            Tensor m$X = make_tensor(make_gmem_ptr($x$batch), make_shape(M, N), make_stride($m, $n)); // (M,N)
//! end
//! end
            CUTE_UNROLL
            for (int j = 0; j < TILE_N / 32; ++j) { // 32 columns
                if (lane == 0)
                    tma_store_wait<STORES - 1>(); // what was here before is on its way
                __syncwarp();
                CUTE_UNROLL
                for (int i = 0; i < 16; i += 2) {
                    float x = sum(j * 16 + i), y = sum(j * 16 + i + 1);
//! if epilogue and not split_k
                    int const m = m0 + i / 2 % 2 * 8, n = n0 + j * 32 + i / 4 * 8;
                    if (m < M && n < N) {
                        x = [&](int m, int n) { return ${kernel}_finish(x$finish); }(m, n);
                        y = [&](int m, int n) { return ${kernel}_finish(y$finish); }(m, n + 1);
                    }
//! end
                    sC(order + i / 2 % 2 * 8, i / 4 * 4 + lane % 4, j % STORES) = make_float2(x, y);
                }
                asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                __syncwarp();
                if (lane == 0) {
                    store_part(&map_c, smem_c + j % STORES * 16 * 16, w.n + j * 32, row, l);
                    tma_store_arrive();
                }
            }
            __syncwarp(); // wgmma is for whole warps
        }
        if (half == 0)
            asm volatile("bar.sync 1, 256;" ::: "memory"); // take up the last arrival
        if (lane == 0)
            tma_store_wait<0>();
    }
    if (group > 0) {
        int *mine = limits + (group == 1 ? 4 : 0);
        atomicMax(&mine[0], worst.x), atomicMax(&mine[1], worst.y), atomicMax(&mine[2], worst.z), atomicMax(&mine[3], worst.w);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        reinterpret_cast<int4 *>(guard_a)[blockIdx.x] = make_int4(limits[0], limits[1], limits[2], limits[3]);
        reinterpret_cast<int4 *>(guard_b)[blockIdx.x] = make_int4(limits[4], limits[5], limits[6], limits[7]);
    }
}
