# SPDX-License-Identifier: Apache-2.0
"""How far rounding alone may move a result from the truth, measured by perturbing every operator slightly.

A graph of many operators amplifies or damps the rounding of each; no fixed factor fits both. So the forward is run in
float64 again, a few times, and every operator gets its operands off by what honest arithmetic leaves in them: a
unit roundoff each, and for an operator that adds up L terms the noise of adding them one after the other. The results differ from the
truth by the noise of an honest kernel, element by element, however ill-conditioned the computation is.

1. Inputs and parameters are off by a roundoff of the arithmetic alone, whatever type they are kept in: a function of them begins
   with a product, such as x log2(e) of a fast exponential.
2. An operator that normalizes subtracts a mean inside. What its operand's noise does to the result is divided away again, so
   the roundoff that the difference has of its two parts is added to the result (NORMALIZING).
3. A place on a grid is computed from -1..1 to pixels, by a sum and a product: it is off by a roundoff of |place| + 1, also where the
   operand itself is near 0, and what lies between two pixels far apart changes by as much of their difference (GRIDS). So is a
   place of an interpolation to another size, which is no operand (RESAMPLED); and a weight of a cubic one, a polynomial whose
   terms cancel, is off by roundoffs of the terms (CUBIC).
4. It costs a few float64 runs, so it is computed only if an answer would be rejected without it.
5. Where TF32 is allowed and the reference was computed without it, factors are off by TF32's rounding: in the first run they are
   rounded as the hardware rounds them, so that an element that only just leaves a clamp has what a rounded kernel has.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from . import formulas_images, formulas_more
from .graph import Graph, reduction_length
from .mode import Mode, called
from .operators import CONVOLUTIONS, FACTORIES, OTHER, PRODUCTS, SAME, VIEWS

RUNS, RUNS_SMALL, SMALL = 4, 12, 4096  # a small output gives few samples of its noise in one run
MORE = 4  # times as many, where it hangs on a few elements
IN_ORDER = 0.35  # times sqrt(L) roundoffs: the noise of L terms added one after the other
MAX_TERMS = 1 << 16
UNIFORM = 3.0**0.5  # half the width of a uniform distribution of variance one
ADDING = {"scatter_add", "index_add"}  # in any order, where several elements have one place
GRIDS = {"grid_sampler_2d", "grid_sampler_3d", "cudnn_grid_sampler"}  # their second operand is places
NEAREST, CUBIC = 1, 2  # their third: no sum of two pixels but one of them, and another one is wrong
RESAMPLED = {
    "upsample_linear1d": formulas_images.linear(1),
    "upsample_bilinear2d": formulas_images.linear(2),
    "upsample_trilinear3d": formulas_images.linear(3),
    "upsample_bicubic2d": formulas_images.bicubic,
}
TERMS = (4.0, 2.0, 2.0, 4.0)  # of a cubic weight: the largest number on the way to it
UNTOUCHED = (VIEWS | SAME | FACTORIES | OTHER) - ADDING
CANCELLING = {"gelu"}  # x/2 (1 + erf x): where erf is near -1, what is left of the sum has the roundoff of the 1
LOG_SOFTMAX = "_log_softmax_backward_data"  # g - exp(y) sum g: where exp(y) is near 1, y is near 0 and has no roundoff to give
NORMALIZING = {"native_layer_norm", "native_group_norm", "native_batch_norm", "_native_batch_norm_legit", "cudnn_batch_norm"}
ADDED_TO = {"addmm", "baddbmm", "addbmm", "addmv", "addr", "_addmm_activation"}  # a third operand comes first
RANGED = {"cumprod", "prod"}  # on the way they leave the range of float32, and come back with fewer bits
TF32_BITS, TF32_RMS = 11, 2.0**-12  # of a factor; the root mean square of what rounding to them is off
ROUNDOFF = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24, "f64": 2.0**-53}


class Disturb(Mode):
    """Inside `with`, operators get operands that are off by their rounding. `terms`: operator -> L; `short`: operators whose
    factors may be TF32; `nearest`: they are rounded to TF32, else off by as much."""

    def __init__(
        self,
        terms: dict[str, int],
        stored: float,
        summed: float,
        generator: torch.Generator,
        short: frozenset[str] = frozenset(),
        nearest: bool = False,
    ) -> None:
        super().__init__()
        self.terms, self.stored, self.summed, self.generator = terms, stored, summed, generator
        self.short, self.nearest = short, nearest
        self.paused = False
        self.made: dict[int, torch.Tensor] = {}  # results of operators: rounded where they were stored

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        func = called(func, args)
        if self.paused:
            return func(*args, **kwargs or {})
        name = func._schema.name.split("::")[-1]
        base = name.rstrip("_")
        if base not in UNTOUCHED and not func._schema.is_mutable:
            args = [self._off(a, self.terms.get(base, 1)) for a in args]
        if base in GRIDS and list(args[2:3]) != [NEAREST]:
            args = [self._off(args[0], 1), self._moved(args[1]), *args[2:]]
        if base in self.short:
            args = self._shortened(base, args)
        if base in RANGED and self.stored > ROUNDOFF["f64"]:
            args = [a.float() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args]
        result = func(*args, **(kwargs or {}))
        if base in RESAMPLED:
            formula = RESAMPLED[base]
            off = formula(*args, **kwargs or {}, places=self._moved, **({"weigh": self._weights} if "cubic" in base else {}))
            result = result + _difference(off, formula(*args, **kwargs or {}))
        if base == "grid_sampler_2d" and list(args[2:3]) == [CUBIC]:
            off = partial(formulas_more.grid_sampler_2d, weigh=self._weights)(*args)
            result = result + _difference(off, formulas_more.grid_sampler_2d(*args))
        if base in CANCELLING:
            result = result + self._signs(args[0], 0.25 * self.summed) * args[0]
        if base == LOG_SOFTMAX:
            part = torch.exp(args[1]) * args[0].sum(args[2], keepdim=True)
            result = result + self._signs(part, self.summed) * part
        if base in NORMALIZING:
            parts = _parts_of_difference(base, args, result[2])
            result = (result[0] + self._uniform(parts, self.summed) * parts, *result[1:])
        if base not in VIEWS | SAME or any(id(a) in self.made for a in args if isinstance(a, torch.Tensor)):
            for tensor in result if isinstance(result, (tuple, list)) else [result]:
                if isinstance(tensor, torch.Tensor):
                    self.made[id(tensor)] = tensor
        return result

    def _off(self, value: Any, terms: int) -> Any:
        if not isinstance(value, torch.Tensor) or not value.is_floating_point() or value.device.type == "meta":
            return value
        size = self.stored if id(value) in self.made else self.summed
        if terms > 1:
            size += self.summed * (1.0 + IN_ORDER * min(terms, MAX_TERMS) ** 0.5)
        return self._uniform(value, size).add_(1.0).mul_(value)

    def _moved(self, place: torch.Tensor) -> torch.Tensor:
        return self._uniform(place, self.summed).mul_(place.abs() + 1.0).add_(place)

    def _weights(self, part: torch.Tensor) -> list[torch.Tensor]:
        exact = formulas_images.cubic_weights(part)
        return [w + self._uniform(w, self.summed * size) for w, size in zip(exact, TERMS)]

    def _shortened(self, base: str, args: list[Any]) -> list[Any]:
        """Operands with TF32 factors; what is added to the product keeps its bits."""
        first = 1 if base in ADDED_TO else 0

        def short(value: torch.Tensor) -> torch.Tensor:
            return to_tf32(value) if self.nearest else self._uniform(value, TF32_RMS).add_(1.0).mul_(value)

        factors = [short(a) if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args[first : first + 2]]
        return [*args[:first], *factors, *args[first + 2 :]]

    def _uniform(self, like: torch.Tensor, size: float) -> torch.Tensor:
        """Random numbers of that root mean square."""
        noise = torch.rand(like.shape, generator=self.generator, dtype=like.dtype, device=like.device)
        return noise.sub_(0.5).mul_(2.0 * UNIFORM * size)

    def _signs(self, like: torch.Tensor, size: float) -> torch.Tensor:
        """Of that magnitude, up or down: where nothing else adds to it, a few runs must not find an element without noise."""
        return self._uniform(like, size).sign_().mul_(size)


def _difference(off: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    return torch.nan_to_num(off - exact, 0.0, 0.0, 0.0)


def to_tf32(value: torch.Tensor) -> torch.Tensor:
    fraction, exponent = torch.frexp(value)
    return torch.ldexp(torch.round(fraction * 2.0**TF32_BITS) / 2.0**TF32_BITS, exponent)


def short_factors(products: bool, convolutions: bool) -> frozenset[str]:
    """Operators whose factors may be TF32."""
    return (PRODUCTS - CONVOLUTIONS if products else frozenset()) | (CONVOLUTIONS if convolutions else frozenset())


def _parts_of_difference(base: str, args: Any, rstd: torch.Tensor) -> torch.Tensor:
    """x w / sigma of a result (x - mean) w / sigma: what the subtraction is rounded by, in roundoffs. `rstd`: as the operator
    gives it out; nothing where it normalizes by numbers that it was given."""
    x, weight = args[0], args[2] if base == "native_layer_norm" else args[1]
    if rstd.numel() == 0:
        return torch.zeros_like(x)
    if base == "native_group_norm":  # (N, groups)
        scaled = (x.reshape(*rstd.shape, -1) * rstd[..., None]).reshape(x.shape)
    elif base == "native_layer_norm":  # (..., 1)
        scaled = x * rstd
    else:  # (channels)
        scaled = x * _by_channel(rstd, x)
    if weight is None:
        return scaled
    return scaled * (weight if base == "native_layer_norm" else _by_channel(weight, x))


def _by_channel(values: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return values.reshape(1, -1, *[1] * (like.dim() - 2))


def longest_sums(graph: Graph) -> dict[str, int]:
    """For every operator's name, the most terms it adds up anywhere in the graph."""
    terms: dict[str, int] = {}
    for _, node in graph.operators():
        terms[node.name.rstrip("_")] = max(terms.get(node.name.rstrip("_"), 1), reduction_length(graph.nodes, node))
    return terms


def stored_roundoff(graph: Graph) -> float:
    """Of the narrowest type a result is kept in between two operators."""
    types = [part["dtype"] for _, node in graph.operators() for part in node.parts]
    return max((ROUNDOFF[t] for t in types if t in ROUNDOFF), default=2.0**-24)


def runs_for(elements: int, more: bool = False) -> int:
    return (RUNS_SMALL if elements <= SMALL else RUNS) * (MORE if more else 1)
