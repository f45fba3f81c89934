# SPDX-License-Identifier: Apache-2.0
"""Facts about inputs: structure and range, observed on several draws.

1. A fact holds for every examined draw; a draw that contradicts it removes it.
2. Structure (triangular, symmetric, few values, rows that sum to one) is kept by every distribution drawn later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch

SAMPLE = 1 << 16
FEW = 4  # at most so many different values: kept as drawn


@dataclass
class Known:
    """Facts about one input."""

    floating: bool = True
    upper: bool = False
    lower: bool = False
    symmetric: bool = False
    unit_rows: bool = False
    few_values: bool = False
    low: float = math.inf
    high: float = -math.inf
    mean: float = 0.0
    std: float = 0.0
    draws: int = 0
    shape: list[int] = field(default_factory=list)
    rows_apart: bool = False  # every row of the outputs knows one of its rows: parts.py
    zero_rows: bool = False  # rows of zeros tell something, and the reference bears them
    no_ties: bool = False  # which of two equal elements comes first tells in the results, and PyTorch does not promise it
    factors: int = 0  # so many of its elements are multiplied with each other
    domain: str = "any"  # "any", "positive", "range", "task": what values the task can bear; see draw.py

    def structured(self) -> bool:
        return self.upper or self.lower or self.symmetric or self.unit_rows

    def triangle_share(self) -> float:
        """The part of the elements that is not known to be zero."""
        if not (self.upper or self.lower) or len(self.shape) < 2:
            return 1.0
        rows, columns = self.shape[-2], self.shape[-1]
        if self.upper and self.lower:
            return min(rows, columns) / max(rows * columns, 1)
        short = min(rows, columns)
        kept = columns * rows - (
            rows * (rows - 1) // 2
            if rows <= columns
            else columns * (columns - 1) // 2 + (rows - columns) * columns
        )
        if self.lower:
            kept = short * (short + 1) // 2 + (rows - short) * columns
        return kept / max(rows * columns, 1)


def look(known: Known, tensor: torch.Tensor) -> None:
    """Takes one more draw of the input into account."""
    first = known.draws == 0
    known.draws += 1
    known.shape = list(tensor.shape)
    known.floating = tensor.is_floating_point()
    if tensor.numel() == 0 or tensor.is_complex():
        return
    values = tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16, torch.bool) else tensor
    known.low = min(known.low, float(values.min()))
    known.high = max(known.high, float(values.max()))
    sample = _sample(values).double()
    known.mean, known.std = float(sample.mean()), float(sample.std(unbiased=False))
    few = (
        2 <= torch.unique(sample[:4096]).numel() <= FEW and tensor.numel() > 4 * FEW
    )  # one value is not a structure: zeros may become others
    known.few_values = few and (first or known.few_values)
    for name, holds in _structure(tensor).items():
        setattr(known, name, holds and (first or getattr(known, name)))


def _sample(tensor: torch.Tensor) -> torch.Tensor:
    flat = tensor.reshape(-1)
    return flat if flat.numel() <= SAMPLE else flat[:: flat.numel() // SAMPLE]


def _structure(x: torch.Tensor) -> dict[str, bool]:
    none = {"upper": False, "lower": False, "symmetric": False, "unit_rows": False}
    if not x.is_floating_point() or x.dim() < 2 or x.shape[-1] < 4 or x.shape[-2] < 4:
        return none
    zero_below, zero_above = (
        not x[..., 3, :2].any(),
        not x[..., :2, 3].any(),
    )  # most inputs are refuted by a few elements
    upper = bool(zero_below) and not bool(torch.tril(x, -1).any())
    lower = bool(zero_above) and not bool(torch.triu(x, 1).any())
    symmetric = (
        x.shape[-1] == x.shape[-2]
        and not (upper and lower)
        and bool(torch.equal(x[..., 0, :], x[..., :, 0]))
        and bool(torch.equal(x, x.mT))
    )
    unit = (
        bool((x[..., :4, :].double().sum(-1) - 1).abs().max() < 1e-2)
        and bool((x.float().sum(-1) - 1).abs().max() < 1e-2)
        and bool((x >= 0).all())
    )
    return {"upper": upper, "lower": lower, "symmetric": symmetric, "unit_rows": unit}


def words(name: str, known: Known) -> list[str]:
    """The facts as sentences."""
    found: list[str] = []
    if known.draws == 0 or not math.isfinite(known.low):
        return found
    if known.upper and known.lower:
        found.append(f"{name} is diagonal")
    elif known.upper or known.lower:
        found.append(
            f"{name} is {'upper' if known.upper else 'lower'} triangular: {known.triangle_share():.0%} of it can differ from zero"
        )
    if known.symmetric:
        found.append(f"{name} is symmetric")
    if known.unit_rows:
        found.append(f"{name}: every row is non-negative and sums to 1")
    if known.low == known.high:
        found.append(f"{name} is {known.low:g} everywhere")
    elif known.few_values:
        found.append(f"{name} has few different values, between {known.low:g} and {known.high:g}")
    elif not known.floating:
        found.append(f"{name} is an integer in [{known.low:g}, {known.high:g}]")
    elif not known.structured():
        found.append(_range_words(name, known))
    if known.domain != "any":
        why = {
            "positive": "must be positive",
            "range": f"must stay in [{known.low:g}, {known.high:g}]",
            "task": "must be as get_inputs makes it",
        }
        found.append(f"{name} {why[known.domain]}: otherwise the reference fails or gives NaN")
    return found


def _range_words(name: str, known: Known) -> str:
    if 0 <= known.low and known.high <= 1 and abs(known.mean - 0.5) < 0.02 and abs(known.std - 0.2887) < 0.02:
        return f"{name} is uniform in [0, 1)"
    if (
        known.low < -1.5 * known.std
        and known.high > 1.5 * known.std
        and abs(known.mean) < 0.05 * known.std
        and known.high > 2.2 * known.std
    ):
        return f"{name} is normal with mean 0 and standard deviation {known.std:.2g}"
    sign = ", never negative" if known.low >= 0 else ""
    return f"{name} lies in [{known.low:.4g}, {known.high:.4g}]{sign}"
