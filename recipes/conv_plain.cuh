// conv_plain.cuh - each result by itself; a part of convolution.cu.

// All results, divided among the threads of the grid.
__device__ inline void every_result($params)
{
    Tensor mY = make_tensor(make_gmem_ptr(y), make_shape(Int<PIXELS>{}, Int<C_OUT>{}, N), make_stride($y_p, $y_k, int64_t(PIXELS) * C_OUT)); // (PIXELS,C_OUT,N)
//! each leaf
    Tensor m$X = make_tensor(make_gmem_ptr($x), make_shape(N, Int<C_OUT>{}, Int<PIXELS>{}), make_stride($n, $k, $p)); // (N,C_OUT,PIXELS)
//! end
    int64_t const all = int64_t(N) * C_OUT * PIXELS, step = int64_t(gridDim.x) * gridDim.y * blockDim.x;
    int64_t const start = (int64_t(blockIdx.y) * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;
//! if noted
    unsigned mine = 0;
//! end
//! if chained and hands
    unsigned bad = 0;
    int const seat = threadIdx.x % 32, seats = 32;
//! include conv_bound
    float const scale_of_behind = scale_behind(bound);
    if (behind.there) {
        zeros_behind(behind, planes_behind, start, step, N);
        if (start / 32 == 0)
            tell_behind(behind, words, bound);
    }
//! end
    auto const one = [&](int p, int k, int n) {
        float const acc = convolve(x, w, n, k, p, x_n, x_c, x_d, x_h, x_w);
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
//! if chained and hands
        if (behind.there)
            hand_one(behind, planes_behind, n, p, k, result, scale_of_behind, N, bad);
//! end
    };
    if (all + step < int64_t(1) << 32) { // divisions of 32 bits take a third of the time
#pragma unroll 1
        for (unsigned i = unsigned(start); i < unsigned(all); i += unsigned(step))
            one(int(i % PIXELS), int(i / PIXELS % C_OUT), int(i / PIXELS / C_OUT));
    } else {
#pragma unroll 1
        for (int64_t i = start; i < all; i += step)
            one(int(i % PIXELS), int(i / PIXELS % C_OUT), int(i / PIXELS / C_OUT));
    }
//! if chained and hands
    if (behind.there)
        doubt_behind(behind, words, bad);
//! end
//! if chained and hands
    note_top(words + behind.noted, mine);
//! elif noted and tensor
    note_top(top, mine);
//! elif noted
    __shared__ unsigned tops[8]; // there are many blocks: a block's largest first
    mine = __reduce_max_sync(~0u, mine);
    if (threadIdx.x % 32 == 0)
        tops[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x < 32)
        note_top(top, tops[threadIdx.x % 8]);
//! end
}

//! if not tensor and chained and hands
// What the launch that prepares weights does for these: sums of magnitudes of 256 channels.
__device__ inline void join_weights($w_type const *w, unsigned char *memory, float *, int line)
{
    constexpr int EACH = C_EACH * TAPS_D * TAPS_H * TAPS_W;
    int const k = line * 256 + threadIdx.x;
    Tensor mNorm = make_tensor(make_gmem_ptr(reinterpret_cast<float *>(memory)), Int<C_OUT>{}); // (C_OUT)
//! if transposed
    Tensor mW = make_tensor(make_gmem_ptr(w), Layout<Shape<Shape<Int<TAPS_D * TAPS_H * TAPS_W>, Int<C_EACH>>, Shape<Int<C_OUT / GROUPS>, Int<GROUPS>>>, Stride<Stride<_1, Int<C_OUT / GROUPS * TAPS_D * TAPS_H * TAPS_W>>, Stride<Int<TAPS_D * TAPS_H * TAPS_W>, Int<C_OUT / GROUPS * C_EACH * TAPS_D * TAPS_H * TAPS_W>>>>{}); // (EACH,C_OUT)
//! else
    Tensor mW = make_tensor(make_gmem_ptr(w), Layout<Shape<Int<EACH>, Int<C_OUT>>>{}); // (EACH,C_OUT)
//! end
    float norm = 0.0f;
    for (int i = 0; k < C_OUT && i < EACH; ++i)
        norm += fabsf(mW(i, k));
    if (k < C_OUT)
        mNorm(k) = norm;
}

__global__ void __launch_bounds__(256)
    ${kernel}_plain($params)
{
//! include conv_pixels
    float sum[8], result[8];
    CUTE_UNROLL
    for (int i = 0; i < 8; ++i)
        sum[i] = convolve(x, w, n, cute::min(k0 + i, C_OUT - 1), p, x_n, x_c, x_d, x_h, x_w);
//! include conv_eights
}

//! elif not tensor
__global__ void __launch_bounds__(256)
    ${kernel}_plain($params)
{
    every_result($names);
}

//! end
