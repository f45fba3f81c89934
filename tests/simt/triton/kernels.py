"""kernels.py - ten Triton kernels against PyTorch on the CPU.

    kernels.py [NAME...]          prints `NAME ok`; exit 1 when a result is wrong
    kernels.py --bug NAME...      the same with a mistake at the line marked `here: NAME KIND`

On a GPU only DEVICE is another.
"""

import sys

import torch
import triton
import triton.language as tl

DEVICE = "cpu"
BUG = "--bug" in sys.argv


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if BAD:
        tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n))  # here: add out_of_bounds
    else:
        tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)


def add():
    x, y = torch.randn(1000, device=DEVICE), torch.randn(1000, device=DEVICE)
    out = torch.empty_like(x)
    add_kernel[(4,)](x, y, out, 1000, BLOCK=256, BAD=BUG)
    return out, x + y


@triton.jit
def softmax_kernel(x, out, cols, BLOCK: tl.constexpr, BAD: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    if BAD:
        v = tl.load(x + row * cols + i)  # here: softmax out_of_bounds
    else:
        v = tl.load(x + row * cols + i, i < cols, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * cols + i, e / tl.sum(e, 0), i < cols)


def softmax():
    x = torch.randn(9, 100, device=DEVICE)
    out = torch.empty_like(x)
    softmax_kernel[(9,)](x, out, 100, BLOCK=128, BAD=BUG)
    return out, torch.softmax(x, 1)


@triton.jit
def layer_norm_kernel(x, w, b, out, cols, eps, BLOCK: tl.constexpr, BAD: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + i, i < cols, other=0.0)
    mean = tl.sum(v, 0) / cols
    d = tl.where(i < cols, v - mean, 0.0)
    r = 1 / tl.sqrt(tl.sum(d * d, 0) / cols + eps)
    if BAD:
        y = d * r * tl.load(w + i) + tl.load(b + i, i < cols)  # here: layer_norm out_of_bounds
    else:
        y = d * r * tl.load(w + i, i < cols) + tl.load(b + i, i < cols)
    tl.store(out + row * cols + i, y, i < cols)


def layer_norm():
    x, w, b = torch.randn(7, 120, device=DEVICE), torch.randn(120, device=DEVICE), torch.randn(120, device=DEVICE)
    out = torch.empty_like(x)
    layer_norm_kernel[(7,)](x, w, b, out, 120, 1e-5, BLOCK=128, BAD=BUG)
    return out, torch.nn.functional.layer_norm(x, (120,), w, b)


@triton.jit
def matmul_kernel(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BAD: tl.constexpr):
    i, j = tl.program_id(0) * M + tl.arange(0, M), tl.program_id(1) * N + tl.arange(0, N)
    sum = tl.zeros((M, N), tl.float32)
    for at in range(0, k, K):
        q = at + tl.arange(0, K)
        u = tl.load(a + i[:, None] * k + q[None, :], (i[:, None] < m) & (q[None, :] < k), other=0.0)
        if BAD:
            v = tl.load(b + q[:, None] * n + j[None, :], j[None, :] < n, other=0.0)  # here: matmul out_of_bounds
        else:
            v = tl.load(b + q[:, None] * n + j[None, :], (q[:, None] < k) & (j[None, :] < n), other=0.0)
        sum += tl.dot(u, v)
    tl.store(c + i[:, None] * n + j[None, :], sum, (i[:, None] < m) & (j[None, :] < n))


def matmul():
    a, b = torch.randn(50, 40, device=DEVICE).half(), torch.randn(40, 60, device=DEVICE).half()
    c = torch.empty(50, 60, device=DEVICE)
    matmul_kernel[(2, 2)](a, b, c, 50, 60, 40, M=32, N=32, K=32, BAD=BUG)
    return c, a.float() @ b.float()


@triton.jit
def attention_kernel(q, k, v, out, n, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, BAD: tl.constexpr):
    i, d = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, D)
    x = tl.load(q + i[:, None] * D + d[None, :], i[:, None] < n, other=0.0)
    top, total = tl.full((M,), -float("inf"), tl.float32), tl.zeros((M,), tl.float32)
    sum = tl.zeros((M, D), tl.float32)
    for at in range(0, n, N):
        j = at + tl.arange(0, N)
        if BAD:
            y = tl.load(k + j[None, :] * D + d[:, None])  # here: attention out_of_bounds
        else:
            y = tl.load(k + j[None, :] * D + d[:, None], j[None, :] < n, other=0.0)
        s = tl.where(j[None, :] < n, tl.dot(x, y) * scale, -float("inf"))
        new = tl.maximum(top, tl.max(s, 1))
        p, keep = tl.exp(s - new[:, None]), tl.exp(top - new)
        z = tl.load(v + j[:, None] * D + d[None, :], j[:, None] < n, other=0.0)
        sum = sum * keep[:, None] + tl.dot(p.to(tl.float16), z)
        total, top = total * keep + tl.sum(p, 1), new
    tl.store(out + i[:, None] * D + d[None, :], sum / total[:, None], i[:, None] < n)


def attention():
    q, k, v = (torch.randn(50, 32, device=DEVICE).half() for _ in range(3))
    out = torch.empty(50, 32, device=DEVICE)
    attention_kernel[(2,)](q, k, v, out, 50, 32**-0.5, M=32, N=32, D=32, BAD=BUG, num_warps=2)
    want = torch.softmax(q.float() @ k.float().T * 32**-0.5, 1) @ v.float()
    return out, want


@triton.jit
def dropout_kernel(x, out, n, p, seed, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, i) > p
    if BAD:
        v = tl.load(x + i + 1, i < n)  # here: dropout out_of_bounds
    else:
        v = tl.load(x + i, i < n)
    tl.store(out + i, tl.where(keep, v / (1 - p), 0.0), i < n)


def dropout():
    x = torch.ones(4000, device=DEVICE)
    out = torch.empty_like(x)
    dropout_kernel[(4,)](x, out, 4000, 0.25, 7, BLOCK=1024, BAD=BUG)
    share = (out != 0).float().mean()
    assert BUG or abs(share - 0.75) < 0.03, share
    return out, torch.where(out != 0, x / 0.75, torch.zeros_like(x))


@triton.jit
def grouped_kernel(a, b, c, starts, n, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, BAD: tl.constexpr):
    g = tl.program_id(0)
    first, last = tl.load(starts + g), tl.load(starts + g + 1)
    if BAD:
        last = tl.load(starts + g + 2)  # here: grouped out_of_bounds
    i, j, q = first + tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    u = tl.load(a + i[:, None] * K + q[None, :], i[:, None] < last, other=0.0)
    v = tl.load(b + g * K * n + q[:, None] * n + j[None, :])
    tl.store(c + i[:, None] * n + j[None, :], tl.dot(u, v), i[:, None] < last)


def grouped():
    sizes = [5, 16, 9]
    a, b = torch.randn(30, 32, device=DEVICE).half(), torch.randn(3, 32, 16, device=DEVICE).half()
    starts = torch.tensor([0, 5, 21, 30], dtype=torch.int32, device=DEVICE)
    c = torch.empty(30, 16, device=DEVICE)
    grouped_kernel[(3,)](a, b, c, starts, 16, K=32, M=16, N=16, BAD=BUG, num_warps=1)
    return c, torch.cat([x.float() @ y.float() for x, y in zip(a.split(sizes), b, strict=True)])


@triton.jit
def scan_kernel(x, out, n, BLOCK: tl.constexpr, BAD: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.cumsum(tl.load(x + row * n + i, i < n, other=0), 0)
    if BAD:
        tl.store(out + row * n + i, v)  # here: scan race_global
    else:
        tl.store(out + row * n + i, v, i < n)


def scan():
    x = torch.randint(0, 9, (3, 200), dtype=torch.int32, device=DEVICE)
    out = torch.empty_like(x)
    scan_kernel[(3,)](x, out, 200, BLOCK=256, BAD=BUG)
    return out, torch.cumsum(x, 1).int()


@triton.jit
def histogram_kernel(x, bins, n, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, i < n, other=0)
    if BAD:
        old = tl.load(bins + v, i < n)
        tl.store(bins + v, old + 1, i < n)  # here: histogram race_global
    else:
        tl.atomic_add(bins + v, 1, i < n)


def histogram():
    x = torch.randint(0, 16, (2000,), dtype=torch.int32, device=DEVICE)
    bins = torch.zeros(16, dtype=torch.int32, device=DEVICE)
    histogram_kernel[(8,)](x, bins, 2000, BLOCK=256, BAD=BUG)
    return bins, torch.bincount(x, minlength=16).int()


@triton.jit
def transpose_kernel(x, out, rows, cols, BLOCK: tl.constexpr, BAD: tl.constexpr):
    i, j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = (i[:, None] < rows) & (j[None, :] < cols)
    v = tl.trans(tl.load(x + i[:, None] * cols + j[None, :], inside))
    if BAD:
        tl.store(out + j[:, None] * rows + i[None, :], v, i[None, :] < rows)  # here: transpose out_of_bounds
    else:
        tl.store(out + j[:, None] * rows + i[None, :], v, tl.trans(inside))


def transpose():
    x = torch.randn(50, 70, device=DEVICE)
    out = torch.empty(70, 50, device=DEVICE)
    transpose_kernel[(2, 3)](x, out, 50, 70, BLOCK=32, BAD=BUG)
    return out, x.T


CASES = [add, softmax, layer_norm, matmul, attention, dropout, grouped, scan, histogram, transpose]


def main() -> int:
    names = [a for a in sys.argv[1:] if not a.startswith("-")]
    wrong = 0
    torch.manual_seed(1)
    for case in CASES:
        if names and case.__name__ not in names:
            continue
        got, want = case()
        right = BUG or torch.allclose(got.float(), want.float(), atol=5e-3, rtol=5e-3)
        wrong += not right
        print(case.__name__, "ok" if right else "wrong", flush=True)
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
