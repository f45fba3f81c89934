// conv_pixels.cuh - which eight channels of which pixel a thread has; a part of convolution.cu.
    // A warp has 32 pixels of eight channels, which are neighbours in the planes of the convolution behind.
    constexpr int EIGHTS = (C_OUT + 7) / 8;
    __shared__ unsigned bounds[8];
    int const thread = blockIdx.x * 256 + threadIdx.x, pixels = N * PIXELS;
    int const run = thread / 32 / EIGHTS, k0 = thread / 32 % EIGHTS * 8, own = run * 32 + threadIdx.x % 32;
    bool const there = own < pixels;
    int const p = (there ? own : 0) % PIXELS, n = (there ? own : 0) / PIXELS;
    Tensor mY = make_tensor(make_gmem_ptr(y), make_shape(Int<PIXELS>{}, Int<C_OUT>{}, N), make_stride($y_p, $y_k, int64_t(PIXELS) * C_OUT)); // (PIXELS,C_OUT,N)
//! each leaf
    Tensor m$X = make_tensor(make_gmem_ptr($x), make_shape(N, Int<C_OUT>{}, Int<PIXELS>{}), make_stride($n, $k, $p)); // (N,C_OUT,PIXELS)
//! end
