# SPDX-License-Identifier: Apache-2.0
"""Formulas of sorts: runs, then merges; each is one kernel (src/expert/generic/sorts.c)."""

from __future__ import annotations

from typing import Any

import torch

from .graph import Node, Tracer
from .task import DTYPES

RUN = 16
tracers: list[Tracer] = []


def primitive(op: str, tensors: list[Any], numbers: dict[str, Any], result: Any) -> Any:
    tracer = tracers[-1]
    node = Node(op, [tracer._argument(t) for t in tensors], {k: {"value": v} for k, v in numbers.items()})
    node.parts = [{"dtype": DTYPES[result.dtype], "shape": list(result.shape), "strides": list(result.stride())}]
    tracer.nodes.append(node)
    tracer.mark(result, len(tracer.nodes) - 1, 0)
    return result


def _order(x: Any, dim: int, descending: bool) -> Any:
    """Places of the elements in sorted order, the first of equal ones first."""
    size, width = x.shape[dim], RUN
    numbers = {"dim": dim, "descending": descending}

    def empty() -> Any:
        return torch.empty(x.shape, dtype=torch.int64, device="meta")

    order = primitive("generic.sort_runs", [x], {**numbers, "width": width}, empty())
    while width < size:
        order = primitive("generic.sort_merge", [x, order], {**numbers, "width": width}, empty())
        width *= 2
    return order


def _sort(x: Any, dim: Any = -1, descending: bool = False, *, stable: Any = None) -> Any:
    if x.dim() == 0:
        return x, torch.zeros_like(x, dtype=torch.int64)
    if isinstance(dim, bool):
        dim, descending = -1, dim
    dim %= x.dim()
    order = _order(x, dim, descending)
    return torch.gather(x, dim, order), order


def _sort_stable(x: Any, stable: Any = None, dim: int = -1, descending: bool = False) -> Any:
    return _sort(x, dim, descending)


def sorted(x: Any, *args: Any, **kwargs: Any) -> Any:
    if args and (isinstance(args[0], bool) or args[0] is None) or "stable" in kwargs:
        return _sort_stable(x, *args, **kwargs)
    return _sort(x, *args, **kwargs)


def topk(x: Any, k: int, dim: int = -1, largest: bool = True, ordered: bool = True) -> Any:
    values, order = _sort(x, dim, largest)
    return values.narrow(dim, 0, k), order.narrow(dim, 0, k)


def kth(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    values, order = _sort(x, dim, False)
    values, order = values.narrow(dim, k - 1, 1), order.narrow(dim, k - 1, 1)
    return (values, order) if keepdim else (values.squeeze(dim), order.squeeze(dim))


def median(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    if dim is None:
        return kth(x.reshape(-1), (x.numel() + 1) // 2, 0)[0]
    return kth(x, (x.shape[dim] + 1) // 2, dim, keepdim)
