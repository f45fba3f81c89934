# SPDX-License-Identifier: Apache-2.0
"""Formulas of scatters: by atomic writes (src/expert/generic/scatters.c) where the type has them."""

from __future__ import annotations

import math
from typing import Any

import torch

from .formulas_sort import primitive

_WIDER = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.int16: torch.int32, torch.int8: torch.int32}
_WIDER |= {torch.uint8: torch.int32, torch.bool: torch.int32}  # memory that is changed atomically

def _hits(index: Any, size: int, dim: int) -> Any:
    """(.., size, writers, ..): does this writer (dim + 1) write here (dim)?"""
    shape = [1] * (index.dim() + 1)
    shape[dim] = size
    return torch.arange(size, device=index.device).reshape(shape) == index.unsqueeze(dim)


def _pad_like(x: Any, y: Any, dim: int) -> Any:
    """x without what lies beyond y's sizes, but along dim."""
    for d in range(x.dim()):
        if d != dim and x.shape[d] != y.shape[d]:
            x = x.narrow(d, 0, y.shape[d])
    return x


def _beyond(x: Any, part: Any, dim: int) -> Any:
    """`part` in the corner of x; x elsewhere."""
    for d in range(x.dim()):
        if d != dim and part.shape[d] != x.shape[d]:
            part = torch.cat([part, _pad_rest(x, part, d)], d)
    return part


def _pad_rest(x: Any, part: Any, d: int) -> Any:
    rest = x.narrow(d, part.shape[d], x.shape[d] - part.shape[d])
    for e in range(x.dim()):
        if e != d and rest.shape[e] != part.shape[e]:
            rest = rest.narrow(e, 0, part.shape[e])
    return rest


def _last_writer(x: Any, dim: int, index: Any, src: Any) -> Any:
    """Which writer is the last one (its number from 1 on; 0: none) does not depend on the order of the writes."""
    shape = [1] * index.dim()
    shape[dim] = index.shape[dim]
    number = torch.arange(1, index.shape[dim] + 1, dtype=torch.int32, device=index.device).reshape(shape).expand(index.shape)
    none = torch.zeros(x.shape, dtype=torch.int32, device=x.device)
    last = primitive("generic.scatter_max", [none, index, number], {"dim": dim}, x.shape, torch.int32)
    value = src if not isinstance(src, torch.Tensor) else torch.gather(src, dim, torch.clamp(last - 1, min=0).to(torch.int64))
    return torch.where(last > 0, value, x)


def scatter(x: Any, dim: int, index: Any, src: Any = 0, *, value: Any = None, reduce: Any = None) -> Any:
    src = src if value is None else value
    if reduce is not None:
        src = src if isinstance(src, torch.Tensor) else torch.full(index.shape, src, dtype=x.dtype, device=x.device)
        return scatter_add(x, dim, index, src) if reduce == "add" else scatter_reduce(x, dim, index, src, "prod")
    if x.dim() == 0:
        return (src.reshape([]) if isinstance(src, torch.Tensor) else torch.full_like(x, src)) if index.numel() else x.clone()
    if index.numel() == 0:
        return x.clone()
    dim %= x.dim()
    if isinstance(src, torch.Tensor):
        src = src[tuple(slice(0, n) for n in index.shape)]
    else:
        src = torch.full(index.shape, src, dtype=x.dtype, device=x.device)
    corner = _last_writer(_pad_like(x, index, dim), dim, index, src)
    return _beyond(x, corner, dim)


def scatter_add(x: Any, dim: int, index: Any, src: Any) -> Any:
    if x.dim() == 0:
        return scatter_add(x.reshape(1), 0, index.reshape(-1), src.reshape(-1)).reshape([])
    dim %= x.dim()
    src, wide = src[tuple(slice(0, n) for n in index.shape)], _WIDER.get(x.dtype, x.dtype)
    return primitive("generic.scatter_add", [x.to(wide), index, src.to(wide)], {"dim": dim}, x.shape, wide).to(x.dtype)


def scatter_reduce(x: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Any:
    if x.dim() == 0:
        made = scatter_reduce(x.reshape(1), 0, index.reshape(-1), src.reshape(-1), reduce, include_self=include_self)
        return made.reshape([])
    dim %= x.dim()
    src = src[tuple(slice(0, n) for n in index.shape)]
    if reduce in ("sum", "mean"):
        return _scatter_sum(x, dim, index, src, reduce == "mean", include_self)
    if reduce == "amin" and x.dtype.is_floating_point:
        return -scatter_reduce(-x, dim, index, -src, "amax", include_self=include_self)
    wide = _WIDER.get(x.dtype, x.dtype)
    if reduce == "amin" or (reduce == "prod" and not wide.is_floating_point):
        return _scatter_slowly(x, dim, index, src, reduce, include_self)
    least = 1 if reduce == "prod" else -math.inf if wide.is_floating_point else torch.iinfo(wide).min
    start = x.to(wide) if include_self else torch.full_like(x, least, dtype=wide)
    if reduce == "amax" and include_self and wide.is_floating_point:  # a NaN with a sign is no largest number (recipes/scatters.cuh)
        start = torch.where(start == start, start, torch.full_like(start, math.nan))
    name = "generic.scatter_mul" if reduce == "prod" else "generic.scatter_max"
    made = primitive(name, [start, index, src.to(wide)], {"dim": dim}, x.shape, wide).to(x.dtype)
    return made if include_self else torch.where(_writers(x, dim, index) > 0, made, x)


def _scatter_slowly(x: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool) -> Any:
    """Every element of the result searches for what was written to it."""
    src, hit = src.unsqueeze(dim), _hits(index, x.shape[dim], dim)
    corner = _pad_like(x, index, dim)
    terms = torch.where(hit, src, torch.full_like(src, 1 if reduce == "prod" else torch.iinfo(x.dtype).max))
    made = terms.prod(dim + 1).to(x.dtype) if reduce == "prod" else terms.amin(dim + 1)
    if include_self:
        made = made * corner if reduce == "prod" else torch.minimum(made, corner)
    else:
        made = torch.where(hit.any(dim + 1), made, corner)
    return _beyond(x, made, dim)


def _writers(x: Any, dim: int, index: Any) -> Any:
    ones = torch.ones(index.shape, dtype=torch.int32, device=x.device)
    return scatter_add(torch.zeros(x.shape, dtype=torch.int32, device=x.device), dim, index, ones)


def _scatter_sum(x: Any, dim: int, index: Any, src: Any, mean: bool, include_self: bool) -> Any:
    if include_self and not mean:
        return scatter_add(x, dim, index, src)
    count = _writers(x, dim, index)
    made = scatter_add(x if include_self else torch.zeros_like(x), dim, index, src)
    if mean:
        terms = torch.clamp(count + int(include_self), min=1)
        made = made / terms.to(x.dtype) if x.dtype.is_floating_point else torch.div(made, terms.to(x.dtype), rounding_mode="floor")
    return made if include_self else torch.where(count > 0, made, x)


def _rows_of(x: Any, dim: int, index: Any, y: Any) -> Any:
    shape = [1] * x.dim()
    shape[dim] = index.numel()
    return index.reshape(shape).expand(y.shape)


def index_add(x: Any, dim: int, index: Any, y: Any, *, alpha: Any = 1) -> Any:
    dim %= max(x.dim(), 1)
    return scatter_add(x, dim, _rows_of(x, dim, index, y), (y if alpha == 1 else y * alpha))


def index_copy(x: Any, dim: int, index: Any, y: Any) -> Any:
    dim %= max(x.dim(), 1)
    return scatter(x, dim, _rows_of(x, dim, index, y), y)


def index_put(x: Any, indices: list[Any], values: Any, accumulate: bool = False, unsafe: bool = False) -> Any:
    given = [d for d, i in enumerate(indices) if i is not None]
    if any(indices[d].dtype in (torch.bool, torch.uint8) for d in given):
        behind = x.dim() - indices[0].dim()
        values = values.reshape(()) if values.numel() == 1 and not accumulate else values
        if len(indices) != 1 or values.dim() > behind:
            raise NotImplementedError("a mask of several values")
        mask = indices[0].reshape(list(indices[0].shape) + [1] * behind)
        values = values.reshape([1] * (x.dim() - values.dim()) + list(values.shape)).to(x.dtype)
        return torch.where(mask, x + values if accumulate else values, x)
    rest = [d for d in range(x.dim()) if d not in given]
    together = given == list(range(given[0], given[-1] + 1))
    shape = list(torch.broadcast_shapes(*[indices[d].shape for d in given]))
    flat: Any = None
    for d in given:
        i = torch.where(indices[d] < 0, indices[d] + x.shape[d], indices[d]).expand(shape)
        flat = i if flat is None else flat * x.shape[d] + i
    order = given + rest
    rows = x.permute(order).reshape(math.prod(x.shape[d] for d in given), -1)
    front = given[0] if together else 0
    whole = [x.shape[d] for d in rest[:front]] + shape + [x.shape[d] for d in rest[front:]]
    values = values.expand(whole)
    values = values.permute(list(range(front, front + len(shape))) + list(range(front)) + list(range(front + len(shape), len(whole))))
    values = values.reshape(math.prod(shape), -1)
    index = flat.reshape(-1, 1).expand(values.shape)
    rows = scatter_add(rows, 0, index, values) if accumulate else scatter(rows, 0, index, values)
    back = [0] * x.dim()
    for k, d in enumerate(order):
        back[d] = k
    return rows.reshape([x.shape[d] for d in order]).permute(back)
