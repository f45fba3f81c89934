# SPDX-License-Identifier: Apache-2.0
"""Ties: for sort, top-k, median, k-th value and mode PyTorch does not promise which of several equal elements an index names.

An index of an element equal to the one that the reference's index names is as right. A sort and a top-k name each
element of a row at most once. A stable sort, argmax, max and min promise the first: their indices are compared as they are.
"""

from __future__ import annotations

from typing import Any

import torch

from .mode import Mode, called

EACH_ONCE = frozenset(("sort", "argsort", "topk"))
ONE = frozenset(("kthvalue", "median", "nanmedian", "mode"))


class _Chosen(Mode):
    """Indices that were made inside `with`, what they point into, and along which dimension."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[torch.Tensor, torch.Tensor, int, bool]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        func = called(func, args)
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = str(func).split(".")[1] if "." in str(func) else str(func)
        if _may_differ(func, args, kwargs, result):
            x = args[0]
            named = {a.name: v for a, v in zip(func._schema.arguments, args)}
            dim = {**named, **kwargs}.get("dim", -1)
            if isinstance(dim, int) and x.dim():
                index, dim = result[1], dim % x.dim()
                self.found.append((index, x, dim, name in EACH_ONCE))
        return result


class LastFirst(Mode):
    """Inside `with`, indices of equal elements name the last where the reference's own order would name the first, and so on."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        func, kwargs = called(func, args), kwargs or {}
        result = func(*args, **kwargs)
        if not _may_differ(func, args, kwargs, result):
            return result
        dim = {a.name: v for a, v in zip(func._schema.arguments, args)}.get("dim", kwargs.get("dim", -1))
        if not isinstance(dim, int) or not args[0].dim():
            return result
        turned = func(args[0].flip(dim).contiguous(), *args[1:], **kwargs)
        return result[0], args[0].shape[dim] - 1 - turned[1]


def _may_differ(func: Any, args: Any, kwargs: Any, result: Any) -> bool:
    """Is this an operator that does not promise which of several equal elements it names?"""
    name = str(func).split(".")[1] if "." in str(func) else str(func)
    stable = kwargs.get("stable", "stable" in str(func) and len(args) > 1 and args[1] is True)
    return (name in EACH_ONCE or name in ONE) and isinstance(result, (tuple, list)) and len(result) == 2 and not stable


def settled(x: torch.Tensor, dim: int, once: bool, got: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """`wanted`, with `got` where it names an equal element."""
    short = wanted.dim() == x.dim() - 1
    a, b = (got.unsqueeze(dim), wanted.unsqueeze(dim)) if short else (got, wanted)
    inside = (a >= 0) & (a < x.shape[dim])
    mine, theirs = x.gather(dim, torch.where(inside, a, b)), x.gather(dim, b)
    same = inside & ((mine == theirs) | ((mine != mine) & (theirs != theirs)))
    if once and a.shape[dim] > 1:
        order = a.sort(dim)[0]
        same &= (order.narrow(dim, 1, a.shape[dim] - 1) != order.narrow(dim, 0, a.shape[dim] - 1)).all(dim, keepdim=True)
    made = torch.where(same, a, b)
    return made.squeeze(dim) if short else made


def settle(run: Any, made: list[torch.Tensor], reference: list[torch.Tensor]) -> list[torch.Tensor]:
    """The reference's answers, with indices of equal elements as they were given. `run` makes the reference again."""
    off = [k for k, (m, r) in enumerate(zip(made, reference)) if r.dtype == torch.int64 and m.shape == r.shape and not torch.equal(m, r)]
    if not off:
        return reference
    with _Chosen() as chosen:
        again = run()
    answers = list(reference)
    for k in off:
        for index, x, dim, once in chosen.found:
            if index.data_ptr() == again[k].data_ptr() and index.shape == again[k].shape and torch.equal(index, reference[k]):
                answers[k] = settled(x, dim, once, made[k], reference[k])
                break
    return answers
