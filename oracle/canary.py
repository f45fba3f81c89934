# SPDX-License-Identifier: Apache-2.0
"""Check that the comparison detects an error: one is planted at a secret place in a copy of the reference, and compared.

A comparison that is broken (by a mistake of ours, by modules of two versions, by a library) must not pass a candidate. What it
says about the planted error goes out with every judgement, and the asker refuses the judgement where it is not flagged
(src/eval/oracle.c). Costs a comparison of at most MOST elements.

1. The error is larger than anything rounding explains, so an honest comparison always flags it.
2. Where the reference itself is nothing but noise, or has no finite element, there is nothing to plant: None.
"""

from __future__ import annotations

import math
import secrets
from typing import Any

import torch

from .compare import Rules, compare_output

MOST = 1 << 11
FAR = 1024.0  # times the largest magnitude
NOISE = 1 / 64  # of the largest magnitude: a reference that is so far off is noise


def planted(reference: list[torch.Tensor], truth: list[torch.Tensor], rules: Rules) -> dict[str, Any] | None:
    """The COMPARISON of a planted error, in one of the outputs; None where none can be planted."""
    order = sorted(range(len(reference)), key=lambda _: secrets.randbits(30))
    for k in order:
        size = reference[k].numel()
        begin = secrets.randbelow(max(size - MOST, 0) + 1)
        wanted, real = (t.contiguous().reshape(-1)[begin : begin + MOST] for t in (reference[k], truth[k]))
        got = wanted.clone()
        if size and (_off_by_far(got, wanted, real) if got.dtype.is_floating_point else _another(got, wanted, real)):
            return compare_output("a planted error", got, wanted, real, rules.of(k), explain=False)
    return None


def _off_by_far(got: torch.Tensor, wanted: torch.Tensor, real: torch.Tensor) -> bool:
    """Changes one element by far more than the largest magnitude; if that exceeds the type's range, negates the largest."""
    wide = wanted.double()
    off, sizes = wide.sub(real).abs_(), wide.abs()
    places = None  # all
    if not math.isfinite(float(off.sum() + sizes.sum())):
        fine = torch.isfinite(wanted) & torch.isfinite(real)
        places = torch.nonzero(fine).reshape(-1)
        off, sizes = off[fine], torch.where(fine, sizes, torch.zeros_like(sizes))
    if places is not None and not places.numel():
        return False
    largest = float(sizes.max())
    if float(off.max()) > largest * NOISE:
        return False
    limits = torch.finfo(got.dtype)
    moved = FAR * (largest + float(limits.tiny))
    if largest + moved < float(limits.max) / 2:
        place = secrets.randbelow(got.numel() if places is None else places.numel())
        place = place if places is None else int(places[place])
        got[place] = float(wanted[place]) + moved
    else:
        place = int(sizes.argmax())
        got[place] = -wanted[place]
    return True


def _another(got: torch.Tensor, wanted: torch.Tensor, real: torch.Tensor) -> bool:
    """Changes an integer or a flag where reference and truth agree."""
    places = torch.nonzero(wanted == real.to(wanted.dtype)).reshape(-1)
    if not places.numel():
        return False
    place = int(places[secrets.randbelow(places.numel())])
    got[place] = ~wanted[place] if got.dtype == torch.bool else wanted[place] ^ 1
    return True
