// conv_plain.cuh - each result by itself; a part of convolution.cu.
//! if tensor and not narrow
// Computes everything again, where the split may have lost bits that matter.
__global__ void __launch_bounds__(256)
    ${kernel}_repeat(unsigned const *state, $params)
//! else
__global__ void __launch_bounds__(256)
    ${kernel}_plain($params)
//! end
{
    Tensor mY = make_tensor(make_gmem_ptr(y), make_shape(Int<PIXELS>{}, Int<C_OUT>{}, N), make_stride(_1{}, int64_t(PIXELS), int64_t(PIXELS) * C_OUT)); // (PIXELS,C_OUT,N)
//! each leaf
    Tensor m$X = make_tensor(make_gmem_ptr($x), make_shape(N, Int<C_OUT>{}, Int<PIXELS>{}), make_stride($n, $k, $p)); // (N,C_OUT,PIXELS)
//! end
    int64_t const all = int64_t(N) * C_OUT * PIXELS;
//! if tensor and overlap and not narrow
    asm volatile("griddepcontrol.wait;" ::: "memory");
//! end
//! if tensor and not narrow
    if (state[1] == 0)
        return;
//! end
    for (int64_t i = int64_t(blockIdx.x) * 256 + threadIdx.x; i < all; i += int64_t(gridDim.x) * 256) {
        int const p = int(i % PIXELS), k = int(i / PIXELS % C_OUT), n = int(i / PIXELS / C_OUT);
        float const acc = convolve(x, w, n, k, p, x_n, x_c, x_d, x_h, x_w);
//! if epilogue
        mY(p, k, n) = $y_type(${kernel}_finish(acc$finish));
//! else
        mY(p, k, n) = $y_type(acc);
//! end
    }
}

