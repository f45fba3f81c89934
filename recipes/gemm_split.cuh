// gemm_split.cuh - fp32 operands split into fp16 parts before the product; a part of gemm_sm90.cu.

// What a row of A or a column of B is like.
struct Stats {
    unsigned top, low; // bits of the largest magnitude; of the smallest that is not zero, less one
    int sum, zeros;    // of the exponents of what is not zero; how many are zero
//! if cut_matters
    unsigned ends;     // bits that any element has

    __device__ void start() { top = 0, low = ~0u, sum = 0, zeros = 0, ends = 0; }
//! else

    __device__ void start() { top = 0, low = ~0u, sum = 0, zeros = 0; }
//! end
    __device__ void add(float x)
    {
        unsigned const bits = __float_as_uint(x) & 0x7fffffffu;
        top = cute::max(top, bits);
        low = cute::min(low, bits - 1);
        sum += int(bits >> 23);
        zeros += bits == 0;
//! if cut_matters
        ends |= bits;
//! end
    }
    __device__ void add(float4 v) { add(v.x), add(v.y), add(v.z), add(v.w); }
    __device__ void add(Stats const &o)
    {
        top = cute::max(top, o.top), low = cute::min(low, o.low), sum += o.sum, zeros += o.zeros;
//! if cut_matters
        ends |= o.ends;
//! end
    }
    // The exponent of the largest magnitude, biased, and where that is out of range what is used
    // instead.
    __device__ int exponent() const { return top == 0 ? 127 : int(top >> 23); }
    __device__ int used() const { return cute::min(cute::max(exponent(), 67), 187); }
    __device__ float scale() const { return __uint_as_float(unsigned(268 - used()) << 23); }   // to [2^14,2^15)
    __device__ float unscale() const { return __uint_as_float(unsigned(used() - 14) << 23); }
//! if cut_matters
    // Negative where sums are cut: elements have more bits than their high parts, and few are zero.
    __device__ float marked(int count) const { return (ends & 0x1fffu) && zeros <= count / 4 ? -unscale() : unscale(); }
    // Of the largest only the exponent matters.
    __device__ int4 packed() const { return make_int4(int((top & 0x7f800000u) | (ends & 0x7fffffu)), int(low), sum, zeros); }
//! else
    __device__ int4 packed() const { return make_int4(int(top), int(low), sum, zeros); }
//! end
    // {how far the exponents lie below the largest, in sum; zeros; bits may be lost; may not be
    // split at all}
    __device__ int4 guard(int count) const
    {
        int const e = exponent();
        bool const deep = int((low + 1) >> 23) < e - 16;
        if (top == 0)
            return make_int4(0, 0, 0, 0);
//! if triangle
        // Which of the zeros a sum meets is not known here: the mean stands for all of them, in 1/16.
        return make_int4(((count - zeros) * e - sum) * 16 / (count - zeros), 0, deep, e != used());
//! else
        return make_int4((count - zeros) * e - sum, zeros, deep, e != used());
//! end
    }
};

__device__ inline Stats unpacked(int4 p)
{
//! if cut_matters
    return Stats{unsigned(p.x), unsigned(p.y), p.z, p.w, unsigned(p.x) & 0x7fffffu};
//! else
    return Stats{unsigned(p.x), unsigned(p.y), p.z, p.w};
//! end
}

//! end
//! if tensor
__device__ inline int4 worse(int4 a, int4 b)
{
    return make_int4(cute::max(a.x, b.x), cute::max(a.y, b.y), a.z | b.z, a.w | b.w);
}

//! end
//! if tensor and not both
// Four elements of a plane of high parts, and of the plane of low parts behind it.
__device__ inline void put_split(float4 v, float4 scale, half_t *to, int64_t plane)
{
    float const x[4] = {v.x * scale.x, v.y * scale.y, v.z * scale.z, v.w * scale.w};
    alignas(8) half_t hi[4], lo[4];
    CUTE_UNROLL
    for (int i = 0; i < 4; ++i) {
        hi[i] = half_t(x[i]);
        lo[i] = half_t(x[i] - float(hi[i]));
    }
    *reinterpret_cast<uint2 *>(to) = *reinterpret_cast<uint2 *>(hi);
    *reinterpret_cast<uint2 *>(to + plane) = *reinterpret_cast<uint2 *>(lo);
}

//! if fuse
// Where element k of B lies in its planes: the tensor core takes from a thread k = 2t, 2t+1, 2t+8 and
// 2t+9 of each sixteen; A's are 4t to 4t+3 in memory, one vector, and B is put in the same order.
__device__ inline int place_of(int k)
{
    return k / 16 * 16 + k / 4 % 4 * 2 + k / 2 % 2 * 8 + k % 2;
}

// As put_split, for four elements along k.
__device__ inline void put_split_k(float4 v, float scale, half_t *row, int k, int64_t plane)
{
    alignas(8) half_t part[8];
    float const x[4] = {v.x * scale, v.y * scale, v.z * scale, v.w * scale};
    CUTE_UNROLL
    for (int i = 0; i < 4; ++i) {
        part[i] = half_t(x[i]);
        part[i + 4] = half_t(x[i] - float(part[i]));
    }
    half_t *to = row + place_of(k);
    CUTE_UNROLL
    for (int i = 0; i < 4; ++i)
        *reinterpret_cast<unsigned *>(to + i / 2 * plane + i % 2 * 8) =
            reinterpret_cast<unsigned *>(part)[i];
}

//! end
// Products l = 0, 1, ... have K terms each, the last one what is left of K_all.
__device__ inline int length_of(int l, int K, int64_t K_all)
{
    return int(cute::min(int64_t(K), K_all - int64_t(l) * K));
}

template <bool VECTORS>
__device__ inline float4 fetch_four(float const *x, int left)
{
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if constexpr (VECTORS) {
        if (left > 0)
            v = *reinterpret_cast<float4 const *>(x);
    } else {
        if (left > 0)
            v.x = x[0];
        if (left > 1)
            v.y = x[1];
        if (left > 2)
            v.z = x[2];
        if (left > 3)
            v.w = x[3];
    }
    return v;
}

//! if a_k_major and not fuse or b_k_major
// Splits rows that are contiguous along k: THREADS threads hold a row, or its beginning, in registers.
template <int THREADS, bool VECTORS>
__global__ void __launch_bounds__(512, 2)
    ${kernel}_split_rows(float const *X, uint16_t *planes, float *scales, int32_t *guard, int rows, int L, int K,
                         int64_t K_all, int64_t x_row, int64_t x_l, int ld, int begins)
{
    constexpr int HELD = 8, ROWS = 512 / THREADS, WARPS = THREADS / 32;
    unsigned const together = THREADS < 32 ? 0xffffu << (threadIdx.x & 16) : ~0u; // of a warp, on a row
    __shared__ Stats part[16];
    __shared__ int4 worst[ROWS];
    int const t = threadIdx.x % THREADS, mine = threadIdx.x / THREADS;
    int const k0 = t * 4; // the thread has k0, k0 + 4 * THREADS, ...
    int64_t const plane = int64_t(rows) * L * ld;
    int4 bad = make_int4(0, 0, 0, 0);

    if (begins) // with what earlier kernels made; those behind it, with what this one lets begin
        cutegen_wait_for_earlier();
//! if overlap
    cutegen_let_next_begin();
//! end
    for (int first = blockIdx.x * ROWS; first < rows * L; first += gridDim.x * ROWS) {
        int const row = first + mine;
        int const length = row < rows * L ? length_of(row / rows, K, K_all) : 0;
        float const *x = X + row / rows * x_l + row % rows * x_row;
//! if triangle and upper_upper
        int const from = row / TILE_M * TILE_M, until = K; // what the row's tile reads
//! elif triangle
        int const from = 0, until = (row / TILE_M + 1) * TILE_M; // what the row's tile reads
//! end
        float4 v[HELD];
        Stats s;
        CUTE_UNROLL
        for (int i = 0; i < HELD; ++i) {
            int const k = k0 + i * THREADS * 4;
//! if triangle
            v[i] = fetch_four<VECTORS>(x + k, k >= from && k < until ? length - k : 0);
//! else
            v[i] = fetch_four<VECTORS>(x + k, length - k);
//! end
        }
        s.start();
        CUTE_UNROLL
        for (int i = 0; i < HELD; ++i)
            s.add(v[i]);
        int seen = HELD * 4;
        for (int k = k0 + HELD * THREADS * 4; k < length; k += THREADS * 4, seen += 4)
            s.add(fetch_four<VECTORS>(x + k, length - k));
        s.zeros -= seen; // what was seen behind the end counts as zeros; it is taken off below
        s.top = __reduce_max_sync(together, s.top);
        s.low = __reduce_min_sync(together, s.low);
        s.sum = __reduce_add_sync(together, s.sum);
        s.zeros = __reduce_add_sync(together, s.zeros);
//! if cut_matters
        s.ends = __reduce_or_sync(together, s.ends);
//! end
        if constexpr (WARPS > 1) {
            __syncthreads();
            if (threadIdx.x % 32 == 0)
                part[threadIdx.x / 32] = s;
            __syncthreads();
            s = part[mine * WARPS];
            for (int i = 1; i < WARPS; ++i)
                s.add(part[mine * WARPS + i]);
        }
        s.zeros += length; // now: zeros among the elements of the row
        if (row < rows * L) {
            float const f = s.scale();
            half_t *to = reinterpret_cast<half_t *>(planes) + int64_t(row) * ld;
            if (t == 0) {
//! if cut_matters
                scales[row] = s.marked(length);
//! else
                scales[row] = s.unscale();
//! end
                int4 const g = s.guard(length);
                bad = worse(bad, g);
                reinterpret_cast<int4 *>(guard)[gridDim.x + row] = g;
            }
//! if fuse
            CUTE_UNROLL
            for (int i = 0; i < HELD; ++i) {
                int const k = k0 + i * THREADS * 4;
                if (k < ld)
                    put_split_k(v[i], f, to, k, plane);
            }
            for (int k = k0 + HELD * THREADS * 4; k < ld; k += THREADS * 4)
                put_split_k(fetch_four<VECTORS>(x + k, length - k), f, to, k, plane);
//! else
            CUTE_UNROLL
            for (int i = 0; i < HELD; ++i) {
                int const k = k0 + i * THREADS * 4;
//! if triangle
                if (k < K && k >= from && k < until)
//! else
                if (k < K)
//! end
                    put_split(v[i], make_float4(f, f, f, f), to + k, plane);
            }
            for (int k = k0 + HELD * THREADS * 4; k < K; k += THREADS * 4)
                put_split(fetch_four<VECTORS>(x + k, length - k), make_float4(f, f, f, f), to + k, plane);
//! end
        }
    }
    if (t == 0)
        worst[mine] = bad;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < ROWS; ++i)
            bad = worse(bad, worst[i]);
        reinterpret_cast<int4 *>(guard)[blockIdx.x] = bad;
    }
    cutegen_wait_for_earlier(); // its end is the end of all before it, too
}

//! end
//! if not a_m_major and not b_n_major
//! elif once
// For operands that are contiguous along m or n, "columns" here. A cluster holds all of K for 32 columns in
// its registers: each block finds what its rows are like, all read that from each other, and split.
template <int HELD, bool VECTORS>
__global__ void __launch_bounds__(512, HELD > 8 ? 1 : 2)
    ${kernel}_split_strip(float const *X, uint16_t *planes, float *scales, int32_t *guard, int columns, int K,
                          int64_t K_all, int64_t x_k, int64_t x_l, int ld, int begins)
{
    __shared__ Stats part[16][32];
    __shared__ int4 mine[32];
    alignas(16) __shared__ float factor[32];
    int const lane = threadIdx.x % 32, warp = threadIdx.x / 32, quad = threadIdx.x % 8;
    int const first = blockIdx.y * 32, column = first + quad * 4, length = length_of(blockIdx.z, K, K_all);
    int const k0 = blockIdx.x * HELD * 64 + threadIdx.x / 8; // the thread has k0, k0 + 64, ...
//! if fuse
    int const deep = (K + 15) / 16 * 16; // rows of the planes
//! else
    int const deep = K; // rows of the planes
//! end
//! if triangle and upper_upper
    int const from = 0, until = cute::min(length, (first / TILE_N + 1) * TILE_N);
//! elif triangle
    int const from = first / TILE_N * TILE_N, until = length;
//! else
    int const from = 0, until = length;
//! end
    float const *x = X + blockIdx.z * x_l + column;
    float4 v[HELD];
    Stats s[4];

    if (begins) // with what earlier kernels made; those behind it, with what this one lets begin
        cutegen_wait_for_earlier();
//! if overlap
    cutegen_let_next_begin();
//! end
    CUTE_UNROLL
    for (int i = 0; i < HELD; ++i) {
        int const k = k0 + i * 64;
        v[i] = fetch_four<VECTORS>(x + k * x_k, k >= from && k < until ? columns - column : 0);
    }
    CUTE_UNROLL
    for (int i = 0; i < 4; ++i)
        s[i].start();
    CUTE_UNROLL
    for (int i = 0; i < HELD; ++i)
        s[0].add(v[i].x), s[1].add(v[i].y), s[2].add(v[i].z), s[3].add(v[i].w);
    CUTE_UNROLL
    for (int i = 0; i < 4; ++i) {
        CUTE_UNROLL
        for (int far = 8; far < 32; far *= 2) {
            Stats o = {__shfl_xor_sync(~0u, s[i].top, far), __shfl_xor_sync(~0u, s[i].low, far),
                       __shfl_xor_sync(~0u, s[i].sum, far), __shfl_xor_sync(~0u, s[i].zeros, far)};
//! if cut_matters
            o.ends = __shfl_xor_sync(~0u, s[i].ends, far);
//! end
            s[i].add(o);
        }
        if (lane < 8)
            part[warp][lane * 4 + i] = s[i];
    }
    __syncthreads();
    if (warp == 0) {
        Stats all = part[0][lane];
        for (int i = 1; i < 16; ++i)
            all.add(part[i][lane]);
        mine[lane] = all.packed();
    }
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    if (warp == 0) {
        Stats all;
        all.start();
        for (unsigned i = 0; i < gridDim.x; ++i) {
            int4 p;
            asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(p.x), "=r"(p.y), "=r"(p.z), "=r"(p.w)
                         : "r"(set_block_rank(cast_smem_ptr_to_uint(&mine[lane]), i))
                         : "memory");
            all.add(unpacked(p));
        }
        // What was seen outside counts as zeros.
        all.zeros -= int(gridDim.x) * HELD * 64 - (until - from);
        factor[lane] = all.scale();
        if (blockIdx.x == 0) {
            int4 w = all.guard(until - from);
            if (first + lane < columns) {
                int64_t const at = int64_t(blockIdx.z) * columns + first + lane;
//! if cut_matters
                scales[at] = all.marked(until - from);
//! else
                scales[at] = all.unscale();
//! end
                reinterpret_cast<int4 *>(guard)[gridDim.y * gridDim.z + at] = w;
            }
            for (int far = 1; far < 32; far *= 2)
                w = worse(w, make_int4(__shfl_xor_sync(~0u, w.x, far), __shfl_xor_sync(~0u, w.y, far),
                                       __shfl_xor_sync(~0u, w.z, far), __shfl_xor_sync(~0u, w.w, far)));
            if (lane == 0)
                reinterpret_cast<int4 *>(guard)[blockIdx.z * gridDim.y + blockIdx.y] = w;
        }
    }
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    __syncthreads();
    if (column < ld) {
        half_t *to = reinterpret_cast<half_t *>(planes) + int64_t(blockIdx.z) * deep * ld + column;
        int64_t const plane = int64_t(gridDim.z) * deep * ld;
        float4 const f = *reinterpret_cast<float4 *>(&factor[quad * 4]);
        CUTE_UNROLL
        for (int i = 0; i < HELD; ++i) {
            int const k = k0 + i * 64;
//! if triangle
            if (k >= from && k < until)
//! else
            if (k < deep)
//! end
//! if fuse
                put_split(v[i], f, to + int64_t(place_of(k)) * ld, plane);
//! else
                put_split(v[i], f, to + int64_t(k) * ld, plane);
//! end
        }
    }
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); // no block leaves while another may still read from it
    cutegen_wait_for_earlier(); // its end is the end of all before it, too
}

//! else
// For operands that are contiguous along m or n, "columns" here: first what the columns are like.
template <bool VECTORS>
__global__ void __launch_bounds__(256)
    ${kernel}_look_columns(float const *X, int32_t *stats, int columns, int K, int64_t K_all, int64_t x_k,
                           int64_t x_l, int rows, int begins)
{
    __shared__ Stats part[8][128];
    int const lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int const length = length_of(blockIdx.z, K, K_all);
//! if triangle and upper_upper
    int const from = 0, until = cute::min(length, (int(blockIdx.x) * 128 / TILE_N + 1) * TILE_N);
//! elif triangle
    int const from = int(blockIdx.x) * 128 / TILE_N * TILE_N, until = length;
//! else
    int const from = 0, until = length;
//! end
    int const column = blockIdx.x * 128 + lane * 4, end = cute::min(until, int(blockIdx.y + 1) * rows);
    float const *x = X + blockIdx.z * x_l + column;
    Stats s[4];
    if (begins) // with what earlier kernels made; those behind it, with what this one lets begin
        cutegen_wait_for_earlier();
//! if overlap
    cutegen_let_next_begin();
//! end
    CUTE_UNROLL
    for (int i = 0; i < 4; ++i)
        s[i].start();
#pragma unroll 8
    for (int k = cute::max(int(blockIdx.y) * rows, from) + warp; k < end; k += 8) {
        float4 const v = fetch_four<VECTORS>(x + k * x_k, columns - column);
        s[0].add(v.x), s[1].add(v.y), s[2].add(v.z), s[3].add(v.w);
    }
    CUTE_UNROLL
    for (int i = 0; i < 4; ++i)
        part[warp][lane * 4 + i] = s[i];
    __syncthreads();
    int const c = blockIdx.x * 128 + threadIdx.x;
    if (threadIdx.x < 128 && c < columns) {
        Stats all = part[0][threadIdx.x];
        for (int i = 1; i < 8; ++i)
            all.add(part[i][threadIdx.x]);
        reinterpret_cast<int4 *>(stats)[(int64_t(blockIdx.z) * gridDim.y + blockIdx.y) * columns + c] = all.packed();
    }
    cutegen_wait_for_earlier(); // its end is the end of all before it, too
}

// Then the split, the last rows first: they were read last and are still in L2.
template <bool VECTORS>
__global__ void __launch_bounds__(256)
    ${kernel}_split_columns(float const *X, int32_t const *stats, uint16_t *planes, float *scales, int32_t *guard,
                            int columns, int K, int64_t K_all, int64_t x_k, int64_t x_l, int rows, int ld)
{
    int const length = length_of(blockIdx.z, K, K_all);
    __shared__ float factor[128];
    __shared__ int4 worst[128];
    int const lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int const part = gridDim.y - 1 - blockIdx.y;
//! if fuse
    int const deep = (K + 15) / 16 * 16; // rows of the planes
//! else
    int const deep = K; // rows of the planes
//! end
//! if triangle and upper_upper
    int const from = 0, until = cute::min(length, (int(blockIdx.x) * 128 / TILE_N + 1) * TILE_N);
//! elif triangle
    int const from = int(blockIdx.x) * 128 / TILE_N * TILE_N, until = length;
//! else
    int const from = 0, until = length;
//! end
//! if triangle
    int const column = blockIdx.x * 128 + lane * 4, end = cute::min(until, (part + 1) * rows);
//! else
    int const column = blockIdx.x * 128 + lane * 4, end = cute::min(deep, (part + 1) * rows);
//! end
    int64_t const plane = int64_t(gridDim.z) * deep * ld;

//! if overlap
    cutegen_let_next_begin();
    cutegen_wait_for_earlier();
//! end
    if (threadIdx.x < 128) {
        int const c = blockIdx.x * 128 + threadIdx.x;
        Stats s;
        s.start();
        for (int i = 0; c < columns && i < int(gridDim.y); ++i) {
            s.add(unpacked(reinterpret_cast<int4 const *>(stats)[(int64_t(blockIdx.z) * gridDim.y + i) * columns + c]));
        }
        factor[threadIdx.x] = s.scale();
        worst[threadIdx.x] = s.guard(until - from);
        if (part == 0 && c < columns) {
            int64_t const at = int64_t(blockIdx.z) * columns + c;
//! if cut_matters
            scales[at] = s.marked(until - from);
//! else
            scales[at] = s.unscale();
//! end
            reinterpret_cast<int4 *>(guard)[gridDim.x * gridDim.z + at] = worst[threadIdx.x];
        }
    }
    __syncthreads();
    if (part == 0 && threadIdx.x == 0) {
        int4 w = worst[0];
        for (int i = 1; i < 128; ++i)
            w = worse(w, worst[i]);
        reinterpret_cast<int4 *>(guard)[blockIdx.z * gridDim.x + blockIdx.x] = w;
    }
    if (column >= ld)
        return;
    float const *x = X + blockIdx.z * x_l + column;
    half_t *to = reinterpret_cast<half_t *>(planes) + int64_t(blockIdx.z) * deep * ld + column;
    float4 const f = *reinterpret_cast<float4 *>(&factor[lane * 4]);
#pragma unroll 8
    for (int k = cute::max(part * rows, from) + warp; k < end; k += 8)
//! if fuse
        put_split(fetch_four<VECTORS>(x + k * x_k, k < length ? columns - column : 0), f,
                  to + int64_t(place_of(k)) * ld, plane);
//! else
        put_split(fetch_four<VECTORS>(x + k * x_k, k < length ? columns - column : 0), f,
                  to + int64_t(k) * ld, plane);
//! end
}

//! end
