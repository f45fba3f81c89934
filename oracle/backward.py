# SPDX-License-Identifier: Apache-2.0
"""Gradients as a task: judges the gradients of inputs and parameters for a drawn upstream gradient.

The upstream gradients are inputs like any other (names grad_OUTPUT, after the forward's), so that every distribution
reaches them too. The gradients come from torch's autograd, in float64 for the truth.

1. Operators of the backward pass that only autograd uses are traced as formulas of ordinary operators (derivatives.py).
2. What has no gradient (integers, what the outputs do not depend on) is not an output.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .fault import use


def upstream(results: list[tuple[str, torch.Tensor]], seed: int) -> list[tuple[str, torch.Tensor]]:
    """A gradient for each floating point output."""
    made = []
    for k, (name, result) in enumerate(results):
        if result.is_floating_point():
            generator = torch.Generator("cpu").manual_seed(seed + 7 * k + 1)
            if result.device.type == "meta":
                value = torch.empty(result.shape, dtype=result.dtype, device="meta")
            else:
                value = torch.randn(result.shape, generator=generator).to(result.device, result.dtype)
            made.append((f"grad_{name}", value))
    return made


@contextlib.contextmanager
def parameters_with_gradients(model: torch.nn.Module) -> Iterator[list[tuple[str, torch.Tensor]]]:
    named = [(n, p) for n, p in model.named_parameters() if p.is_floating_point()]
    for _, parameter in named:
        parameter.requires_grad_(True)
    try:
        yield named
    finally:
        for _, parameter in named:
            parameter.requires_grad_(False)


def gradients(
    path: Any,
    forward: Callable[[], list[tuple[str, torch.Tensor]]],
    leaves: list[tuple[str, torch.Tensor]],
    given: list[torch.Tensor],
) -> list[tuple[str, torch.Tensor]]:
    """Of the leaves that matter, in their order; `given` are the upstream gradients."""
    with torch.enable_grad():
        results = [r for _, r in forward() if r.is_floating_point()]
        used = [(r, g) for r, g in zip(results, given) if r.requires_grad]
        if not used:
            raise use(f"{path}: no output of forward depends on a floating point input or parameter", "a backward needs one")
        found = torch.autograd.grad(
            [r for r, _ in used], [t for _, t in leaves], [g for _, g in used], allow_unused=True
        )
    return [(f"grad_{name}", g.detach()) for (name, _), g in zip(leaves, found) if g is not None]
