"""Answers that know nothing of the task: which of them would pass? A task that one of them passes is not a test.

Tried on several distributions; an answer passes the task only when it passes all of them.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import torch

from .compare import Rules, compare_output, passes
from .operators import SAME, VIEWS

FIRST = 4096
TRIED = ("task", "normal", "wide")


def trivial(session: Any) -> dict[str, Any]:
    """{"passes": answers that pass on every distribution, "passes_on": answer -> the distributions it passes on}"""
    passed: dict[str, list[str]] = {}
    for distribution in TRIED:
        earlier, _, _ = session.answers(session.make(secrets.token_hex(16), distribution))
        drawn = session.make(secrets.token_hex(16), distribution)
        reference, truth, _ = session.answers(drawn)
        for name, answer in _answers(drawn.tensors + drawn.held, reference, earlier):
            if _right(answer, reference, truth, session.rules):
                passed.setdefault(name, []).append(distribution)
    always = [name for name, on in passed.items() if len(on) == len(TRIED)]
    return {
        "passes": [name for name in always if not (name.endswith("scaled") and _scales(session))],
        "passes_on": passed,
    }


def _right(
    answer: list[torch.Tensor], reference: list[torch.Tensor], truth: list[torch.Tensor], rules: Rules
) -> bool:
    """Most are wrong from the start: the first elements are compared before all of them."""
    for most in (FIRST, None):
        for got, r, t in zip(answer, reference, truth):
            a, b, c = (x.contiguous().reshape(-1)[:most] for x in (got, r, t))
            if not passes(compare_output("", a, b, c, rules, explain=False)):
                return False
    return True


def _scales(session: Any) -> bool:
    """The task is to scale an input: then a scaled input is the answer, not a trick."""
    names = {node.name for _, node in session.graph.operators()} - VIEWS - SAME
    return names <= {"mul", "div", "neg", "clone", "_to_copy"}


def _answers(
    inputs: list[torch.Tensor], reference: list[torch.Tensor], earlier: list[torch.Tensor]
) -> Iterator[tuple[str, list[torch.Tensor]]]:
    """`earlier` is the right answer to another draw: what a kernel could have learnt by heart."""
    yield "zeros", [torch.zeros_like(r).contiguous() for r in reference]
    yield "ones", [torch.ones_like(r).contiguous() for r in reference]
    yield "mean", [torch.full_like(r, _mean(e)).contiguous() for r, e in zip(reference, earlier)]
    yield "the answer to other inputs", [e.contiguous() for e in earlier]
    for k, x in enumerate(inputs):
        copies = [c for c in (_shaped(x, r) for r in reference) if c is not None]
        if len(copies) == len(reference):
            yield f"copy of in{k}", copies
            if x.is_floating_point() and all(r.is_floating_point() for r in reference):
                yield f"in{k} scaled", [_fitted(c, r) for c, r in zip(copies, reference)]


def _mean(tensor: torch.Tensor) -> float:
    values = tensor.double()
    values = values[torch.isfinite(values)]
    mean = float(values.mean()) if values.numel() else 0.0
    return mean if tensor.is_floating_point() else int(mean)


def _shaped(x: torch.Tensor, result: torch.Tensor) -> torch.Tensor | None:
    return (
        x.to(result.dtype).contiguous().reshape(result.shape)
        if x.numel() == result.numel() and x.numel()
        else None
    )


def _fitted(x: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    """The multiple of x that is nearest to the result, by their first elements."""
    wide, wanted = (t.contiguous().reshape(-1)[:FIRST].double() for t in (x, result))
    fine = torch.isfinite(wide) & torch.isfinite(wanted)
    wide, wanted = wide[fine], wanted[fine]
    size = float((wide * wide).sum())
    factor = float((wide * wanted).sum()) / size if size else 0.0
    return (x.double() * factor).to(result.dtype)
