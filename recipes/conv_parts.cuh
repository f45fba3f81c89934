// conv_parts.cuh - adds up a result's parts, which several blocks have summed; a part of convolution.cu.

__global__ void __launch_bounds__(256)
    ${kernel}_add_parts(float const *partial, unsigned const *state, int pitch, $params)
{
//! if overlap
    cutegen_wait_for_earlier();
    cutegen_let_next_begin();
//! end
//! if not narrow
    if (state[1] != 0) { // the split may have lost bits that matter
        every_result($names);
        return;
    }
//! end
    int64_t const own = int64_t(blockIdx.x) * 256 + threadIdx.x, all = int64_t(N) * C_OUT * PIXELS;
    int64_t const i = own < all ? own : 0; // whole warps stay
    int const p = i % PIXELS, k = i / PIXELS % C_OUT, n = i / (int64_t(PIXELS) * C_OUT);
    Tensor mPart = make_tensor(make_gmem_ptr(partial), make_shape(pitch, Int<ROWS_K>{}, Int<SPLITS>{})); // (pitch,ROWS_K,SPLITS)
    Tensor mY = make_tensor(make_gmem_ptr(y), make_shape(Int<PIXELS>{}, Int<C_OUT>{}, N), make_stride($y_p, $y_k, int64_t(PIXELS) * C_OUT)); // (PIXELS,C_OUT,N)
//! each leaf
    Tensor m$X = make_tensor(make_gmem_ptr($x), make_shape(N, Int<C_OUT>{}, Int<PIXELS>{}), make_stride($n, $k, $p)); // (N,C_OUT,PIXELS)
//! end
    int const d = p / (OUT_H * OUT_W), h = p / OUT_W % OUT_H, v = p % OUT_W;
    int const pixel = ((n * WALK_D + d) * WALK_H + h) * WALK_W + v; // of the walk
    float part[SPLITS], acc = 0.0f;
    CUTE_UNROLL
    for (int s = 0; s < SPLITS; ++s)
        part[s] = mPart(pixel, k, s);
    CUTE_UNROLL
    for (int s = 0; s < SPLITS; ++s)
        acc += part[s];
//! if epilogue
    float const result = ${kernel}_finish(acc$finish);
//! else
    float const result = acc;
//! end
    if (own < all)
        mY(p, k, n) = $y_type(result);
//! if noted
    note_top(top, magnitude_of(result));
//! end
}
