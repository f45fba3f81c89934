# SPDX-License-Identifier: Apache-2.0
"""Formulas of sorts: rows that a block sorts, tiles and merges of longer ones, the first few (src/expert/generic/sorts.c)."""

from __future__ import annotations

from typing import Any

import torch

from .graph import Node, Tracer
from .task import DTYPES

ROW, TOP = 8192, 2048  # elements that a block sorts, that it looks for
tracers: list[Tracer] = []


def primitive(op: str, tensors: list[Any], numbers: dict[str, Any], shape: Any, dtype: Any) -> Any:
    tracer = tracers[-1]
    result = torch.empty(shape, dtype=dtype, device="meta")
    node = Node(op, [tracer._argument(t) for t in tensors], {k: {"value": v} for k, v in numbers.items()})
    node.parts = [{"dtype": DTYPES[dtype], "shape": list(result.shape), "strides": list(result.stride())}]
    tracer.nodes.append(node)
    tracer.mark(result, len(tracer.nodes) - 1, 0)
    return result


def _halves(x: Any) -> tuple[Any, Any]:
    """The low and the high 32 bits of whole numbers, each in the order of 32-bit numbers."""
    low = torch.bitwise_and(x, 0xFFFFFFFF) - (1 << 31)
    return low.to(torch.int32), torch.bitwise_right_shift(x, 32).to(torch.int32)


def _order(x: Any, descending: bool) -> Any:
    """Places of the elements of rows (the last dimension) in sorted order, the first of equal ones first."""
    numbers, size, width = {"descending": descending}, x.shape[-1], ROW
    if x.dtype == torch.float64:
        x = primitive("generic.special_order", [x], {}, x.shape, torch.int64)
    if x.dtype == torch.int64:
        low, high = _halves(x)
        order = _order(low, descending)
        return torch.gather(order, -1, _order(torch.gather(high, -1, order), descending))
    if size <= ROW:
        return primitive("generic.sort_rows", [x], numbers, x.shape, torch.int32).to(torch.int64)
    entries = primitive("generic.sort_tiles", [x], {**numbers, "width": width}, x.shape, torch.int64)
    while width < size:
        dtype = torch.int64 if 2 * width < size else torch.int32
        entries = primitive("generic.sort_merge", [entries], {"width": width}, x.shape, dtype)
        width *= 2
    return entries.to(torch.int64)


def _first(x: Any, k: int, largest: bool, only: bool) -> Any:
    """Places of the first k elements of rows; only: of the k-th."""
    if x.dtype in (torch.int64, torch.float64) or (k > TOP and not only):
        order = _order(x, largest)
        return order.narrow(-1, k - 1, 1) if only else order.narrow(-1, 0, k)
    form = "generic.sort_nth" if only else "generic.sort_top"
    shape = [*x.shape[:-1], 1 if only else k]
    return primitive(form, [x], {"count": k, "descending": largest}, shape, torch.int32).to(torch.int64)


def _placed(x: Any, order: Any, dim: int) -> Any:
    """(values, places), with the rows where they were."""
    values = torch.gather(x, -1, order)
    return (values.movedim(-1, dim), order.movedim(-1, dim)) if dim != x.dim() - 1 else (values, order)


def _rows(x: Any, dim: int) -> Any:
    return x.movedim(dim, -1) if dim != x.dim() - 1 else x


def _sort(x: Any, dim: Any = -1, descending: bool = False, *, stable: Any = None) -> Any:
    if x.dim() == 0 or x.numel() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    if isinstance(dim, bool):
        dim, descending = -1, dim
    dim %= x.dim()
    rows = _rows(x, dim)
    return _placed(rows, _order(rows, descending), dim)


def _sort_stable(x: Any, stable: Any = None, dim: int = -1, descending: bool = False) -> Any:
    return _sort(x, dim, descending)


def sorted(x: Any, *args: Any, **kwargs: Any) -> Any:
    if args and (isinstance(args[0], bool) or args[0] is None) or "stable" in kwargs:
        return _sort_stable(x, *args, **kwargs)
    return _sort(x, *args, **kwargs)


def topk(x: Any, k: int, dim: int = -1, largest: bool = True, ordered: bool = True) -> Any:
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    dim %= x.dim()
    if k == 0 or x.numel() == 0:
        empty = x.narrow(dim, 0, k).clone()
        return empty, torch.zeros_like(empty, dtype=torch.int64)
    rows = _rows(x, dim)
    return _placed(rows, _first(rows, k, largest, False), dim)


def kth(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    dim %= x.dim()
    rows = _rows(x, dim)
    values, order = _placed(rows, _first(rows, k, False, True), dim)
    return (values, order) if keepdim else (values.squeeze(dim), order.squeeze(dim))


def median(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    if dim is None:
        return kth(x.reshape(-1), (x.numel() + 1) // 2, 0)[0]
    return kth(x, (x.shape[dim] + 1) // 2, dim, keepdim)


def search(row: Any, values: Any, right: bool = False) -> Any:
    """How many elements of a sorted row (one for all, or one of each row of the values) come before each value."""
    return primitive("generic.search", [row, values], {"right": right}, values.shape, torch.int64)
