# SPDX-License-Identifier: Apache-2.0
"""Formulas of gradients that ATen has as operators of their own: convolutions, pools, pictures, embeddings, slices.

What is linear along one dimension at a time (means of windows, resampling) goes back through a matrix for each of them.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from .formulas_images import _sizes, _source, wide
from .formulas_scatter import scatter_add

# ---- convolutions -----------------------------------------------------------------------------


def _of_weight(x: Any, g: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    """sum of x[n, i, p stride + k dilation - padding] g[n, o, p]: a convolution of x with g, batch and channels swapped."""
    n, spatial = x.shape[0], list(x.shape[2:])
    into, out = x.shape[1] // groups, g.shape[1] // groups
    x = x.reshape([n, groups, into, *spatial]).transpose(0, 2).reshape([into, groups * n, *spatial])
    g = g.reshape([n, groups * out, *g.shape[2:]]).transpose(0, 1)
    made = torch.ops.aten.convolution(x, g, None, dilation, padding, stride, False, [0] * len(spatial), groups)
    for d, size in enumerate(kernel):
        made = made.narrow(2 + d, 0, size)
    return made.transpose(0, 1)


def convolution_backward(
    g: Any, x: Any, w: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, more: Any, groups: int, mask: Any
) -> Any:
    dims = x.dim() - 2
    stride, padding, dilation = ([v[k % len(v)] for k in range(dims)] for v in (stride, padding, dilation))
    kernel = list(w.shape[2:])
    made: list[Any] = [None, None, None]
    if mask[0]:
        lost = [x.shape[2 + k] - ((g.shape[2 + k] - 1) * stride[k] - 2 * padding[k] + dilation[k] * (kernel[k] - 1) + 1) for k in range(dims)]
        made[0] = torch.ops.aten.convolution(
            g, w, None, stride, padding, dilation, not transposed, [0] * dims if transposed else lost, groups
        )
    if mask[1]:
        x_, g_ = (g, x) if transposed else (x, g)
        made[1] = _of_weight(x_, g_, kernel, stride, padding, dilation, groups)
    if mask[2]:
        made[2] = g.sum([0, *range(2, g.dim())])
    return tuple(made)


# ---- what is linear along each dimension --------------------------------------------------------


def _back_along(g: Any, dim: int, matrix: Any) -> Any:
    """matrix: (out,in). sum over out of g times it."""
    return torch.matmul(g.transpose(dim, -1), matrix.to(g.dtype)).transpose(dim, -1)


def _at(n: int, g: Any) -> Any:
    return torch.arange(n, device=g.device)


def adaptive_avg_pool(g: Any, x: Any) -> Any:
    for d in range(1 if x.dim() == 3 else 2, x.dim()):
        size, out = x.shape[d], g.shape[d]
        k = _at(out, g)
        first, end = k * size // out, ((k + 1) * size + out - 1) // out
        i = _at(size, g)
        inside = (i >= first.unsqueeze(1)) & (i < end.unsqueeze(1))
        g = _back_along(g, d, inside.to(wide(g)) / (end - first).unsqueeze(1).to(wide(g)))
    return g


def avg_pool(dims: int) -> Any:
    def formula(g: Any, x: Any, kernel: Any, stride: Any, padding: Any, ceil: bool, pads_count: bool, divisor: Any = None) -> Any:
        stride = stride or kernel
        for k in range(dims):
            d = x.dim() - dims + k
            size, pad, taps, step = x.shape[d], padding[k % len(padding)], kernel[k % len(kernel)], stride[k % len(stride)]
            first = _at(g.shape[d], g) * step - pad
            end = torch.clamp(first + taps, max=size + pad)
            i = _at(size, g)
            inside = (i >= first.unsqueeze(1)) & (i < end.unsqueeze(1))
            count = end - first if pads_count else torch.clamp(end, max=size) - torch.clamp(first, min=0)
            part = inside.to(wide(g))
            g = _back_along(g, d, part if divisor else part / count.unsqueeze(1).to(wide(g)))
        return g / divisor if divisor else g

    return formula


def linear(dims: int) -> Any:
    def formula(g: Any, size: Any, whole: Any, align: bool = False, *scales: Any, **kwargs: Any) -> Any:
        _, given = _sizes(g, size, scales, dims)
        for k in range(dims):
            d = g.dim() - dims + k
            inner = whole[d]
            at = torch.clamp(_source(inner, g.shape[d], align, given[k], g), min=0.0)
            low = torch.clamp(at.to(torch.int64), max=inner - 1)
            high = torch.clamp(low + 1, max=inner - 1)
            part = (at - low.to(wide(g))).unsqueeze(1)
            i = _at(inner, g)
            zero = torch.zeros_like(part)
            g = _back_along(g, d, torch.where(i == low.unsqueeze(1), 1 - part, zero) + torch.where(i == high.unsqueeze(1), part, zero))
        return g

    return formula


def nearest(dims: int, exact: bool) -> Any:
    def formula(g: Any, size: Any, whole: Any, *scales: Any, **kwargs: Any) -> Any:
        _, given = _sizes(g, size, scales, dims)
        for k in range(dims):
            d = g.dim() - dims + k
            inner = whole[d]
            at = _at(g.shape[d], g).to(torch.float32)
            at = torch.floor((at + 0.5 if exact else at) * (1.0 / given[k] if given[k] else inner / g.shape[d])).to(torch.int64)
            g = _back_along(g, d, (_at(inner, g) == torch.clamp(at, max=inner - 1).unsqueeze(1)).to(wide(g)))
        return g

    return formula


def padded(dims: int, mirror: bool) -> Any:
    def formula(g: Any, x: Any, pads: Any) -> Any:
        for k in range(dims):
            d = x.dim() - 1 - k
            size = x.shape[d]
            at = _at(g.shape[d], g) - pads[2 * k]
            if mirror:
                at = torch.abs(at)
                at = torch.where(at > size - 1, 2 * (size - 1) - at, at)
            at = torch.clamp(at, 0, size - 1)
            g = _back_along(g, d, (_at(size, g) == at.unsqueeze(1)).to(wide(g)))
        return g

    return formula


# ---- what goes back to places -------------------------------------------------------------------


def max_pool(dims: int) -> Any:
    def formula(g: Any, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool, index: Any) -> Any:
        lead, spatial = list(x.shape[: x.dim() - dims]), list(x.shape[x.dim() - dims :])
        flat = torch.zeros([*lead, math.prod(spatial)], dtype=x.dtype, device=x.device)
        return scatter_add(flat, len(lead), index.reshape([*lead, -1]), g.reshape([*lead, -1])).reshape(x.shape)

    return formula


def embedding_dense(g: Any, index: Any, words: int, padding: int, by_frequency: bool) -> Any:
    flat, rows = index.reshape(-1), g.reshape(index.numel(), -1)
    if by_frequency:
        counts = scatter_add(torch.zeros([words], dtype=wide(g), device=g.device), 0, flat, torch.ones_like(flat).to(wide(g)))
        rows = (rows / torch.index_select(counts, 0, flat).unsqueeze(1)).to(g.dtype)
    if padding >= 0:
        rows = torch.where((flat == padding).unsqueeze(1), torch.zeros_like(rows), rows)
    made = torch.zeros([words, rows.shape[1]], dtype=g.dtype, device=g.device)
    return scatter_add(made, 0, flat.unsqueeze(1).expand(rows.shape), rows)


def select(g: Any, size: Any, dim: int, index: int) -> Any:
    return torch.select_scatter(torch.zeros(list(size), dtype=g.dtype, device=g.device), g, dim, index)


def sliced(g: Any, size: Any, dim: int, start: int, end: int, step: int) -> Any:
    return torch.slice_scatter(torch.zeros(list(size), dtype=g.dtype, device=g.device), g, dim, start, end, step)


BODIES = {
    "convolution_backward": convolution_backward,
    "_adaptive_avg_pool2d_backward": adaptive_avg_pool,
    "_adaptive_avg_pool3d_backward": adaptive_avg_pool,
    "avg_pool2d_backward": avg_pool(2),
    "avg_pool3d_backward": avg_pool(3),
    "upsample_linear1d_backward": linear(1),
    "upsample_bilinear2d_backward": linear(2),
    "upsample_trilinear3d_backward": linear(3),
    "upsample_nearest1d_backward": nearest(1, False),
    "upsample_nearest2d_backward": nearest(2, False),
    "upsample_nearest3d_backward": nearest(3, False),
    "_upsample_nearest_exact1d_backward": nearest(1, True),
    "_upsample_nearest_exact2d_backward": nearest(2, True),
    "reflection_pad1d_backward": padded(1, True),
    "reflection_pad2d_backward": padded(2, True),
    "reflection_pad3d_backward": padded(3, True),
    "replication_pad1d_backward": padded(1, False),
    "replication_pad2d_backward": padded(2, False),
    "replication_pad3d_backward": padded(3, False),
    "max_pool2d_with_indices_backward": max_pool(2),
    "max_pool3d_with_indices_backward": max_pool(3),
    "embedding_dense_backward": embedding_dense,
    "select_backward": select,
    "slice_backward": sliced,
}
