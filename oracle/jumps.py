# SPDX-License-Identifier: Apache-2.0
"""Operators whose result jumps: where rounding on the way decides which side of a step a number is on, both answers are right.

round(x), x > y, argmax(x): an honest kernel whose x differs by its rounding may have another result than the reference. The few
random runs of noise.py seldom find such an element, so it is looked for. In the noisy runs, operators that jump decide as they do
without noise; so these show how far rounding moves the operands of each. Further runs, with no other noise, push the operands
as far to either side.

1. An operand that nothing was rounded for, such as an input, is not pushed: a comparison of it is exact. Where the operator itself
   divides (DIVIDING), the quotient's rounding counts as well.
2. A push changes decisions alone: the value of a maximum stays, its index may change.
"""

from __future__ import annotations

from typing import Any

import torch

from .graph import Graph
from .mode import Mode, called

ONE, TWO, SECOND = (0,), (0, 1), (1,)
# where their operands are that a step depends on
JUMPS = {
    **dict.fromkeys("round floor ceil trunc sign sgn frac argmax argmin max min sort argsort topk kthvalue median nanmedian".split(), ONE),
    **dict.fromkeys("mode cummax cummin _to_copy hardshrink threshold histc bucketize logical_not any all count_nonzero".split(), ONE),
    **dict.fromkeys("max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool2d adaptive_max_pool3d".split(), ONE),
    **dict.fromkeys((f"fake_quantize_per_{part}_affine_cachemask" for part in ("tensor", "channel")), ONE),
    **dict.fromkeys("gt ge lt le eq ne remainder fmod floor_divide div heaviside searchsorted logical_and logical_or".split(), TWO),
    **dict.fromkeys("threshold_backward hardtanh_backward leaky_relu_backward hardswish_backward".split(), SECOND),
    **dict.fromkeys("grid_sampler_2d grid_sampler_3d".split(), SECOND),
}
DIVIDING = frozenset("remainder fmod floor_divide div".split())
KEPT = frozenset("hardshrink threshold".split())  # the operand itself on one side
INDEXED = frozenset("max min median nanmedian".split())  # with a dimension; else they do not jump
OWN = 8.0 * 2.0**-24  # of a dividing operator
FAR = 12.0  # times the median of what rounding was seen to do: about NOISE_ELEMENT (compare.py) standard deviations
PUSHES, PUSHES_SMALL = 6, 24
ROOM, RUNS_SMALL = 1 << 26, 12  # numbers that are kept, of so many runs


def can_jump(graph: Graph) -> bool:
    return any(node.name.rstrip("_") in JUMPS for _, node in graph.operators())


def _steps(base: str, args: Any, kwargs: dict[str, Any]) -> tuple[int, ...]:
    """The places of operands to be pushed."""
    if base == "_to_copy" and (kwargs.get("dtype") is None or kwargs["dtype"].is_floating_point):
        return ()
    if base == "div" and not kwargs.get("rounding_mode"):
        return ()
    if base in INDEXED and len(args) == 1:
        return ()
    if base.startswith("grid_sampler") and list(args[2:3]) != [1]:  # nearest
        return ()
    return tuple(
        k
        for k in JUMPS.get(base, ())
        if k < len(args) and isinstance(args[k], torch.Tensor) and args[k].is_floating_point() and args[k].device.type != "meta"
    )


def _decided(base: str, made: Any, deciding: Any, args: Any, func: Any, kwargs: Any) -> Any:
    """The result of `args` with the decisions that made `made` of `deciding`."""
    if base == "frac":
        return args[0] - (deciding[0] - made)
    if base in ("remainder", "fmod"):
        return args[0] - args[1] * torch.round((deciding[0] - made) / deciding[1])
    if base in KEPT:
        return torch.where(made == deciding[0], args[0], made)
    if isinstance(made, (tuple, list)):
        return (func(*args, **kwargs)[0], *made[1:])
    return made


class Jumps(Mode):
    """Inside `with`: `look` sees the operands as they are; `watch` how far a noisy run moves them; `push` pushes them."""

    def __init__(self) -> None:
        super().__init__()
        self.doing, self.number, self.left = self._look, 0, ROOM
        self.seen: list[tuple[list[Any], Any]] = []  # of each call: arguments and result
        self.moved: list[list[list[torch.Tensor]]] = []  # of each call, in each noisy run
        self.sign, self.generator = 0, torch.Generator()
        self.noise: Any = None

    def look(self) -> Jumps:
        return self._begin(self._look)

    def watch(self, noise: Any) -> Jumps:
        """`noise`: the mode that makes it; it leaves alone what is done here."""
        self.noise = noise
        return self._begin(self._watch)

    def push(self, number: int, generator: torch.Generator) -> Jumps:
        """Number 0: all up; 1: all down; others: each element by itself."""
        self.sign, self.generator = (1, -1)[number] if number < 2 else 0, generator
        return self._begin(self._push)

    def pushes(self, elements: int) -> range:
        """The runs that are worth it."""
        return range((PUSHES_SMALL if elements <= 4096 else PUSHES) if self.seen else 0)

    def _begin(self, doing: Any) -> Jumps:
        self.doing, self.number = doing, 0
        return self

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        func, kwargs = called(func, args), kwargs or {}
        base = func._schema.name.split("::")[-1]
        places = _steps(base, args, kwargs) if not func._schema.is_mutable else ()
        if not places or self.left <= 0:
            return func(*args, **kwargs)
        number, self.number = self.number, self.number + 1
        return self.doing(number, base, places, func, args, kwargs)

    def _look(self, number: int, base: str, places: Any, func: Any, args: Any, kwargs: Any) -> Any:
        result = func(*args, **kwargs)
        self.left -= sum((2 + RUNS_SMALL) * args[k].numel() for k in places)
        if self.left > 0:
            kept = [a.detach().clone() if k in places else None for k, a in enumerate(args)]
            self.seen.append((kept, _copies(result)))
            self.moved.append([])
        return result

    def _watch(self, number: int, base: str, places: Any, func: Any, args: Any, kwargs: Any) -> Any:
        if not self._knows(number, places, args):
            return func(*args, **kwargs)
        kept, made = self.seen[number]
        self.noise.paused = True
        try:
            off = [torch.nan_to_num((args[k] - kept[k]).abs_(), 0.0, 0.0, 0.0).float() for k in places]
            self.moved[number].append(off)
            deciding = [kept[k] if k in places else a for k, a in enumerate(args)]
            if JUMPS[base] == SECOND:
                return func(*deciding, **kwargs)
            return _decided(base, _copies(made), deciding, args, func, kwargs)
        finally:
            self.noise.paused = False

    def _push(self, number: int, base: str, places: Any, func: Any, args: Any, kwargs: Any) -> Any:
        if not self._knows(number, places, args) or not self.moved[number]:
            return func(*args, **kwargs)
        deciding = list(args)
        for turn, k in enumerate(places):
            deciding[k] = args[k] + self._shift(number, turn, args[k] if base in DIVIDING else None)
        return _decided(base, func(*deciding, **kwargs), deciding, args, func, kwargs)

    def _knows(self, number: int, places: Any, args: Any) -> bool:
        return number < len(self.seen) and all(
            k < len(self.seen[number][0]) and self.seen[number][0][k] is not None and self.seen[number][0][k].shape == args[k].shape
            for k in places
        )

    def _shift(self, number: int, turn: int, divided: torch.Tensor | None) -> torch.Tensor:
        """Of an operand; the second one goes the other way."""
        runs = torch.stack([run[turn] for run in self.moved[number]])
        usual = runs.sort(0)[0][len(runs) // 2].double().mul_(FAR)
        if divided is not None:
            usual.add_(divided.abs(), alpha=OWN)
        if self.sign:
            return usual.mul_(-self.sign if turn else self.sign)
        noise = torch.rand(usual.shape, generator=self.generator, dtype=usual.dtype, device=usual.device)
        return usual.mul_(noise.sub_(0.5).sign_())


def _copies(made: Any) -> Any:
    """Results as they were: whoever gets them may write into them."""
    return tuple(m.detach().clone() for m in made) if isinstance(made, (tuple, list)) else made.detach().clone()
