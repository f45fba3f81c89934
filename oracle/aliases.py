# SPDX-License-Identifier: Apache-2.0
"""Tensors over the same memory, while a forward is traced: how a write through one of them changes the others.

A graph has values, not memory. So a write through a view becomes a new value of the tensor it is a view of
(`slice_scatter`, `select_scatter`, `diagonal_scatter`, or a reshape or permutation back), and a view that was made before a
write is made again when it is read after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

import torch

from .operators import VIEWS

Place = tuple[int, int]  # (node, part)
Part = dict[str, Any]
Make = Callable[[str, list[dict[str, Any]], Part], Place]  # adds a node to the graph

RESHAPES = frozenset("view _unsafe_view _reshape_alias reshape flatten unflatten unsqueeze squeeze view_as".split())


@dataclass
class Root:
    """A tensor that owns its memory."""

    node: Place  # its value now
    leaf: int = -1  # its number, where it is an argument or part of the model
    version: int = 0


@dataclass(frozen=True)
class Step:
    """One view of what is before it."""

    op: str
    args: tuple[dict[str, Any], ...]  # all but the tensor
    before: Part
    after: Part


@dataclass
class Alias:
    root: Root
    steps: tuple[Step, ...] = ()
    version: int = 0  # of the root, when its node was made


def step_of(name: str, op: str, args: list[dict[str, Any]], before: Part, after: Part, which: int) -> Step:
    """The view that result `which` of an operator with these arguments is."""
    if name in ("split", "split_with_sizes", "chunk", "unbind"):
        return _of_many(name, args, before, after, which)
    if name in ("slice", "select") and op.split(".")[1] == name:
        args = _plain(name, args, before)
    return Step(op, tuple(args), before, after)


def _of_many(name: str, args: list[dict[str, Any]], before: Part, after: Part, which: int) -> Step:
    shape = before["shape"]
    dim = int(args[-1].get("value", 0)) if args and (name == "unbind" or len(args) > 1) else 0
    dim %= max(len(shape), 1)
    if name == "unbind":
        return Step("aten.select.int", ({"value": dim}, {"value": which}), before, after)
    if name == "split_with_sizes":
        start = sum(args[0]["ints"][:which])
    elif name == "split":
        start = which * int(args[0]["value"])
    else:
        start = which * -(-shape[dim] // int(args[0]["value"]))
    bounds = ({"value": dim}, {"value": start}, {"value": start + after["shape"][dim]}, {"value": 1})
    return Step("aten.slice.Tensor", bounds, before, after)


def _plain(name: str, args: list[dict[str, Any]], before: Part) -> list[dict[str, Any]]:
    """Without negative numbers, defaults and ends beyond the end."""
    shape = before["shape"]
    given: list[Any] = [arg.get("value") for arg in args]
    dim = int(given[0] or 0) % max(len(shape), 1)
    size = shape[dim]
    if name == "select":
        return [{"value": dim}, {"value": int(given[1]) % size}]
    ends = []
    for k, missing in ((1, 0), (2, size)):
        end = missing if len(given) <= k or given[k] is None else int(given[k])
        ends.append(min(max(end + size if end < 0 else end, 0), size))
    step = given[3] if len(given) > 3 and given[3] is not None else 1
    return [{"value": v} for v in (dim, ends[0], max(ends), int(step))]


def shares_memory(a: torch.Tensor, b: torch.Tensor) -> bool:
    try:
        return _storage(a) == _storage(b)
    except (AttributeError, NotImplementedError, RuntimeError):
        return True


def _storage(tensor: torch.Tensor) -> Any:
    return (tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()._storage)._cdata


def is_view(name: str) -> bool:
    return name in VIEWS


def made_again(alias: Alias, make: Make) -> Place:
    """The view of the root's current value."""
    place = alias.root.node
    for step in alias.steps:
        place = make(step.op, [_ref(place), *step.args], step.after)
    return place


def written(alias: Alias, value: Place, make: Make) -> bool:
    """Gives the root the value it has after a write of `value` through this alias. False: no operator says it."""
    if any(_back(step, k) is None for k, step in enumerate(alias.steps)):
        return False
    for k in range(len(alias.steps), 0, -1):
        step = alias.steps[k - 1]
        back = _back(step, k - 1)
        assert back is not None
        op, args, whole = back
        if whole:  # it keeps the other elements of what was before
            old = made_again(Alias(alias.root, alias.steps[: k - 1]), make)
            given = [*args, _ref(value)] if op.startswith("aten.index_put") else [_ref(value), *args]
            value = make(op, [_ref(old), *given], step.before)
        else:
            value = make(op, [_ref(value), *args], step.before)
    alias.root.node = value
    alias.root.version += 1
    alias.version = alias.root.version
    return True


def _back(step: Step, before: int) -> tuple[str, list[dict[str, Any]], bool] | None:
    """The operator that undoes a view with that many views before it, its arguments, and whether it needs what was before."""
    name = step.op.split(".")[1]
    if name in RESHAPES:
        return "aten.view.default", [{"ints": list(step.before["shape"])}], False
    if name == "slice":
        return "aten.slice_scatter.default", list(step.args), True
    if name == "select":
        return "aten.select_scatter.default", list(step.args), True
    if name == "diagonal":
        return "aten.diagonal_scatter.default", list(step.args), True
    if name == "index":  # places.py
        return "aten.index_put.default", list(step.args), True
    if name in ("t", "transpose", "numpy_T", "swapaxes"):
        return step.op, list(step.args), False
    if name == "permute":
        dims = [d % len(step.args[0]["ints"]) for d in step.args[0]["ints"]]
        order = sorted(range(len(dims)), key=lambda d: dims[d])
        return "aten.permute.default", [{"ints": order}], False
    if name == "as_strided" and _lies_apart(step) and (before == 0 or len(step.args) < 3):
        return "aten.as_strided_scatter.default", list(step.args), True
    return None


def _lies_apart(step: Step) -> bool:
    """Are no two elements of the view the same one, and is what it is a view of contiguous?"""
    sizes, end = step.before["shape"], 1
    for size, stride in zip(reversed(sizes), reversed(step.before["strides"])):
        if size != 1 and stride != end:
            return False
        end *= max(size, 1)
    end = 0
    for stride, size in sorted(zip(step.after["strides"], step.after["shape"])):
        if size > 1 and stride <= end:
            return False
        end += stride * max(size - 1, 0)
    return True


def _ref(place: Place) -> dict[str, Any]:
    return {"node": place[0], "part": place[1]} if place[1] else {"node": place[0]}
