# SPDX-License-Identifier: Apache-2.0
"""Formulas of image operators: resampling, shuffles of pixels and channels, windows as columns."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Optional

import torch
import torch.nn.functional as F

Hook = Optional[Callable[[Any], Any]]  # what noise.py does to places and to weights


def wide(x: Any) -> torch.dtype:
    """What places and weights are computed in."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def _source(size: int, out: int, align: bool, scale: Any, like: Any) -> Any:
    """The coordinate in the input of each of the output's, as a float."""
    at = torch.arange(out, device=like.device).to(wide(like))
    if align:
        return at * ((size - 1) / (out - 1) if out > 1 else 0.0)
    ratio = 1.0 / scale if scale is not None and scale > 0 else size / out
    return (at + 0.5) * ratio - 0.5


def _interpolate_dim(x: Any, dim: int, out: int, align: bool, scale: Any, places: Hook = None) -> Any:
    size = x.shape[dim]
    at = _source(size, out, align, scale, x)
    at = torch.clamp(places(at) if places else at, min=0.0)
    low = torch.clamp(at.to(torch.int64), max=size - 1)
    high = torch.clamp(low + 1, max=size - 1)
    part = (at - low.to(at.dtype)).reshape([-1] + [1] * (x.dim() - 1 - dim)).to(x.dtype)
    a, b = torch.index_select(x, dim, low), torch.index_select(x, dim, high)
    return (1 - part) * a + part * b


def _sizes(x: Any, size: Any, scales: Any, dims: int) -> tuple[list[int], list[Any]]:
    """Sizes of the result and scales, as either form of the operator gives them."""
    given = list(scales[0]) if scales and isinstance(scales[0], (list, tuple)) else list(scales)
    given = (given + [None] * dims)[:dims]
    if size is None:
        size = [int(math.floor(x.shape[x.dim() - dims + k] * given[k])) for k in range(dims)]
    return list(size), given


def linear(dims: int) -> Callable[..., Any]:
    def formula(x: Any, size: Any, align: bool = False, *scales: Any, places: Hook = None, **kwargs: Any) -> Any:
        size, given = _sizes(x, size, scales, dims)
        for k in range(dims):
            x = _interpolate_dim(x, x.dim() - dims + k, size[k], align, given[k], places)
        return x

    return formula


def nearest(dims: int, exact: bool) -> Callable[..., Any]:
    def formula(x: Any, size: Any, *scales: Any, **kwargs: Any) -> Any:
        size, given = _sizes(x, size, scales, dims)
        for k in range(dims):
            d = x.dim() - dims + k
            ratio = 1.0 / given[k] if given[k] else x.shape[d] / size[k]
            at = torch.arange(size[k], device=x.device).to(torch.float32)
            at = torch.floor((at + 0.5 if exact else at) * ratio).to(torch.int64)
            x = torch.index_select(x, d, torch.clamp(at, max=x.shape[d] - 1))
        return x

    return formula


def cubic_weights(t: Any, a: float = -0.75) -> list[Any]:
    def near(s: Any) -> Any:
        return ((a + 2) * s - (a + 3)) * s * s + 1

    def far(s: Any) -> Any:
        return ((a * s - 5 * a) * s + 8 * a) * s - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def bicubic(
    x: Any, size: Any, align: bool = False, *scales: Any, places: Hook = None, weigh: Callable[..., Any] = cubic_weights, **kwargs: Any
) -> Any:
    size, given = _sizes(x, size, scales, 2)
    for k in range(2):
        d = x.dim() - 2 + k
        at = _source(x.shape[d], size[k], align, given[k], x)
        at = places(at) if places else at
        low = torch.floor(at)
        weights = weigh(at - low)
        total: Any = None
        for j, w in enumerate(weights):
            i = torch.clamp(low.to(torch.int64) + (j - 1), 0, x.shape[d] - 1)
            term = torch.index_select(x, d, i) * w.reshape([-1] + [1] * (x.dim() - 1 - d)).to(x.dtype)
            total = term if total is None else total + term
        x = total
    return x


def pixel_shuffle(x: Any, r: int) -> Any:
    *lead, c, h, w = x.shape
    return x.reshape(*lead, c // (r * r), r, r, h, w).permute(
        *range(len(lead)), len(lead), len(lead) + 3, len(lead) + 1, len(lead) + 4, len(lead) + 2
    ).reshape(*lead, c // (r * r), h * r, w * r)


def pixel_unshuffle(x: Any, r: int) -> Any:
    *lead, c, h, w = x.shape
    n = len(lead)
    return x.reshape(*lead, c, h // r, r, w // r, r).permute(*range(n), n, n + 2, n + 4, n + 1, n + 3).reshape(
        *lead, c * r * r, h // r, w // r
    )


def channel_shuffle(x: Any, groups: int) -> Any:
    return x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:]).transpose(1, 2).reshape(x.shape)


def im2col(x: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    n, c = x.shape[0], x.shape[1]
    x = F.pad(x, [padding[1], padding[1], padding[0], padding[0]])
    for d in (0, 1):
        x = x.unfold(2 + d, dilation[d] * (kernel[d] - 1) + 1, stride[d])
    x = x[..., :: dilation[0], :: dilation[1]]
    return x.permute(0, 1, 4, 5, 2, 3).reshape(n, c * kernel[0] * kernel[1], -1)
