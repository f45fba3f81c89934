// conv_walk.cuh - which rows of the planes a tap reads, and where results go; a part of convolution.cu.

// Along one dimension: tap r of results 0, 1, ... of a phase reads pixels shift, shift + 1, ... of a part of the planes.
struct Tap {
    bool there;
    int part, shift;
};

template <int STRIDE, int PAD, int STEP, unsigned USED>
__device__ inline Tap tap_at(int r, int phase)
{
//! if transposed
    int const at = phase + PAD - r * STEP;
    return {at % STRIDE == 0, 0, at / STRIDE};
//! else
    int const at = r * STEP - PAD, position = (at % STRIDE + STRIDE) % STRIDE;
    return {true, __popc(USED & ((1u << position) - 1)), (at - position) / STRIDE};
//! end
}

__device__ inline Tap tap_d(int t, int phase)
{
    return tap_at<STRIDE_D, PAD_D, STEP_D, USED_D>(t, phase);
}
__device__ inline Tap tap_h(int r, int phase)
{
    return tap_at<STRIDE_H, PAD_H, STEP_H, USED_H>(r, phase);
}
__device__ inline Tap tap_w(int s, int phase)
{
//! if expand
    return {true, 0, 0};
//! elif interleaved
    return {true, 0, LOW_W + s};
//! else
    return tap_at<STRIDE_W, PAD_W, STEP_W, USED_W>(s, phase);
//! end
}

// The phase of a transposed convolution: its results are those at phase + i * stride.
struct Phase {
    int d, h, w;
};

// How many of the taps a phase has.
__device__ inline int taps_of(Phase f)
{
    int count[3] = {0, 0, 0};
    for (int t = 0; t < TAPS_D; ++t)
        count[0] += tap_d(t, f.d).there;
    for (int r = 0; r < TAPS_H; ++r)
        count[1] += tap_h(r, f.h).there;
    for (int s = 0; s < WALK_TAPS_W; ++s)
        count[2] += tap_w(s, f.w).there;
    return count[0] * count[1] * count[2];
}

// How many rows lie between a result's own place in the walk and the pixel that these taps read.
__device__ inline int row_of(Tap d, Tap h, Tap w, int N)
{
    int const part = (d.part * PARTS_H + h.part) * PARTS_W + w.part;
    return part * N * WALK + ((LEAD_D + d.shift) * WALK_H + LEAD_H + h.shift) * WALK_W + LEAD_W + w.shift;
}

// Where the result of a pixel of the walk goes: pixel p of image n; p < 0: it is none.
struct Place {
    int n, p;
};

__device__ inline Place place_of(int pixel, Phase f, int N)
{
    int const n = pixel / WALK, d = pixel / (WALK_H * WALK_W) % WALK_D, h = pixel / WALK_W % WALK_H, v = pixel % WALK_W;
//! if transposed
    int const at_d = d * STRIDE_D + f.d, at_h = h * STRIDE_H + f.h, at_w = v * STRIDE_W + f.w;
//! else
    int const at_d = d, at_h = h, at_w = v;
//! end
    bool const there = n < N && at_d < OUT_D && at_h < OUT_H && at_w < OUT_W;
    return {n, there ? (at_d * OUT_H + at_h) * OUT_W + at_w : -1};
}

