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
//! if noted and tensor
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

//! if not tensor
__global__ void __launch_bounds__(256)
    ${kernel}_plain($params)
{
    every_result($names);
}

//! end
