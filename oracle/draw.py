# SPDX-License-Identifier: Apache-2.0
"""Draw inputs from a secret seed: the task's own, or other distributions with the same structure.

1. A draw depends only on the seed, never on an earlier draw.
2. Structure seen by facts.py survives; integers, flags and inputs of few values are always the task's own.
3. `mixed` is what is timed, and one of the draws of the test: the task's own, with a few rows of `normal` where the input
   bears them, and low bits biased in one direction (lean()). A kernel that uses less than the type's precision on inputs that look like
   the timed ones is wrong there, however it samples its inputs to decide.
4. `normal`, `wide` and `zeros` have what random numbers seldom have: extremes at the ends of lines, equal elements, whole
   numbers and halves (ends.py). `zeros` has a few infinities too, in inputs whose rows meet no others on the way to the outputs: each of them spoils at most
   its own row. compare.py's forgive() defines what an answer to them must satisfy.
5. `beyond` leaves an input's domain in a few rows: where the reference is NaN, a kernel's result must be NaN, too.
6. Parameters come from the model's own initialisation under the seed. Outside of `task`, a parameter that starts constant
   (a bias of zeros, a weight of ones) gets other values, so that a kernel that ignores it is detected.
"""

from __future__ import annotations

import hashlib
import math

import torch

from . import fused
from .ends import clear_some, reach_ends, round_some
from .facts import Known
from .fault import use

CHANGED = 1 / 1024  # of a draw that is nearly the one before
FEW_ROWS = 256
WIDEST = 2.0**15  # in reach of f16: a product split into 16-bit parts must stay possible
DISTRIBUTIONS = ("task", "normal", "wide", "small", "zeros", "mixed", "beyond")
MIXED = 1 / 8  # of the rows of a mixed draw
BEYOND = 1 / 64  # of the elements, where there are few rows
INFINITIES = 16  # of an input, at most
LOW_BITS = 13  # of an fp32 number, that TF32 and the 16-bit types do not have


def seed_number(seed: str) -> int:
    return int.from_bytes(hashlib.sha256(seed.encode()).digest()[:7], "big")


def check_distribution(name: str) -> str:
    name = {"with-zeros": "zeros"}.get(name, name)
    if name not in DISTRIBUTIONS:
        raise use(f"no distribution {name!r}", "one of: " + ", ".join(DISTRIBUTIONS))
    return name


def free(tensor: torch.Tensor, known: Known) -> bool:
    """May it have values other than the task's?"""
    return (
        tensor.is_floating_point() and not known.few_values and known.domain != "task" and tensor.numel() > 0
    )


def redraw(tensor: torch.Tensor, known: Known, distribution: str, generator: torch.Generator) -> torch.Tensor:
    """`tensor`'s shape, strides and structure with values of another distribution."""
    if distribution == "task" or not free(tensor, known):
        return tensor
    if distribution == "mixed":
        return _mixed(tensor, known, generator)
    if distribution == "beyond":
        return _beyond(tensor, known, generator)
    if known.no_ties and distribution == "zeros":
        distribution = "normal"
    values = _values(tensor.shape, known, distribution, tensor.dtype, generator)
    if not known.structured():
        if distribution == "zeros" and known.domain == "any" and known.factors <= 1:
            round_some(values, generator)
        if distribution in ("normal", "wide", "zeros"):
            reach_ends(values, "normal" if known.no_ties else distribution, generator)
    # No zero has a sign: PyTorch does not promise which of two zeros a maximum or a clamp gives, and one divided by it is
    # another infinity.
    values.add_(0.0)
    if known.unit_rows:
        values = values.abs() + 1e-6
        values = values / values.sum(-1, keepdim=True)
    if known.symmetric:
        values = torch.triu(values) + torch.triu(values, 1).mT
    if known.upper:
        values = torch.triu(values)
    if known.lower:
        values = torch.tril(values)
    if distribution == "zeros" and bears_infinities(known):
        _place_infinities(values, generator)
    if distribution == "zeros" and known.zero_rows and not known.structured():
        clear_some(values, generator)
    values = values.to(tensor.dtype)
    if tensor.is_contiguous():
        return values
    span = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    placed = torch.as_strided(
        torch.zeros(span, dtype=tensor.dtype, device=tensor.device), tensor.shape, tensor.stride()
    )
    if 0 in tensor.stride():  # an expanded input repeats itself: take one of the copies
        index = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in tensor.stride())
        placed[index].copy_(values[index])
    else:
        placed.copy_(values)
    return placed


def bears_infinities(known: Known) -> bool:
    return known.rows_apart and known.domain == "any" and not known.few_values and not known.structured()


def _place_infinities(values: torch.Tensor, generator: torch.Generator) -> None:
    """Puts a few infinities of either sign in at most one row of eight."""
    rows, device = values.shape[0], generator.device
    count = min(INFINITIES, values.numel() // 64)
    if rows < 8 or not count:
        return
    few = torch.randint(rows, (min(rows // 8, count),), generator=generator, device=device)
    row = few[torch.randint(len(few), (count,), generator=generator, device=device)]
    column = torch.randint(values.numel() // rows, (count,), generator=generator, device=device)
    sign = 1.0 - 2.0 * (torch.arange(count, device=device) % 2)
    values.view(rows, -1)[row, column] = (sign * math.inf).to(values.dtype)


def _mixed(tensor: torch.Tensor, known: Known, generator: torch.Generator) -> torch.Tensor:
    """A few rows of another distribution among the task's own: sums over them cancel, and show what positive inputs hide."""
    if known.domain != "any" or known.structured() or tensor.dim() < 2 or 0 in tensor.stride():
        return tensor
    mask = torch.rand(tensor.shape[:-1], generator=generator, device=tensor.device) < MIXED
    if mask.numel() < 1 / MIXED:
        return tensor
    mask.reshape(-1)[torch.randint(mask.numel(), (1,), generator=generator, device=tensor.device)] = True
    other = redraw(tensor, known, "normal", generator)
    made = tensor.clone()
    made.copy_(torch.where(mask.unsqueeze(-1), other, tensor))
    return made


def leaves_domain(known: Known) -> bool:
    """Are there values that the other distributions never draw?"""
    return known.domain in ("positive", "range") and not known.few_values and not known.structured()


def _beyond(tensor: torch.Tensor, known: Known, generator: torch.Generator) -> torch.Tensor:
    """The task's own, with a few rows (elements, where there are few rows) of either sign and as large again as the largest."""
    if not leaves_domain(known) or tensor.dim() == 0 or 0 in tensor.stride():
        return tensor
    by_rows = tensor.numel() // tensor.shape[-1] >= 1 / MIXED
    shape, share = (tensor.shape[:-1], MIXED) if by_rows else (tensor.shape, BEYOND)
    mask = torch.rand(shape, generator=generator, device=tensor.device) < share
    mask.reshape(-1)[torch.randint(mask.numel(), (1,), generator=generator, device=tensor.device)] = True
    largest = max(abs(known.low), abs(known.high))
    other = torch.randn(tensor.shape, generator=generator, device=tensor.device).mul_(largest).to(tensor.dtype)
    made = tensor.clone()
    made.copy_(torch.where(mask.unsqueeze(-1) if by_rows else mask, other, tensor))
    return made


def lean(tensor: torch.Tensor, known: Known, up: bool) -> torch.Tensor:
    """The same numbers to within the precision of TF32, but all of them below (`up`: above) the middle between two numbers of
    that precision: rounding them to it, or to any other narrow type, is then an error that does not average out
    over a long sum. Order, signs, zeros, equal values and whole numbers stay."""
    if tensor.dtype != torch.float32 or not free(tensor, known) or known.unit_rows or 0 in tensor.stride():
        return tensor
    begin = (1 << LOW_BITS) * (23 if up else 2) // 40  # [0.05, 0.425) or [0.575, 0.95)
    made = fused.leaned(tensor, LOW_BITS, begin, _move_low_bits)
    return _move_low_bits(tensor, LOW_BITS, begin) if made is None else made


def _move_low_bits(tensor: torch.Tensor, low_bits: int, begin: int) -> torch.Tensor:
    made = tensor.clone()
    bits = made.view(torch.int32)
    low = bits & ((1 << low_bits) - 1)
    window = (low * 3 >> 3) + begin
    moved = (low != 0) & torch.isfinite(made)
    bits.add_(torch.where(moved, window - low, torch.zeros_like(low)))
    return made


def nearly(tensor: torch.Tensor, fresh: torch.Tensor, known: Known, generator: torch.Generator) -> torch.Tensor:
    """`tensor` with a few rows (elements, where there are few rows) of another draw: a candidate that remembers answers by
    a few elements takes it for the same."""
    if tensor.numel() == 0 or tensor.dim() == 0 or known.symmetric or 0 in tensor.stride():
        return tensor
    by_rows = known.unit_rows or tensor.numel() // tensor.shape[-1] >= FEW_ROWS
    shape = tensor.shape[:-1] if by_rows else tensor.shape
    mask = torch.rand(shape, generator=generator, device=tensor.device) < CHANGED
    mask.reshape(-1)[torch.randint(mask.numel(), (1,), generator=generator, device=tensor.device)] = True
    if by_rows:
        mask = mask.unsqueeze(-1)
    if not known.unit_rows and tensor.is_floating_point():
        fresh = torch.maximum(tensor, fresh)  # one way, so that large sums move too
    near = tensor.clone()
    near.copy_(torch.where(mask, fresh, tensor))
    return near


def _values(
    shape: torch.Size, known: Known, distribution: str, dtype: torch.dtype, generator: torch.Generator
) -> torch.Tensor:
    compute = torch.float64 if dtype == torch.float64 else torch.float32
    normal = torch.randn(shape, generator=generator, device=generator.device, dtype=compute)
    if known.domain == "range":
        return _in_range(normal, known, distribution)
    if known.factors > 1:
        return _factors(normal, known, distribution, generator)
    if distribution == "wide":
        spread = 1.0 if dtype == torch.float16 else 2.5
        other = torch.randn(shape, generator=generator, device=generator.device, dtype=compute)
        normal = normal.mul_(other.mul_(spread).exp_()).clamp_(-WIDEST, WIDEST)
    elif distribution == "small":
        normal = normal.mul_(2.0**-10)
    elif distribution == "zeros":
        keep = torch.rand(shape, generator=generator, device=generator.device, dtype=compute) < 0.5
        normal = normal.mul_(keep)
    if known.domain == "positive":
        normal = normal.abs_().add_(2.0**-20)
    return normal


def _factors(normal: torch.Tensor, known: Known, distribution: str, generator: torch.Generator) -> torch.Tensor:
    """Numbers near one, of both signs where that is allowed: a product of many neither vanishes nor overflows, and so the last
    of a long row tells as much as the first. With zeros, one row in two or three has one."""
    spread = {"wide": 3.0, "small": 0.5}.get(distribution, 1.5) / known.factors**0.5
    made = normal.mul_(spread).exp_()
    dice = torch.rand(normal.shape, generator=generator, device=generator.device, dtype=normal.dtype)
    if known.domain == "any":
        made = torch.where(dice < 0.5, -made, made)
    if distribution == "zeros" and known.domain == "any":
        made = torch.where((dice * 2 % 1) * known.factors < 0.5, torch.zeros_like(made), made)
    return made


def _in_range(normal: torch.Tensor, known: Known, distribution: str) -> torch.Tensor:
    """Values between the lowest and highest the task was seen to draw."""
    unit = torch.sigmoid(normal * (4.0 if distribution == "wide" else 1.0))
    if distribution == "small":
        unit = unit * 2.0**-10
    values = known.low + (known.high - known.low) * unit
    if distribution == "zeros" and known.low <= 0 <= known.high:
        values = values * (unit < 0.5)
    return values.clamp_(known.low, known.high)


def stir_parameters(model: torch.nn.Module, distribution: str, generator: torch.Generator, up: bool) -> None:
    """Gives constant parameters, and running statistics, values a kernel cannot guess; signs stay. Then parameters lean as inputs do."""
    if distribution == "task":
        return
    statistics = [b for name, b in model.named_buffers() if name.endswith(("running_mean", "running_var"))]
    with torch.no_grad():
        for tensor in [*model.parameters(), *statistics]:
            if (
                not tensor.is_floating_point()
                or tensor.numel() == 0
                or bool((tensor != tensor.reshape(-1)[0]).any())
            ):
                continue
            # in fp32: a CPU may have no exponential of 16 bits
            noise = torch.randn(tensor.shape, generator=generator, device=generator.device) * 0.25
            if float(tensor.reshape(-1)[0]) == 0.0:
                tensor.copy_(noise)
            else:
                tensor.copy_(tensor * noise.exp())
        for parameter in model.parameters():
            parameter.copy_(lean(parameter, Known(), up))
