# SPDX-License-Identifier: Apache-2.0
"""Choose the sizes of a task: those of the request, or smaller ones for small devices.

Hides the search. Sizes are tried from small to large and executed, so nothing large is ever made.

1. Small constants stay: heads, groups, kernel sizes, batch; the limit of what counts as small (KEPT) is lowered only if nothing fits
   otherwise.
2. A constant c becomes about c**t, the same t for all, so that order and proportions are kept: a long dimension stays long.
3. A power of two stays one; small odd factors (3 * 2**8) stay; an odd size stays odd.
4. A task that runs only where it is larger than the limits (a window of 99 x 99) is taken at its smallest size.
5. How much is tried is counted, not timed: a task has the same sizes on every machine.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Callable

import torch

from .fault import Fault, use
from .graph import Graph, Limit, TooBig, node_flops
from .task import FIRST_SEED, Arguments, Source, Task
from .truth import StandIn, on_meta, trace

KEPT = (32, 16, 4)
STEPS = [i / 20 for i in range(5, 21)]  # t
DIVISORS = (256, 128, 64, 32, 16, 8, 4, 2)
NOT_SIZES = ("seed",)
FLOPS_LIMIT = 5e7
MOST_TRIED = 100  # combinations of sizes, those of many operators counted twice and more; then the task is taken as it is written
LARGE = 200  # operators
NO_SHAPES = re.compile(r"meta|not ?implemented|could not run|item\(\)|data-dependent", re.IGNORECASE)
WIDER_ELEMENTS, WIDER_FLOPS = 8, 100  # where nothing smaller runs
AHEAD_ELEMENTS, AHEAD_FLOPS = 64, 20000  # likewise, where no kernel runs at these sizes


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


def check_set(source: Source, fixed: dict[str, Any]) -> None:
    """Are these constants of the task, with whole numbers for them?"""
    for name, value in fixed.items():
        if name not in source.constants and name not in source.literals:
            known = ", ".join(f"{n}={v}" for n, v in source.constants.items()) or "none"
            if source.literals:
                known += "; and numbers written out: " + ", ".join(source.literals)
            raise use(f"{source.path} has no integer constant {name!r} at top level", f"it has: {known}")
        if type(value) is not int or value < 0:
            raise use(f"{name} must be a whole number, not {value!r}", "for example --set N=512")


def sizes_for(source: Source, fixed: dict[str, int], request: dict[str, Any], variant: int, backward: bool) -> dict[str, int]:
    """The constants that differ from what is written: those of `fixed`, and as many others as the request's limits ask for."""
    check_set(source, fixed)
    most = request.get("max_elements")
    if not most:
        return dict(fixed)
    with Limit(8 * int(most)), contextlib.suppress(TooBig):
        source.execute(fixed)  # if it does not load at all, its size is not the cause
    limits = Limits(int(most), float(request.get("max_flops") or FLOPS_LIMIT))
    written = {**source.constants, **source.literals}

    costs = Costs(source, written, variant, backward)
    failure: Fault | None = None
    wider = Limits(WIDER_ELEMENTS * limits.elements, WIDER_FLOPS * limits.flops)
    # Sizes written out, where names are not enough; beyond the limits, where nothing that runs is within them.
    ways = [(source.constants, limits), (written, limits), *([(source.constants, wider)] if source.constants else []), (written, wider)]
    if request.get("as_written"):  # only PyTorch runs these sizes
        ways.append((written, Limits(AHEAD_ELEMENTS * limits.elements, AHEAD_FLOPS * limits.flops)))
    for k, (sizes, most) in enumerate(ways):
        costs.limits = most
        costs.allow(MOST_TRIED * (k + 2) / (len(ways) + 1))
        try:
            chosen = choose(sizes, fixed, limits, costs.of, most, costs.runs)
        except Fault as fault:
            failure = failure or fault
            continue
        return {n: v for n, v in chosen.items() if v != written[n] or n in fixed}
    assert failure is not None
    raise failure


class Costs:
    """What the task costs at some sizes, found once."""

    def __init__(self, source: Source, written: dict[str, int], variant: int, backward: bool) -> None:
        self.source, self.written, self.variant, self.backward = source, written, variant, backward
        self.limits = Limits(0, 0.0)
        self.known: dict[tuple[tuple[str, int], ...], Cost | Fault] = {}
        self.agreed: set[str] = set()  # faults, without their numbers, that shapes alone and the CPU both had
        self.tried, self.allowed = 0.0, float(MOST_TRIED)

    def allow(self, tried: float) -> None:
        """So much may have been tried."""
        self.allowed = tried

    def of(self, values: dict[str, int]) -> Cost:
        changed = self._changed(values)
        found = self.known.get(changed)
        if found is None or (isinstance(found, Cost) and math.isinf(found.flops) and found.elements <= self.limits.elements):
            if changed and self.tried >= self.allowed:
                raise use(f"{self.source.path}: none of many combinations of smaller sizes runs", "set sizes: --set N=512")
            self.tried += 1
            try:
                found = self._measure(values)
            except Fault as fault:
                found = fault
            self.known[changed] = found
        if isinstance(found, Fault):
            raise found
        return found

    def runs(self, values: dict[str, int]) -> bool:
        """Not all that shapes alone allow: reflection of more than there is. What fits is executed once."""
        try:
            task = Task(self.source, values, torch.device("cpu"), self.variant, self.backward)
            arguments = task.arguments(FIRST_SEED)
            with StandIn():
                trace(task, task.model(FIRST_SEED), arguments, arguments.tensors)
        except Fault as fault:
            self.known[self._changed(values)] = fault
            return False
        return True

    def _changed(self, values: dict[str, int]) -> tuple[tuple[str, int], ...]:
        return tuple(sorted((n, v) for n, v in values.items() if v != self.written[n]))

    def _measure(self, values: dict[str, int]) -> Cost:
        """On meta tensors where that works: no arithmetic; else executed on the CPU, if not far too big."""
        most = 8 * self.limits.elements
        too_big = Cost(self.limits.elements + 1, math.inf, 0)
        try:
            with Limit(most):
                task = Task(self.source, values, torch.device("cpu"), self.variant, self.backward)
                arguments = task.arguments(FIRST_SEED)
                model = task.model(FIRST_SEED)
            if max((t.numel() for t in arguments.tensors), default=0) > self.limits.elements:
                return too_big
            graph = self._traced(task, model, arguments, most)
        except TooBig:
            return too_big
        sizes = [math.prod(part["shape"]) for node in graph.nodes for part in node.parts]
        self.tried += len(graph.nodes) // LARGE
        return Cost(
            max(sizes, default=0), sum(node_flops(graph.nodes, n) for _, n in graph.operators()), sum(sizes)
        )

    def _traced(self, task: Task, model: torch.nn.Module, arguments: Arguments, most: int) -> Graph:
        try:
            return trace(task, on_meta(model), arguments, [t.to("meta") for t in arguments.tensors], limit=most)[0]
        except (Fault, NotImplementedError) as fault:
            said = _without_numbers(fault)
            if said in self.agreed and isinstance(fault, Fault):
                raise
        try:
            with StandIn():
                return trace(task, model, arguments, arguments.tensors, limit=most)[0]
        except Fault as fault:
            if _without_numbers(fault) == said or not NO_SHAPES.search(said):
                self.agreed.add(said)  # shapes alone say it as well: the CPU need not be asked again
            raise


def _without_numbers(fault: Exception) -> str:
    return re.sub(r"-?\d+", "0", fault.text if isinstance(fault, Fault) else str(fault))


def shrink(value: int, t: float, kept: int) -> int:
    """About value**t, keeping powers of two, odd factors and oddness of `value`, and not below `kept`."""
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


def divide(sizes: dict[str, int], by: int, kept: int) -> dict[str, int]:
    """Every size above `kept` by the same number: N == HEADS * HEAD_DIM stays true, and so does a doubling of channels."""
    return {n: v // by if v > kept and v % by == 0 else v for n, v in sizes.items()}


def choose(
    constants: dict[str, int],
    fixed: dict[str, int],
    limits: Limits,
    cost_of: Callable[[dict[str, int]], Cost],
    wide: Limits | None = None,
    runs: Callable[[dict[str, int]], bool] = lambda values: True,
) -> dict[str, int]:
    """The largest values of the constants that hold the limits; else the least ones that run and hold `wide`.

    `cost_of` executes the task and raises Fault where it does not run."""
    sizes = {
        n: v for n, v in constants.items() if n not in fixed and not any(w in n.lower() for w in NOT_SIZES)
    }
    failure: Fault | None = None
    smallest: Cost | None = None
    found: list[tuple[float, int, dict[str, int]]] = []

    def tried(steps: Iterable[dict[str, int]]) -> dict[str, int] | None:
        """The last that holds the limits, of ever larger ones."""
        nonlocal failure, smallest
        best: dict[str, int] | None = None
        before: list[dict[str, int]] = []
        for values in steps:
            if values in before:
                continue
            before.append(values)
            try:
                cost = cost_of({**fixed, **values})
            except Fault as fault:
                failure = failure or _at(fault, values, sizes)
                continue
            smallest = smallest if smallest and smallest.flops <= cost.flops else cost
            if wide and wide.hold(cost) and all(values != other for _, _, other in found):
                found.append((cost.flops, cost.elements, values))
            if not limits.hold(cost):
                break
            best = values
        return best if best is not None and runs({**fixed, **best}) else None

    for kept in KEPT:
        large = [n for n, v in sizes.items() if v > kept]
        for frozen in _freezes(large):
            best = tried({n: v if n in frozen else shrink(v, t, kept) for n, v in sizes.items()} for t in STEPS)
            if best is None and len(large) > 1 and not frozen:
                best = tried(divide(sizes, by, kept) for by in DIVISORS)
            if best is not None:
                return {**fixed, **best}
    for _, _, values in sorted(found, key=lambda one: one[:2]):
        if runs({**fixed, **values}):
            return {**fixed, **values}
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
    """The fault with the sizes at which it occurred."""
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
