"""A convolution (any filter, stride 1, zero padding that keeps the size, bias) in Triton, as a matrix product without
a matrix of patches: a program owns output channels x pixels of one image and walks over taps and channels.

Judge it:  cutegen eval examples/conv2d.py examples/triton/conv2d.py
"""
import triton
import triton.language as tl


@triton.jit
def conv(
    x, w, bias, y, C, CO, H, W,
    R: tl.constexpr, S: tl.constexpr, BO: tl.constexpr, BP: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    image = tl.program_id(2).to(tl.int64)
    out = tl.program_id(1) * BO + tl.arange(0, BO)  # (BO) output channels
    pixel = tl.program_id(0) * BP + tl.arange(0, BP)  # (BP) pixels of this image
    row, column = pixel // W, pixel % W
    c = tl.arange(0, BC)  # (BC) input channels
    acc = tl.zeros((BO, BP), tl.float32)  # (BO,BP)
    for r in range(R):
        for s in range(S):
            h, v = row + r - R // 2, column + s - S // 2
            seen = (h >= 0) & (h < H) & (v >= 0) & (v < W) & (row < H)  # (BP)
            for begin in range(0, C, BC):
                has = begin + c < C  # (BC)
                w_at = w + ((out[:, None] * C + begin + c[None, :]) * R + r) * S + s  # (BO,BC)
                x_at = x + (image * C + begin + c[:, None]) * H * W + h[None, :] * W + v[None, :]  # (BC,BP)
                wv = tl.load(w_at, mask=(out[:, None] < CO) & has[None, :], other=0.0)
                xv = tl.load(x_at, mask=has[:, None] & seen[None, :], other=0.0)
                acc = tl.dot(wv, xv, acc, input_precision="ieee")
    acc += tl.load(bias + out, mask=out < CO, other=0.0).to(tl.float32)[:, None]
    y_at = y + (image * CO + out[:, None]) * H * W + pixel[None, :]  # (BO,BP)
    tl.store(y_at, acc.to(y.dtype.element_ty), mask=(out[:, None] < CO) & (pixel[None, :] < H * W))


def plan(p):
    (x, w, bias), (y,) = p.inputs, p.outputs
    p.require(all(t.is_contiguous() for t in (x, w, bias, y)), "all tensors must be contiguous")
    (N, C, H, W), (CO, _, R, S) = x.shape, w.shape
    p.require(y.shape == (N, CO, H, W) and w.shape[1] == C and R % 2 == S % 2 == 1, "stride 1, the same size in and out")
    conv[(triton.cdiv(H * W, 128), triton.cdiv(CO, 64), N)](
        x, w, bias, y, C, CO, H, W, R=R, S=S, BO=64, BP=128, BC=16, num_warps=4, num_stages=3
    )
