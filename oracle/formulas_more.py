# SPDX-License-Identifier: Apache-2.0
"""Formulas of what is rarer: sampling on grids, windows put back, sets, bags, cross products, medians that pass over NaN.

Right, not fast: most look through all candidates for each result.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from .formulas_images import cubic_weights, wide
from .formulas_scatter import scatter, scatter_add, scatter_reduce
from .formulas_sort import search
from .formulas_sort import sorted as sort

BILINEAR, NEAREST = 0, 1
ZEROS, BORDER = 0, 1


# ---- pictures ---------------------------------------------------------------------------------


def affine_grid(theta: Any, size: Any, align: bool = False) -> Any:
    """Coordinates in [-1, 1] of each element of the output, through the affine map."""
    steps = []
    for n in list(size)[2:]:
        at = torch.arange(n, device=theta.device).to(theta.dtype)
        steps.append(at * (2 / max(n - 1, 1)) - 1 if align and n > 1 else (at * 2 + 1) / n - 1 if not align else at * 0)
    rank, spatial = len(steps), list(size)[2:]
    base = []
    for k in range(rank - 1, -1, -1):  # x is the last dimension
        shape = [1] * rank
        shape[k] = spatial[k]
        base.append(steps[k].reshape(shape).expand(spatial))
    made = []
    for row in range(rank):
        value = theta[:, row, rank].reshape([-1] + [1] * rank)
        for column in range(rank):
            value = value + theta[:, row, column].reshape([-1] + [1] * rank) * base[column]
        made.append(value)
    return torch.stack(made, -1)


def _reflected(at: Any, low: float, high: float) -> Any:
    span = high - low
    if span == 0:
        return torch.zeros_like(at)
    at = torch.abs(at - low)
    turns = torch.floor(at / span)
    rest = at - turns * span
    odd = turns - 2 * torch.floor(turns / 2)
    return torch.where(odd == 0, rest, span - rest) + low


def _grid_place(at: Any, size: int, align: bool) -> Any:
    return (at + 1) / 2 * (size - 1) if align else ((at + 1) * size - 1) / 2


def _grid_inside(at: Any, size: int, padding: int, align: bool) -> Any:
    if padding == ZEROS:
        return at
    if padding != BORDER:
        at = _reflected(at, 0.0, size - 1.0) if align else _reflected(at, -0.5, size - 0.5)
    return torch.clamp(at, 0, size - 1)


def grid_sampler_2d(x: Any, grid: Any, mode: int, padding: int, align: bool, weigh: Any = cubic_weights) -> Any:
    n, c, h, w = x.shape
    rows, columns = grid.shape[1], grid.shape[2]
    at = [_grid_place(grid[..., k].to(wide(grid)), size, align) for k, size in enumerate((w, h))]
    flat = x.reshape(n, c, h * w)

    def read(column: Any, row: Any) -> Any:
        inside = (column >= 0) & (column <= w - 1) & (row >= 0) & (row <= h - 1)
        place = torch.clamp(row, 0, h - 1).long() * w + torch.clamp(column, 0, w - 1).long()
        place = place.reshape(n, 1, rows * columns).expand(n, c, rows * columns)
        value = torch.gather(flat, 2, place).reshape(n, c, rows, columns)
        return torch.where(inside.unsqueeze(1), value, torch.zeros_like(value))

    if mode not in (BILINEAR, NEAREST):
        return _grid_cubic(at, read, lambda v, size: _grid_inside(v, size, padding, align), (w, h), weigh).to(x.dtype)
    at = [_grid_inside(at[0], w, padding, align), _grid_inside(at[1], h, padding, align)]
    if mode == NEAREST:
        return read(torch.round(at[0]), torch.round(at[1]))
    left, top = torch.floor(at[0]), torch.floor(at[1])
    right, below = (at[0] - left).unsqueeze(1), (at[1] - top).unsqueeze(1)
    upper = read(left, top).to(wide(x)) * (1 - right) + read(left + 1, top).to(wide(x)) * right
    lower = read(left, top + 1).to(wide(x)) * (1 - right) + read(left + 1, top + 1).to(wide(x)) * right
    return (upper * (1 - below) + lower * below).to(x.dtype)


def _grid_cubic(at: Any, read: Any, inside: Any, sizes: tuple[int, int], weigh: Any) -> Any:
    """Four by four taps; each is brought inside by itself."""
    first = [torch.floor(v) for v in at]
    weights = [weigh(v - f) for v, f in zip(at, first)]
    total: Any = None
    for i in range(4):
        row: Any = None
        for j in range(4):
            tap = read(inside(first[0] + (j - 1), sizes[0]), inside(first[1] + (i - 1), sizes[1]))
            tap = tap.to(wide(tap))
            term = tap * weights[0][j].unsqueeze(1)
            row = term if row is None else row + term
        term = row * weights[1][i].unsqueeze(1)
        total = term if total is None else total + term
    return total


def col2im(x: Any, size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    """Each pixel looks for the windows that it lies in: one tap after the other, shifted and added."""
    whole = x if x.dim() == 3 else x.unsqueeze(0)
    n, c = whole.shape[0], whole.shape[1] // (kernel[0] * kernel[1])
    out = [size[d] + 2 * padding[d] for d in (0, 1)]
    taken = [(out[d] - dilation[d] * (kernel[d] - 1) - 1) // stride[d] + 1 for d in (0, 1)]
    taps = whole.reshape(n, c, kernel[0], kernel[1], taken[0], taken[1])
    total: Any = None
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            part = _spread(_spread(taps[:, :, i, j], 2, stride[0], i * dilation[0], out[0]), 3, stride[1], j * dilation[1], out[1])
            total = part if total is None else total + part
    total = total[:, :, padding[0] : padding[0] + size[0], padding[1] : padding[1] + size[1]]
    return total if x.dim() == 3 else total.squeeze(0)


def _spread(x: Any, dim: int, stride: int, first: int, size: int) -> Any:
    """x's elements at first, first + stride, ... of a dimension of that size; zero elsewhere."""
    at = torch.arange(size, device=x.device) - first
    place = torch.div(at, stride, rounding_mode="floor")
    here = (at >= 0) & (at - place * stride == 0) & (place < x.shape[dim])
    shape = [1] * x.dim()
    shape[dim] = size
    read = torch.index_select(x, dim, torch.clamp(place, 0, x.shape[dim] - 1))
    return torch.where(here.reshape(shape), read, torch.zeros_like(read))


def max_unpool(x: Any, index: Any, size: Any, *rest: Any) -> Any:
    spatial = list(size)[-len(size) :]
    lead = list(x.shape[: x.dim() - len(spatial)])
    flat = torch.zeros([*lead, math.prod(spatial)], dtype=x.dtype, device=x.device)
    return scatter(flat, len(lead), index.reshape([*lead, -1]), x.reshape([*lead, -1])).reshape([*lead, *spatial])


def rot90(x: Any, k: int = 1, dims: Any = (0, 1)) -> Any:
    a, b = (d % x.dim() for d in dims)
    turns = k % 4
    if turns == 0:
        return x.clone()
    if turns == 2:
        return torch.flip(x, [a, b])
    return torch.flip(x.transpose(a, b), [a if turns == 1 else b])


# ---- products ---------------------------------------------------------------------------------


def trilinear(a: Any, b: Any, c: Any, expand1: Any, expand2: Any, expand3: Any, sumdim: Any, unroll: int = 1) -> Any:
    for dims, k in ((expand1, 0), (expand2, 1), (expand3, 2)):
        for d in sorted(dims):
            a, b, c = (t.unsqueeze(d) if i == k else t for i, t in enumerate((a, b, c)))
    product = a * b * c
    return product.sum(list(sumdim)) if len(sumdim) else product


def cross(a: Any, b: Any, *, dim: int = -1) -> Any:
    a, b = torch.broadcast_tensors(a, b)
    x, y = a.unbind(dim), b.unbind(dim)
    return torch.stack([x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]], dim)


def pdist(x: Any, p: float = 2.0) -> Any:
    rows, columns = upper_places(x.shape[0], x.shape[0], 1, x.device)
    apart = torch.abs(torch.index_select(x, 0, rows) - torch.index_select(x, 0, columns))
    if p == 0:
        return (apart != 0).to(x.dtype).sum(1)
    if math.isinf(p):
        return apart.amax(1)
    if p == 1:
        return apart.sum(1)
    return torch.sqrt((apart * apart).sum(1)) if p == 2 else torch.pow(torch.pow(apart, p).sum(1), 1 / p)


def renorm(x: Any, p: Any, dim: int, most: Any) -> Any:
    dims = [d for d in range(x.dim()) if d != dim % x.dim()]
    norm = torch.linalg.vector_norm(x.to(wide(x)), float(p), dims, keepdim=True)
    factor = torch.where(norm > most, most / (norm + 1e-7), torch.ones_like(norm))
    return (x * factor).to(x.dtype)


def weight_norm(v: Any, g: Any, dim: int = 0) -> Any:
    """A weight by its direction and its length, as the parametrization computes it; the norms are a result, too."""
    norm = torch.sqrt((v * v).sum([d for d in range(v.dim()) if d != dim % v.dim()], keepdim=True))
    return v * (g / norm), norm


# ---- places and sets --------------------------------------------------------------------------


def upper_places(rows: int, columns: int, offset: int, device: Any) -> tuple[Any, Any]:
    """Row and column of each element on and above a diagonal, row by row."""
    counts = [max(0, min(columns, columns - r - offset)) for r in range(rows)]
    return _places(counts, [max(0, r + offset) for r in range(rows)], device)


def lower_places(rows: int, columns: int, offset: int, device: Any) -> tuple[Any, Any]:
    return _places([max(0, min(columns, r + offset + 1)) for r in range(rows)], [0] * rows, device)


def _places(counts: list[int], first: list[int], device: Any) -> tuple[Any, Any]:
    """Row k has counts[k] elements from column first[k] on. The lists are of the form a + b k, clamped: no tensor is made of them."""
    total, rows = sum(counts), len(counts)
    at = torch.arange(total, device=device)
    row, column = torch.zeros_like(at), at + first[0]
    begin = 0
    for k in range(1, rows):
        begin += counts[k - 1]
        later = at >= begin
        row = torch.where(later, torch.full_like(at, k), row)
        column = torch.where(later, at - begin + first[k], column)
    return row, column


def triu_indices(rows: int, columns: int, offset: int = 0, *, device: Any = None, **rest: Any) -> Any:
    return torch.stack(upper_places(rows, columns, offset, "meta"))


def tril_indices(rows: int, columns: int, offset: int = 0, *, device: Any = None, **rest: Any) -> Any:
    return torch.stack(lower_places(rows, columns, offset, "meta"))


def isin(x: Any, among: Any, *, assume_unique: bool = False, invert: bool = False) -> Any:
    found = (x.unsqueeze(-1) == among.reshape(-1)).any(-1)
    return torch.logical_not(found) if invert else found


def histc(x: Any, bins: int = 100, low: Any = 0, high: Any = 0) -> Any:
    flat = x.reshape(-1).to(wide(x))
    if low == high:
        low, high = flat.amin(), flat.amax()
        low, high = torch.where(low == high, low - 1, low), torch.where(low == high, high + 1, high)
    place = torch.clamp(((flat - low) / (high - low) * bins).long(), 0, bins - 1)
    inside = (flat >= low) & (flat <= high)
    return scatter_add(torch.zeros([bins], device=x.device), 0, place, inside.to(torch.float32)).to(x.dtype)


def masked_scatter(x: Any, mask: Any, source: Any) -> Any:
    mask = mask.expand(x.shape)
    place = torch.cumsum(mask.reshape(-1).long(), 0) - 1
    value = torch.index_select(source.reshape(-1), 0, torch.clamp(place, 0, source.numel() - 1))
    return torch.where(mask, value.reshape(x.shape), x)


def nanmedian(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    if dim is None:
        return nanmedian(x.reshape(-1), 0)[0]
    values, order = sort(x, dim)
    counted = (x == x).long().sum(dim, keepdim=True)
    place = torch.where(counted > 0, torch.div(counted - 1, 2, rounding_mode="floor"), torch.zeros_like(counted))
    made = torch.gather(values, dim, place), torch.gather(order, dim, place)
    return made if keepdim else (made[0].squeeze(dim), made[1].squeeze(dim))


def embedding_bag(
    weight: Any, index: Any, offsets: Any, by_frequency: bool = False, mode: int = 0, sparse: bool = False,
    scale: Any = None, last: bool = False, padding: int = -1,
) -> Any:  # fmt: skip
    bags = offsets.numel() - (1 if last else 0)
    at = torch.arange(index.numel(), device=weight.device)
    bag = search(offsets, at, right=True) - 1
    rows = torch.index_select(weight, 0, index)
    if scale is not None:
        rows = rows * scale.unsqueeze(1)
    counted = torch.ones_like(index, dtype=torch.int32)
    if padding >= 0:
        counted = (index != padding).to(torch.int32)
        rows = torch.where((index != padding).unsqueeze(1), rows, torch.zeros_like(rows))
    none = torch.zeros([bags, weight.shape[1]], dtype=weight.dtype, device=weight.device)
    if mode == 2:
        rows = rows if padding < 0 else torch.where((index != padding).unsqueeze(1), rows, torch.full_like(rows, -math.inf))
        most = scatter_reduce(none, 0, bag.unsqueeze(1).expand(rows.shape), rows, "amax", include_self=False)
        return torch.where(most == -math.inf, none, most), None, None, None
    made = scatter_add(none, 0, bag.unsqueeze(1).expand(rows.shape), rows)
    if mode == 1:
        terms = scatter_add(torch.zeros([bags], dtype=torch.int32, device=weight.device), 0, bag, counted)
        made = made / torch.clamp(terms, min=1).to(made.dtype).unsqueeze(1)
    return made, None, None, None  # nothing but the sums is read outside of training


# ---- windows ------------------------------------------------------------------------------------------------


def _window(formula: Any) -> Any:
    """Of n points; a periodic one is that of n + 1 without its end."""

    def made(n: int, periodic: bool = True, *rest: Any, dtype: Any = None, **others: Any) -> Any:
        dtype = dtype or torch.float32
        if n == 1:
            return torch.ones([1], dtype=dtype, device="meta")
        at = torch.arange(n, device="meta").to(dtype)
        return formula(at, n if periodic else n - 1, *rest, **others)

    return made


def _raised_cosine(at: Any, size: int, alpha: float = 0.54, beta: float = 0.46, **rest: Any) -> Any:
    return alpha - beta * torch.cos(at * (2 * math.pi / size))


def _blackman(at: Any, size: int, **rest: Any) -> Any:
    return 0.42 - 0.5 * torch.cos(at * (2 * math.pi / size)) + 0.08 * torch.cos(at * (4 * math.pi / size))


def _bartlett(at: Any, size: int, **rest: Any) -> Any:
    return 1 - torch.abs(at * (2 / size) - 1)


hamming_window = _window(_raised_cosine)
hann_window = _window(lambda at, size, **rest: _raised_cosine(at, size, 0.5, 0.5))
blackman_window = _window(_blackman)
bartlett_window = _window(_bartlett)
