# SPDX-License-Identifier: Apache-2.0
"""Find trivial answers that would pass a task, such as zeros. A task that one of them passes does not test anything.

Tried on several distributions; an answer passes the task only when it passes all of them. Every comparison tries those that no
draw has refuted yet (Standing): on a sample first, so that it costs nothing where a task is one.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterator
from typing import Any

import torch

from .compare import Rules, compare_output, passes
from .describe import MOVES
from .operators import SAME, VIEWS

FIRST = 4096
TRIED = ("task", "normal", "wide")
PLAIN = ("zeros", "ones", "NaN")


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
        "passes": [name for name in always if not _is_the_task(name, session)],
        "passes_on": passed,
    }


class Standing:
    """Answers that no draw of this task has refuted."""

    def __init__(self) -> None:
        self.names: set[str] | None = None  # None: nothing was tried
        self.tried: set[str] = set()
        self.earlier: list[torch.Tensor] | None = None  # a sample of the last draw's reference

    def narrow(self, session: Any, drawn: Any, reference: list[torch.Tensor], truth: list[torch.Tensor]) -> list[str]:
        """Tries one more draw; gives the plainest that has passed all of them, once there were enough."""
        if self.names != set() and not session.has_infinities(drawn):  # zeros would be refuted by NaN alone
            self._try(session, drawn, reference, truth)
        self.tried.add(drawn.distribution)
        enough = len(self.tried) >= len(TRIED)
        left = [n for n in self.names or () if enough and not _is_the_task(n, session)]
        return sorted(left, key=lambda n: (n not in PLAIN, not n.startswith("copy"), n))[:1]

    def _try(self, session: Any, drawn: Any, reference: list[torch.Tensor], truth: list[torch.Tensor]) -> None:
        inputs = drawn.tensors + drawn.held
        few, real = [_sample(r) for r in reference], [_sample(t) for t in truth]
        earlier = self.earlier
        if earlier is not None and [e.shape for e in earlier] != [f.shape for f in few]:
            earlier = None  # of a part of another size
        fitting = [x if any(x.numel() == r.numel() for r in reference) else x[:0] for x in (t.reshape(-1) for t in inputs)]
        found = {
            name
            for name, answer in _answers([_sample(x) for x in fitting], few, earlier)
            if (self.names is None or name in self.names) and _right(answer, few, real, session.rules)
        }
        whole = {n for n in found if n in PLAIN or n.startswith("copy")}  # made at once from a draw
        if whole:
            found -= whole
            found |= {
                name
                for name, answer in _answers(inputs, reference, None)
                if name in whole and _right(answer, reference, truth, session.rules)
            }
        if earlier is None:
            untried = {"mean", "the answer to other inputs"}
            found |= untried if self.names is None else untried & self.names
        self.names, self.earlier = found, few


def _sample(tensor: torch.Tensor) -> torch.Tensor:
    flat = tensor.reshape(-1)
    step = max(flat.numel() // FIRST, 1) | 1
    return flat[::step][:FIRST].clone()


def _is_the_task(name: str, session: Any) -> bool:
    """If the task is to copy or to scale, then that is the answer and not a trick."""
    names = {node.name for _, node in session.graph.operators()}
    return (name.startswith("copy") and names <= MOVES) or (name.endswith("scaled") and _scales(session))


def _right(
    answer: list[torch.Tensor], reference: list[torch.Tensor], truth: list[torch.Tensor], rules: Rules
) -> bool:
    """Most are wrong from the start: the first elements are compared before all of them."""
    for most in (FIRST, None):
        for k, (got, r, t) in enumerate(zip(answer, reference, truth)):
            a, b, c = (x.contiguous().reshape(-1)[:most] for x in (got, r, t))
            if not passes(compare_output("", a, b, c, rules.of(k), explain=False)):
                return False
    return True


def _scales(session: Any) -> bool:
    """The task is to scale an input: then a scaled input is the answer, not a trick."""
    names = {node.name for _, node in session.graph.operators()} - VIEWS - SAME
    return names <= {"mul", "div", "neg", "clone", "_to_copy"}


def _answers(
    inputs: list[torch.Tensor], reference: list[torch.Tensor], earlier: list[torch.Tensor] | None
) -> Iterator[tuple[str, list[torch.Tensor]]]:
    """`earlier` is the right answer to another draw, which a kernel could have memorised. None: unknown."""
    yield "zeros", [torch.zeros_like(r).contiguous() for r in reference]
    yield "ones", [torch.ones_like(r).contiguous() for r in reference]
    if all(r.is_floating_point() for r in reference):
        yield "NaN", [torch.full_like(r, math.nan).contiguous() for r in reference]
    if earlier is not None:
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
