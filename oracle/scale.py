# SPDX-License-Identifier: Apache-2.0
"""Smaller sizes for small devices: which values of a task's constants fit into limits.

Hides the search. Sizes are tried from small to large and executed, so nothing large is ever made.

1. Small constants stay: heads, groups, kernel sizes, batch; what counts as small goes down (KEPT) only when nothing fits otherwise.
2. A constant c becomes about c**t, the same t for all, so that order and proportion survive: what was long stays long.
3. A power of two stays one; small odd factors (3 * 2**8) stay; an odd size stays odd.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Callable

from .fault import Fault, use

KEPT = (32, 16, 4)
STEPS = [i / 20 for i in range(5, 21)]  # t
NOT_SIZES = ("seed",)


@dataclass
class Cost:
    elements: int  # of the largest tensor, inputs and intermediate results included
    flops: float
    total: int  # elements of all results


@dataclass
class Limits:
    elements: int
    flops: float

    def hold(self, cost: Cost) -> bool:
        return (
            cost.elements <= self.elements and cost.flops <= self.flops and cost.total <= 16 * self.elements
        )


def shrink(value: int, t: float, kept: int) -> int:
    """About value**t with the arithmetic nature of `value`, and not below `kept`."""
    if t >= 1.0 or value <= kept:
        return value
    twos = (value & -value).bit_length() - 1
    odd = value >> twos
    target = max(float(value) ** t, kept)
    if odd <= 15:
        return min(value, odd << max(round(math.log2(target / odd)), 0))
    twos = min(twos, 4)
    while twos and target / (1 << twos) < 3:
        twos -= 1
    smaller = max(int(target / (1 << twos)) | 1, 3)
    return min(value, smaller << twos)


def choose(
    constants: dict[str, int],
    fixed: dict[str, int],
    limits: Limits,
    cost_of: Callable[[dict[str, int]], Cost],
) -> dict[str, int]:
    """The largest values of the constants that hold the limits. `cost_of` executes the task and raises Fault where it does not run."""
    sizes = {
        n: v for n, v in constants.items() if n not in fixed and not any(w in n.lower() for w in NOT_SIZES)
    }
    failure: Fault | None = None
    smallest: Cost | None = None
    for kept in KEPT:
        for frozen in _freezes([n for n, v in sizes.items() if v > kept]):
            best: dict[str, int] | None = None
            tried: list[dict[str, int]] = []
            for t in STEPS:
                values = {n: v if n in frozen else shrink(v, t, kept) for n, v in sizes.items()}
                if values in tried:
                    continue
                tried.append(values)
                try:
                    cost = cost_of({**fixed, **values})
                except Fault as fault:
                    failure = failure or _at(fault, values, sizes)
                    continue
                smallest = smallest if smallest and smallest.flops <= cost.flops else cost
                if not limits.hold(cost):
                    break
                best = values
            if best is not None:
                return {**fixed, **best}
    if failure is not None:
        raise failure
    least = (
        f"{smallest.elements} elements in one tensor, {smallest.flops:.1e} flops"
        if smallest and math.isfinite(smallest.flops)
        else "too big to try"
    )
    raise use(
        f"the task does not fit this device: {least} at the smallest sizes; the limits are {limits.elements} elements and {limits.flops:.1e} flops",
        "assign sizes to names at the top of the file (N = 4096), or set them smaller: --set N=512",
    )


def _at(fault: Fault, values: dict[str, int], sizes: dict[str, int]) -> Fault:
    """The fault with the sizes it was met at."""
    changed = ", ".join(f"{n}={v}" for n, v in values.items() if v != sizes[n])
    return Fault(
        fault.kind,
        f"{fault.text} (at {changed}, scaled for this device)" if changed else fault.text,
        fault.hint,
    )


def _freezes(names: list[str]) -> Iterator[tuple[str, ...]]:
    """First all sizes shrink together; a task that breaks then gets one or two of them left alone. A task without any is tried as it is."""
    for count in range(max(min(len(names), 3), 1)):
        yield from itertools.combinations(names, count)
