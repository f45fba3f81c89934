// gemm_guard.cuh - what the split may have lost, found and computed again; a part of gemm_sm90.cu.

// May the split have lost bits that matter? Of elements more than 2^16 below the largest of their
// row it drops at most 2^-39 of that. The sum of |a b| is, by the inequality of the means over the
// terms with both factors, at least their number times 2^(mean of the exponents); so where both
// sides' exponents are not far below, nothing is lost. Sums of a few terms (a permutation, say)
// must be exact to the last bit, which the split does not hold.
__device__ inline bool doubtful(int const (&a)[3], int const (&b)[3], int K)
{
    bool const outside = cute::max(a[2], b[2]) > 1, deep = cute::max(a[2], b[2]) == 1;
//! if triangle
    return outside || (deep && a[0] + b[0] > 12 * 16);
//! elif weights
    // Rows of A are weights of a softmax, whose own errors are larger than what the split loses of a few terms. B's mean
    // stands for the elements that a row of few keys meets.
    int const both = K - a[1] - b[1];
    return outside || (deep && (both < 1 || float(a[0]) / both + float(b[0]) / (K - b[1]) > 12.0f));
//! else
    int const both = K - a[1] - b[1]; // terms with both factors, at least
    if (K - cute::max(a[1], b[1]) < 16)
        return true;
    return outside || (deep && (both < ceil_div(K, 8) || a[0] + b[0] > 12 * both));
//! end
}

// Anywhere?
__device__ inline bool must_repeat(int32_t const *guard_a, int32_t const *guard_b, int count_a, int count_b, int K)
{
    __shared__ int worst[2][3];
    int4 a = make_int4(0, 0, 0, 0), b = a;
    for (int i = threadIdx.x; i < count_a; i += blockDim.x)
        a = worse(a, reinterpret_cast<int4 const *>(guard_a)[i]);
    for (int i = threadIdx.x; i < count_b; i += blockDim.x)
        b = worse(b, reinterpret_cast<int4 const *>(guard_b)[i]);
    if (threadIdx.x < 6)
        worst[threadIdx.x / 3][threadIdx.x % 3] = 0;
    __syncthreads();
    atomicMax(&worst[0][0], a.x), atomicMax(&worst[0][1], a.y), atomicMax(&worst[0][2], a.z + 2 * a.w);
    atomicMax(&worst[1][0], b.x), atomicMax(&worst[1][1], b.y), atomicMax(&worst[1][2], b.z + 2 * b.w);
    __syncthreads();
    return doubtful(worst[0], worst[1], K);
}
//! if not both and not triangle

//! if not planes
// Which quarters of a tile, 32 rows each? A bit for each.
//! if fuse
// `guard_a` has a flag for each, `guard_b` is of its columns.
__device__ inline int doubtful_quarters(int32_t const *guard_a, int4 const *guard_b, int rows, int columns, int K)
//! else
// `guard_a` and `guard_b` are of its rows and columns.
__device__ inline int doubtful_quarters(int4 const *guard_a, int4 const *guard_b, int rows, int columns, int K)
//! end
{
    __shared__ int worst[3], bits; // of the columns; the answer
    int const i = threadIdx.x % 128;
    __syncthreads(); // the last tile's are no longer read
    if (threadIdx.x < 3)
        worst[threadIdx.x] = 0;
    if (threadIdx.x == 3)
        bits = 0;
    __syncthreads();
    if (threadIdx.x >= 128 && i < columns) {
        int4 const g = guard_b[i];
        atomicMax(&worst[0], g.x), atomicMax(&worst[1], g.y), atomicMax(&worst[2], g.z + 2 * g.w);
    }
    __syncthreads();
    if (threadIdx.x < 128 && i < rows) {
//! if fuse
        int const a[3] = {0, 0, 2 * guard_a[i / 32]};
//! else
        int const a[3] = {guard_a[i].x, guard_a[i].y, guard_a[i].z + 2 * guard_a[i].w};
//! end
        if (doubtful(a, worst, K))
            atomicOr(&bits, 1 << i / 32);
    }
    __syncthreads();
    return bits;
}
//! end

// Rows that are not doubtful beside the worst of all columns need not be looked at tile by tile: a bit for each 32, of the
// first NOTED. False: none is.
constexpr int NOTED = 1 << 16; // 8 KiB
__device__ inline bool note_rows(unsigned *noted, int32_t const *guard_a, int32_t const *guard_b, int count_a, int count_b, int rows, int K)
{
    __shared__ int worst[3], any;
    int4 b = make_int4(0, 0, 0, 0);
    for (int i = threadIdx.x; i < NOTED / 32; i += blockDim.x)
        noted[i] = 0;
    if (threadIdx.x < 3)
        worst[threadIdx.x] = 0;
    if (threadIdx.x == 3)
        any = 0;
    for (int i = threadIdx.x; i < count_b; i += blockDim.x)
        b = worse(b, reinterpret_cast<int4 const *>(guard_b)[i]);
    __syncthreads();
    atomicMax(&worst[0], b.x), atomicMax(&worst[1], b.y), atomicMax(&worst[2], b.z + 2 * b.w);
    __syncthreads();
    for (int i = threadIdx.x; i < rows; i += blockDim.x) {
//! if fuse
        int const a[3] = {0, 0, 2 * guard_a[4 + i / 32]};
//! else
        int4 const g = reinterpret_cast<int4 const *>(guard_a)[count_a + i];
        int const a[3] = {g.x, g.y, g.z + 2 * g.w};
//! end
        if (doubtful(a, worst, K)) {
            atomicOr(&any, 1);
            if (i / 32 < NOTED)
                atomicOr(&noted[i / 32 / 32], 1u << i / 32 % 32);
        }
    }
    __syncthreads();
    return any;
}
//! end

//! end
//! if tensor and not both and not triangle
// The product on the FMA units, where the split may have lost bits: tiles of 128x128, or the rows of them that it is
// about, sums of 32 terms added up.
//! else
// The product on the FMA units: 8x8 per thread, sums of 32 terms added up.
//! end
//! if split_k
__global__ void __launch_bounds__(256)
    ${kernel}_repeat(int32_t const *guard_a, int32_t const *guard_b, int count_a, int count_b, float *partial, int part_k,
                     int L, $params)
{
//! elif planes
__global__ void __launch_bounds__(256)
    ${kernel}_repeat(int *lost, int32_t const *guard_a, int32_t const *guard_b, int count_a, int count_b, int part_k, int L,
                     $params)
{
//! elif tensor
__global__ void __launch_bounds__(256)
    ${kernel}_repeat(int32_t const *guard_a, int32_t const *guard_b, int count_a, int count_b, int part_k, int L,
                     $params)
{
//! else
__global__ void __launch_bounds__(256)
    ${kernel}_plain(int L, $params)
{
//! end
    constexpr int BLK = 128, BLK_K = 16, ROW = BLK + 4, MINE = BLK * BLK_K / 256;
    alignas(16) __shared__ float smem_a[2 * BLK_K * ROW], smem_b[2 * BLK_K * ROW];
    Layout const two = Layout<Shape<Int<BLK>, Int<BLK_K>, _2>, Stride<_1, Int<ROW>, Int<BLK_K * ROW>>>{};
    Tensor sA = make_tensor(make_smem_ptr(smem_a), two); // (BLK,BLK_K,2)
    Tensor sB = make_tensor(make_smem_ptr(smem_b), two); // (BLK,BLK_K,2)
    int const tiles_m = ceil_div(M, BLK), tiles_n = ceil_div(N, BLK), tm = threadIdx.x / 16, tn = threadIdx.x % 16;

//! if tensor
//! if overlap
    cutegen_wait_for_earlier();
    cutegen_let_next_begin();
//! end
//! if triangle
    if (!must_repeat(guard_a, guard_b, count_a, count_b, part_k)) {
        // Beside the diagonal sums have a few terms, and must be as exact as those of fp32 arithmetic.
        Tensor mA = make_tensor(make_gmem_ptr(A), make_shape(M, K), make_stride($a_m, $a_k)); // (M,K)
        Tensor mB = make_tensor(make_gmem_ptr(B), make_shape(N, K), make_stride($b_n, $b_k)); // (N,K)
        Tensor mC = make_tensor(make_gmem_ptr(C), make_shape(M, N), make_stride($c_m, $c_n)); // (M,N)
//! each leaf
        Tensor m$X = make_tensor(make_gmem_ptr($x), make_shape(M, N), make_stride($m, $n)); // (M,N)
//! end
        for (int i = blockIdx.x * 256 + threadIdx.x; i < M * 16; i += gridDim.x * 256) {
//! if upper_upper
            int const m = i / 16, n = m + i % 16, from = m, until = n;
            if (n >= N)
                continue;
//! else
            int const m = i / 16, n = m - i % 16, from = n, until = m;
            if (n < 0)
                continue;
//! end
            float acc = 0.0f;
            for (int k = from; k <= until; ++k)
                acc = fmaf(mA(m, k), mB(n, k), acc);
//! if epilogue
            mC(m, n) = ${kernel}_finish(acc$finish);
//! else
            mC(m, n) = acc;
//! end
        }
        return;
    }
//! elif planes
    // All in fp32, or nothing: attention reads the planes, or none of them. Every block comes to the same answer.
    bool const inexact = lost[0] != 0, doubted = must_repeat(guard_a, guard_b, count_a, count_b, part_k);
    if (!inexact && !doubted)
        return;
//! else
    if (!must_repeat(guard_a, guard_b, count_a, count_b, part_k))
        return;
//! end
//! end
//! if tensor and not both and not triangle
    auto const compute = [&](auto of_m, int l, int m0, int n0) {
        constexpr int BLK_M = decltype(of_m)::value, MINE_M = BLK_M * BLK_K / 256, OWN = BLK_M / 16;
//! else
    constexpr int BLK_M = BLK, MINE_M = MINE, OWN = 8; // OWN: rows of a thread
    for (int t = blockIdx.x; t < tiles_m * tiles_n * L; t += gridDim.x) {
        int const l = t / (tiles_m * tiles_n), m0 = t / tiles_n % tiles_m * BLK, n0 = t % tiles_n * BLK;
//! end
        Tensor mA = make_tensor(make_gmem_ptr(A$a_batch), make_shape(M, K), make_stride($a_m, $a_k)); // (M,K)
        Tensor mB = make_tensor(make_gmem_ptr(B$b_batch), make_shape(N, K), make_stride($b_n, $b_k)); // (N,K)
//! if split_k
        Tensor mC = make_tensor(make_gmem_ptr(partial + int64_t(l) * M * N), make_shape(M, N),
                                make_stride(int64_t(N), _1{})); // (M,N)
        int const from = l * part_k, until = cute::min(K, from + part_k); // parts of the sum, as in the product
//! else
        Tensor mC = make_tensor(make_gmem_ptr(C$c_batch), make_shape(M, N), make_stride($c_m, $c_n)); // (M,N)
//! each leaf
        Tensor m$X = make_tensor(make_gmem_ptr($x$batch), make_shape(M, N), make_stride($m, $n)); // (M,N)
//! end
        int const from = 0, until = K;
//! end
        Tensor acc = make_tensor<float>(Shape<Int<OWN>, _8>{}); // (OWN,8)
        Tensor sum = make_tensor<float>(Shape<Int<OWN>, _8>{}); // (OWN,8)
        Tensor nextA = make_tensor<float>(Int<MINE_M>{});   // (MINE_M)
        Tensor nextB = make_tensor<float>(Int<MINE>{});   // (MINE)
        clear(acc);
        clear(sum);
        __syncthreads(); // the tile before is no longer read
        // A turn fetches a block of k and multiplies the one before.
#pragma unroll 1
        for (int k0 = from, turn = 0; k0 < until + BLK_K; k0 += BLK_K, turn ^= 1) {
            CUTE_UNROLL
            for (int j = 0; j < MINE_M; ++j) {
                int const i = threadIdx.x + j * 256;
//! if a_k_major
                int const m = i / BLK_K, k = k0 + i % BLK_K;
//! else
                int const m = i % BLK_M, k = k0 + i / BLK_M;
//! end
                nextA(j) = m0 + m < M && k < until ? mA(m0 + m, k) : 0.0f;
            }
            CUTE_UNROLL
            for (int j = 0; j < MINE; ++j) {
                int const i = threadIdx.x + j * 256;
//! if b_k_major
                int const n = i / BLK_K, k = k0 + i % BLK_K;
//! else
                int const n = i % BLK, k = k0 + i / BLK;
//! end
                nextB(j) = n0 + n < N && k < until ? mB(n0 + n, k) : 0.0f;
            }
            if (k0 > from) {
                CUTE_UNROLL
                for (int k = 0; k < BLK_K; ++k) {
                    Tensor rA = make_tensor<float>(Int<OWN>{}); // (OWN): rows tm * OWN, ...
                    Tensor rB = make_tensor<float>(_8{});       // (8): columns tn * 4, ..., 64 + tn * 4, ...
                    CUTE_UNROLL
                    for (int i = 0; i < OWN; i += 2)
                        *reinterpret_cast<float2 *>(&rA(i)) = *reinterpret_cast<float2 *>(&sA(tm * OWN + i, k, turn ^ 1));
                    CUTE_UNROLL
                    for (int i = 0; i < 8; i += 4)
                        *reinterpret_cast<float4 *>(&rB(i)) = *reinterpret_cast<float4 *>(&sB(tn * 4 + i * 16, k, turn ^ 1));
                    gemm(rA, rB, acc);
                }
                if (k0 % 32 == 0 || k0 >= until) {
                    CUTE_UNROLL
                    for (int i = 0; i < size(acc); ++i) {
                        sum(i) += acc(i);
                        acc(i) = 0.0f;
                    }
                }
            }
            CUTE_UNROLL
            for (int j = 0; j < MINE_M; ++j) {
                int const i = threadIdx.x + j * 256;
//! if a_k_major
                sA(i / BLK_K, i % BLK_K, turn) = nextA(j);
//! else
                sA(i % BLK_M, i / BLK_M, turn) = nextA(j);
//! end
            }
            CUTE_UNROLL
            for (int j = 0; j < MINE; ++j) {
                int const i = threadIdx.x + j * 256;
//! if b_k_major
                sB(i / BLK_K, i % BLK_K, turn) = nextB(j);
//! else
                sB(i % BLK, i / BLK, turn) = nextB(j);
//! end
            }
            __syncthreads();
        }
        CUTE_UNROLL
        for (int i = 0; i < size(sum); ++i) {
            int const m = m0 + tm * OWN + i % OWN, n = n0 + tn * 4 + i / OWN / 4 * 64 + i / OWN % 4;
            if (m < M && n < N)
//! if epilogue and not split_k
                mC(m, n) = ${kernel}_finish(sum(i)$finish);
//! else
                mC(m, n) = sum(i);
//! end
        }
//! if tensor and not both and not triangle
    };
    __shared__ unsigned noted[NOTED / 32];
//! if planes and fuse
    bool const rows_doubted = doubted && note_rows(noted, guard_a, guard_b, count_a, count_b, tiles_m * BLK * L, part_k);
//! elif planes
    bool const rows_doubted = doubted && note_rows(noted, guard_a, guard_b, count_a, count_b, M, part_k);
//! end
//! if planes
    if (!inexact && !rows_doubted)
        return;
    if (rows_doubted && blockIdx.x == 0 && threadIdx.x == 0)
        lost[1] = 1;
    for (int t = blockIdx.x; t < tiles_m * tiles_n; t += gridDim.x)
        compute(Int<BLK>{}, 0, t / tiles_n * BLK, t % tiles_n * BLK);
//! else
//! if fuse
    if (!note_rows(noted, guard_a, guard_b, count_a, count_b, tiles_m * BLK * L, part_k))
        return;
//! elif split_k or a_batched
    if (!note_rows(noted, guard_a, guard_b, count_a, count_b, M * L, part_k))
        return;
//! else
    if (!note_rows(noted, guard_a, guard_b, count_a, count_b, M, part_k))
        return;
//! end
    // By quarters, so that the few tiles of a row that is bad are many blocks' work. A tile that is bad as a whole is one.
    int const tiles = tiles_m * tiles_n * L;
//! if fuse
    int32_t const *rows_a = guard_a + 4; // of each 32
//! else
    int4 const *rows_a = reinterpret_cast<int4 const *>(guard_a) + count_a;
//! end
    int4 const *rows_b = reinterpret_cast<int4 const *>(guard_b) + count_b;
    for (int u = blockIdx.x; u < 4 * tiles; u += gridDim.x) {
        int const t = u % tiles, quarter = u / tiles;
        int const l = t / (tiles_m * tiles_n), m0 = t / tiles_n % tiles_m * BLK, n0 = t % tiles_n * BLK;
        int const rows = cute::min(BLK, M - m0), columns = cute::min(BLK, N - n0);
//! if fuse
        int const from_a = l * tiles_m * 4 + m0 / 32;
//! elif split_k or a_batched
        int64_t const from_a = int64_t(l) * M + m0;
//! else
        int64_t const from_a = m0;
//! end
//! if split_k or b_batched
        int64_t const from_b = int64_t(l) * N + n0;
//! else
        int64_t const from_b = n0;
//! end
//! if fuse
        int const first = from_a, last = from_a + (rows - 1) / 32;
//! else
        int const first = int(from_a / 32), last = int((from_a + rows - 1) / 32);
//! end
        bool noticed = false;
        for (int g = first; g <= last; ++g)
            noticed |= g >= NOTED || (noted[g / 32] >> g % 32 & 1);
        if (!noticed)
            continue;
        int const bits = doubtful_quarters(rows_a + from_a, rows_b + from_b, rows, columns, part_k);
        if (bits == (1 << ceil_div(rows, 32)) - 1 && rows > 32) {
            if (quarter == 0)
                compute(Int<BLK>{}, l, m0, n0);
        } else if (bits >> quarter & 1) {
            compute(_32{}, l, m0 + quarter * 32, n0);
        }
    }
//! end
//! else
    }
//! end
}
