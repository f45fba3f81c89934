// gemm_guard.cuh - what the split may have lost, found and computed again; a part of gemm_sm90.cu.

// May the split have lost bits that matter? Of elements more than 2^16 below the largest of their
// row it drops at most 2^-39 of that. The sum of |a b| is, by the inequality of the means over the
// terms with both factors, at least their number times 2^(mean of the exponents); so where both
// sides' exponents are not far below, nothing is lost. Sums of a few terms (a permutation, say)
// must be exact to the last bit, which the split does not hold.
__device__ inline bool must_repeat(int32_t const *guard_a, int32_t const *guard_b, int count_a, int count_b, int K)
{
    __shared__ int worst[6];
    int4 a = make_int4(0, 0, 0, 0), b = a;
    for (int i = threadIdx.x; i < count_a; i += blockDim.x)
        a = worse(a, reinterpret_cast<int4 const *>(guard_a)[i]);
    for (int i = threadIdx.x; i < count_b; i += blockDim.x)
        b = worse(b, reinterpret_cast<int4 const *>(guard_b)[i]);
    if (threadIdx.x < 6)
        worst[threadIdx.x] = 0;
    __syncthreads();
    atomicMax(&worst[0], a.x), atomicMax(&worst[1], a.y), atomicMax(&worst[2], a.z + 2 * a.w);
    atomicMax(&worst[3], b.x), atomicMax(&worst[4], b.y), atomicMax(&worst[5], b.z + 2 * b.w);
    __syncthreads();
    bool const outside = cute::max(worst[2], worst[5]) > 1, deep = cute::max(worst[2], worst[5]) == 1;
//! if triangle
    return outside || (deep && worst[0] + worst[3] > 12 * 16);
//! else
    int const both = K - worst[1] - worst[4]; // terms with both factors, at least
    if (K - cute::max(worst[1], worst[4]) < 16)
        return true;
    return outside || (deep && (both < ceil_div(K, 8) || worst[0] + worst[3] > 12 * both));
//! end
}

//! end
// The product on the FMA units: 8x8 per thread, sums of 32 terms added up.
//! if split_k
__global__ void __launch_bounds__(256)
    ${kernel}_repeat(int32_t const *guard_a, int32_t const *guard_b, int count_a, int count_b, float *partial, int part_k,
                     int L, $params)
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
    asm volatile("griddepcontrol.wait;" ::: "memory");
//! end
//! if split_k and overlap
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
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
//! else
    if (!must_repeat(guard_a, guard_b, count_a, count_b, part_k))
        return;
//! end
//! end
    for (int t = blockIdx.x; t < tiles_m * tiles_n * L; t += gridDim.x) {
        int const l = t / (tiles_m * tiles_n), m0 = t / tiles_n % tiles_m * BLK, n0 = t % tiles_n * BLK;
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
        Tensor acc = make_tensor<float>(Shape<_8, _8>{}); // (8,8)
        Tensor sum = make_tensor<float>(Shape<_8, _8>{}); // (8,8)
        Tensor nextA = make_tensor<float>(Int<MINE>{});   // (MINE)
        Tensor nextB = make_tensor<float>(Int<MINE>{});   // (MINE)
        clear(acc);
        clear(sum);
        __syncthreads(); // the tile before is no longer read
        // A turn fetches a block of k and multiplies the one before.
#pragma unroll 1
        for (int k0 = from, turn = 0; k0 < until + BLK_K; k0 += BLK_K, turn ^= 1) {
            CUTE_UNROLL
            for (int j = 0; j < MINE; ++j) {
                int const i = threadIdx.x + j * 256;
//! if a_k_major
                int const m = i / BLK_K, ka = i % BLK_K;
//! else
                int const m = i % BLK, ka = i / BLK;
//! end
//! if b_k_major
                int const n = i / BLK_K, kb = i % BLK_K;
//! else
                int const n = i % BLK, kb = i / BLK;
//! end
                nextA(j) = m0 + m < M && k0 + ka < until ? mA(m0 + m, k0 + ka) : 0.0f;
                nextB(j) = n0 + n < N && k0 + kb < until ? mB(n0 + n, k0 + kb) : 0.0f;
            }
            if (k0 > from) {
                CUTE_UNROLL
                for (int k = 0; k < BLK_K; ++k) {
                    Tensor rA = make_tensor<float>(_8{}); // (8): rows tm * 8, ...
                    Tensor rB = make_tensor<float>(_8{}); // (8): columns tn * 4, ..., 64 + tn * 4, ...
                    CUTE_UNROLL
                    for (int i = 0; i < 8; i += 4) {
                        *reinterpret_cast<float4 *>(&rA(i)) = *reinterpret_cast<float4 *>(&sA(tm * 8 + i, k, turn ^ 1));
                        *reinterpret_cast<float4 *>(&rB(i)) = *reinterpret_cast<float4 *>(&sB(tn * 4 + i * 16, k, turn ^ 1));
                    }
                    gemm(rA, rB, acc);
                }
                if (k0 % 32 == 0 || k0 >= until) {
                    CUTE_UNROLL
                    for (int i = 0; i < 64; ++i) {
                        sum(i) += acc(i);
                        acc(i) = 0.0f;
                    }
                }
            }
            CUTE_UNROLL
            for (int j = 0; j < MINE; ++j) {
                int const i = threadIdx.x + j * 256;
//! if a_k_major
                sA(i / BLK_K, i % BLK_K, turn) = nextA(j);
//! else
                sA(i % BLK, i / BLK, turn) = nextA(j);
//! end
//! if b_k_major
                sB(i / BLK_K, i % BLK_K, turn) = nextB(j);
//! else
                sB(i % BLK, i / BLK, turn) = nextB(j);
//! end
            }
            __syncthreads();
        }
        CUTE_UNROLL
        for (int i = 0; i < 64; ++i) {
            int const m = m0 + tm * 8 + i % 8, n = n0 + tn * 4 + i / 32 * 64 + i / 8 % 4;
            if (m < M && n < N)
//! if epilogue and not split_k
                mC(m, n) = ${kernel}_finish(sum(i)$finish);
//! else
                mC(m, n) = sum(i);
//! end
        }
    }
}
