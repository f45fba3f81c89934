# SPDX-License-Identifier: Apache-2.0
"""Formulas of what networks need now and then: pictures smoothed while they shrink, volumes sampled, segments, whole numbers.

Right, not fast.
"""

from __future__ import annotations

import math
import struct
from typing import Any, Callable

import torch

from .formulas_images import wide
from .formulas_more import NEAREST, _grid_inside, _grid_place
from .formulas_scatter import index_put, scatter_add, scatter_reduce

# ---- numbers ----------------------------------------------------------------------------------


def infinite(sign: int) -> Callable[..., Any]:
    def formula(x: Any) -> Any:
        return x == sign * math.inf if x.dtype.is_floating_point else torch.zeros_like(x, dtype=torch.bool)

    return formula


STEPS = {torch.int64: 92, torch.int32: 46, torch.int16: 23}  # of Euclid's algorithm, where it takes the most


def gcd(a: Any, b: Any) -> Any:
    a, b = torch.broadcast_tensors(torch.abs(a), torch.abs(b))
    for _ in range(STEPS.get(a.dtype, 13)):
        over = b == 0
        a, b = torch.where(over, a, b), torch.where(over, b, torch.fmod(a, torch.where(over, torch.ones_like(b), b)))
    return a


def lcm(a: Any, b: Any) -> Any:
    kind = torch.promote_types(a.dtype, b.dtype)
    if kind not in (torch.int64, torch.int32):  # it wraps around at the end
        return lcm(a.to(torch.int32), b.to(torch.int32)).to(kind)
    most = gcd(a, b)
    part = torch.div(a, torch.where(most == 0, torch.ones_like(most), most), rounding_mode="trunc")
    return torch.abs(part * b)


def ldexp(x: Any, n: Any) -> Any:
    return x * torch.exp2(n.to(x.dtype) if isinstance(n, torch.Tensor) else torch.full_like(x, float(n)))


def dist(x: Any, y: Any, p: Any = 2) -> Any:
    return torch.linalg.vector_norm(x - y, p)


def rrelu(x: Any, noise: Any, lower: Any = 1 / 8, upper: Any = 1 / 3, training: bool = False, generator: Any = None) -> Any:
    if training:
        raise NotImplementedError("random slopes")
    return torch.where(x >= 0, x, x * ((lower + upper) / 2))


# ---- places -----------------------------------------------------------------------------------


def block_diag(tensors: Any) -> Any:
    blocks = [t if t.dim() == 2 else t.reshape(1, -1) for t in tensors]
    kind = blocks[0].dtype
    for block in blocks[1:]:
        kind = torch.promote_types(kind, block.dtype)
    width, rows, before = sum(b.shape[1] for b in blocks), [], 0
    for block in blocks:
        parts = [block.to(kind)]
        for size, front in ((before, True), (width - before - block.shape[1], False)):
            if size:
                parts.insert(0 if front else len(parts), torch.zeros([block.shape[0], size], dtype=kind, device=block.device))
        rows.append(torch.cat(parts, 1))
        before += block.shape[1]
    return torch.cat(rows, 0)


def put(x: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    return index_put(x.reshape(-1), [index.reshape(-1)], source.reshape(-1), accumulate).reshape(x.shape)


def as_strided_scatter(x: Any, source: Any, size: Any, stride: Any, offset: Any = None) -> Any:
    """No two places are the same one, and x is contiguous (aliases.py)."""
    size, at = list(size), torch.full([], offset or 0, dtype=torch.int64, device=x.device)
    for d, step in enumerate(stride):
        at = at + (torch.arange(size[d], device=x.device) * step).reshape([-1 if e == d else 1 for e in range(len(size))])
    return put(x, at.expand(size), source.expand(size))


def index_reduce(x: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True) -> Any:
    dim %= max(x.dim(), 1)
    rows = index.reshape([-1 if d == dim else 1 for d in range(x.dim())]).expand(source.shape)
    return scatter_reduce(x, dim, rows, source, reduce, include_self=include_self)


def segment_reduce(
    data: Any, reduce: str, *, lengths: Any = None, indices: Any = None, offsets: Any = None, axis: int = 0, unsafe: bool = False,
    initial: Any = None,
) -> Any:  # fmt: skip
    """Each segment looks through all rows."""
    given = lengths if lengths is not None else offsets
    if given is None or given.dim() != 1 or axis != 0:
        raise NotImplementedError("segments of several dimensions")
    ends = torch.cumsum(given, 0) if lengths is not None else given[1:]
    starts = ends - given if lengths is not None else given[:-1]
    at = torch.arange(data.shape[0], device=data.device)
    mine = ((at >= starts.unsqueeze(1)) & (at < ends.unsqueeze(1))).reshape([ends.shape[0], data.shape[0]] + [1] * (data.dim() - 1))
    none = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}[reduce]
    terms = torch.where(mine, data.unsqueeze(0), torch.full_like(data, none).unsqueeze(0))
    first = none if initial is None else initial
    if reduce in ("max", "min"):
        made = terms.amax(1) if reduce == "max" else terms.amin(1)
        return torch.clamp(made, min=first) if reduce == "max" else torch.clamp(made, max=first)
    if reduce == "prod":
        return terms.prod(1) * first
    made = terms.sum(1) + first
    if reduce == "sum":
        return made
    count = (ends - starts).reshape([-1] + [1] * (data.dim() - 1)).to(data.dtype)
    empty = torch.full_like(made, math.nan) if initial is None else made  # as PyTorch has it
    return torch.where(count > 0, made / torch.clamp(count, min=1), empty)


def embedding_renorm(weight: Any, index: Any, most: float, p: float = 2.0) -> Any:
    """Rows that are read and longer than allowed are shortened."""
    size = torch.linalg.vector_norm(weight.to(wide(weight)), p, [1], True)
    read = (torch.arange(weight.shape[0], device=weight.device).unsqueeze(1) == index.reshape(1, -1)).any(1, True)
    return torch.where(read & (size > most), (weight * (most / (size + 1e-7))).to(weight.dtype), weight)


def unfold_backward(grad: Any, sizes: Any, dim: int, size: int, step: int) -> Any:
    """Windows added where they came from."""
    sizes = list(sizes)
    dim %= len(sizes)
    windows = grad.movedim(dim, -2)
    at = torch.arange(windows.shape[-2], device=grad.device).unsqueeze(1) * step + torch.arange(size, device=grad.device)
    flat = windows.reshape([*windows.shape[:-2], -1])
    none = torch.zeros([*windows.shape[:-2], sizes[dim]], dtype=grad.dtype, device=grad.device)
    return scatter_add(none, none.dim() - 1, at.reshape(-1).expand(flat.shape), flat).movedim(-1, dim)


def conv_tbc(x: Any, weight: Any, bias: Any, pad: int = 0) -> Any:
    """(time, batch, channels)."""
    return torch.conv1d(x.permute(1, 2, 0), weight.permute(2, 1, 0), bias, 1, pad).permute(2, 0, 1)


# ---- pictures ---------------------------------------------------------------------------------


def _triangle(x: Any) -> Any:
    return torch.clamp(1 - torch.abs(x), min=0)


def _cubic(x: Any, a: float = -0.5) -> Any:
    x = torch.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return torch.where(x < 1, near, torch.where(x < 2, far, torch.zeros_like(x)))


def _smoothing(size: int, out: int, align: bool, scale: Any, reach: int, weigh: Callable[[Any], Any], like: Any) -> Any:
    """(out, size): how much of each element is in each result."""
    ratio = (size - 1) / (out - 1) if align and out > 1 else 0.0 if align else 1 / scale if scale else size / out
    spread = max(ratio, 1.0)
    middle = ratio * (torch.arange(out, device=like.device).to(wide(like)) + 0.5)  # with align_corners, too
    first = torch.clamp((middle - reach * spread + 0.5).to(torch.int64), min=0).unsqueeze(1)
    last = torch.clamp((middle + reach * spread + 0.5).to(torch.int64), max=size).unsqueeze(1)
    at = torch.arange(size, device=like.device)
    weights = weigh((at.to(wide(like)) - middle.unsqueeze(1) + 0.5) / spread)
    weights = torch.where((at >= first) & (at < last), weights, torch.zeros_like(weights))
    return weights / weights.sum(1, keepdim=True)


def smoothed(reach: int, weigh: Callable[[Any], Any]) -> Callable[..., Any]:
    def formula(x: Any, size: Any, align: bool, *scales: Any) -> Any:
        given = list(scales[0] or []) if scales and isinstance(scales[0], (list, tuple)) else list(scales)
        given = (given + [None, None])[:2]
        sizes = [int(x.shape[2 + k] * given[k]) for k in range(2)] if size is None else list(size)
        rows = _smoothing(x.shape[2], sizes[0], align, given[0], reach, weigh, x)
        columns = _smoothing(x.shape[3], sizes[1], align, given[1], reach, weigh, x)
        flat = x.to(rows.dtype).reshape(-1, x.shape[3])
        made = torch.mm(flat, columns.t()).reshape(-1, x.shape[2], sizes[1])
        made = torch.matmul(rows, made)
        return made.reshape(x.shape[0], x.shape[1], sizes[0], sizes[1]).to(x.dtype)

    return formula


bilinear_smoothed, bicubic_smoothed = smoothed(1, _triangle), smoothed(2, _cubic)


def grid_sampler_3d(x: Any, grid: Any, mode: int, padding: int, align: bool) -> Any:
    n, c = x.shape[:2]
    sizes, shape = list(x.shape[:1:-1]), list(grid.shape[1:4])  # width, height, depth
    at = [_grid_inside(_grid_place(grid[..., k].to(wide(grid)), s, align), s, padding, align) for k, s in enumerate(sizes)]
    flat = x.reshape(n, c, -1)

    def read(corner: list[Any]) -> Any:
        inside, place = None, None
        for k in (2, 1, 0):
            here = (corner[k] >= 0) & (corner[k] <= sizes[k] - 1)
            index = torch.clamp(corner[k], 0, sizes[k] - 1).long()
            inside = here if inside is None else inside & here
            place = index if place is None else place * sizes[k] + index
        assert place is not None and inside is not None
        value = torch.gather(flat, 2, place.reshape(n, 1, -1).expand(n, c, math.prod(shape))).reshape([n, c, *shape])
        return torch.where(inside.unsqueeze(1), value, torch.zeros_like(value))

    if mode == NEAREST:
        return read([torch.round(v) for v in at])
    low = [torch.floor(v) for v in at]
    parts = [v - f for v, f in zip(at, low)]
    total: Any = None
    for corner in range(8):
        upper = [corner >> k & 1 for k in range(3)]
        weight: Any = None
        for k in range(3):
            part = parts[k] if upper[k] else 1 - parts[k]
            weight = part if weight is None else weight * part
        term = read([low[k] + upper[k] for k in range(3)]).to(wide(x)) * weight.unsqueeze(1)
        total = term if total is None else total + term
    return total.to(x.dtype)


def _single(value: float) -> float:
    """As a float32."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


def fake_quantize(x: Any, scale: float, zero: int, low: int, high: int) -> Any:
    """Rounded to a multiple of the scale that 8 bits or fewer hold; and where they do."""
    return _quantized(x, _single(1 / _single(scale)), _single(scale), zero, low, high)


def fake_quantize_tensors(x: Any, scale: Any, zero: Any, enabled: Any, low: int, high: int) -> Any:
    made, held = _quantized(x, 1 / scale, scale, zero, low, high)
    off = enabled.reshape(-1)[0] == 0
    return torch.where(off, x, made), held | off


def fake_quantize_channels(x: Any, scale: Any, zero: Any, axis: int, low: int, high: int) -> Any:
    shape = [-1 if k == axis % x.dim() else 1 for k in range(x.dim())]
    scale, zero = scale.reshape(shape), zero.reshape(shape)
    return _quantized(x, 1 / scale, scale, zero, low, high)


def _quantized(x: Any, inverse: Any, scale: Any, zero: Any, low: int, high: int) -> Any:
    places = torch.round(x * inverse) + zero
    return (places.clamp(low, high) - zero) * scale, (places >= low) & (places <= high)


BODIES: dict[str, Callable[..., Any]] = {
    "fake_quantize_per_tensor_affine_cachemask": fake_quantize,
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams": fake_quantize_tensors,
    "fake_quantize_per_channel_affine_cachemask": fake_quantize_channels,
    "diag": lambda x, k=0: torch.diag_embed(x, k) if x.dim() == 1 else torch.diagonal(x, k).clone(),
    "isposinf": infinite(1),
    "isneginf": infinite(-1),
    "gcd": gcd,
    "lcm": lcm,
    "ldexp": ldexp,
    "dist": dist,
    "rrelu_with_noise": rrelu,
    "block_diag": block_diag,
    "put": put,
    "as_strided_scatter": as_strided_scatter,
    "index_reduce": index_reduce,
    "segment_reduce": segment_reduce,
    "embedding_renorm": embedding_renorm,
    "unfold_backward": unfold_backward,
    "conv_tbc": conv_tbc,
    "_upsample_bilinear2d_aa": bilinear_smoothed,
    "_upsample_bicubic2d_aa": bicubic_smoothed,
    "grid_sampler_3d": grid_sampler_3d,
}
