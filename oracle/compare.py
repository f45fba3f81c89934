# SPDX-License-Identifier: Apache-2.0
"""Is this output right, and as accurate as its type allows? Measured against the float64 truth.

Hides numbers only; docs/tasks.md explains them. The output falls into blocks of neighbours (blocks.py). For each element,
err = |got - truth| / (|truth| + scale), where scale is the median magnitude of its own block.

1. Limits come from the arithmetic (unit roundoff, number of terms added up) and from the reference's own error in the
   same block, by its median, whichever is larger: no part of an output hides behind another part's magnitude or noise.
   An answer that is nearer to the truth than the reference passes everywhere.
2. An element beyond these limits is checked against noise.py: the effect of rounding on this element. Where a FEW are beyond
   that as well, against more runs: in a few runs, some element of thousands hardly moves by chance.
3. An element is wrong above its limit. The output is imprecise if the rms error is too large, if the median error of more than PART of
   the blocks is, or if errors are everywhere but none is gross, as with a narrower type. Otherwise bad elements are wrong.
4. NaN and infinity must be where the truth or the reference has them. Where inputs are infinite, less is required: forgive().
5. Work is done in parts, so temporary memory stays bounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Callable, Optional

import torch

from . import fused
from .blocks import divide
from .buffers import pattern_bits
from .pattern import Pattern, describe_errors, describe_place

SLICE = {
    "cpu": 1 << 15,
    "cuda": 1 << 23,
}  # elements at a time; on the CPU just below what torch spreads over threads: a busy core would stall each step
WORST = 8
ELEMENT_FACTOR = 16.0  # times the median of the reference's errors in the block
OWN_FACTOR = 8.0  # times the reference's error in this element
RMS_FACTOR = 8.0  # times the reference's own rms error, or the median of it in the block
NOISE_ELEMENT, NOISE_RMS = 8.0, 4.0  # times the noise of noise.py, which is that of sums made in order
PART = 1 / 64  # of the blocks
FEW = 1 / 256  # of the elements
GROSS = {
    torch.float64: 2.0**-20,
    torch.float32: 2.0**-6,
    torch.float16: 2.0**-3,
    torch.bfloat16: 2.0**-2,
}  # no honest arithmetic is so far off
SPREAD = 0.25  # where more than this part of the elements is off, the errors are not a matter of place
ROUNDOFF = {
    torch.float64: 2.0**-53,
    torch.float32: 2.0**-24,
    torch.float16: 2.0**-11,
    torch.bfloat16: 2.0**-8,
}
TF32 = 2.0**-10  # of a factor, cut rather than rounded
Noise = Optional[Callable[..., Optional[torch.Tensor]]]  # strict=True: of fp32, even where TF32 is allowed
MAX_TERMS = 1 << 16  # no kernel adds more than this one after the other


@dataclass
class Rules:
    """The arithmetic of one task, from its graph."""

    terms: int  # added up for one result, over all operators
    operators: int
    compute: torch.dtype  # sums are made in this type: float32 for 16-bit types
    tf32: bool = False  # factors of float32 products may be TF32
    short: bool = False  # those of the reference are, on a GPU
    computes: tuple[torch.dtype, ...] = ()  # `compute` of each output, where they differ

    def of(self, output: int) -> Rules:
        return replace(self, compute=self.computes[output], computes=()) if self.computes else self

    def strict(self) -> Rules:
        return replace(self, tf32=False)

    def as_fp32(self, reference: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        """What tells fp32 from TF32 beside the truth; errors of TF32 excuse nothing."""
        return truth.to(device=reference.device, dtype=reference.dtype) if self.short else reference

    def roundoff(self, dtype: torch.dtype) -> float:
        return TF32 if self.tf32 and dtype == torch.float32 else ROUNDOFF[dtype]

    def element(self, dtype: torch.dtype) -> float:
        sums = 8 * math.sqrt(min(self.terms, MAX_TERMS)) + 4 * math.sqrt(self.operators)
        # Rounded factors, unlike a rounded result, tell the more the more terms cancel.
        return (8 if self.tf32 else 2) * self.roundoff(dtype) + ROUNDOFF[self.compute] * sums

    def rms(self, dtype: torch.dtype) -> float:
        sums = math.sqrt(min(self.terms, MAX_TERMS)) + 2 * math.sqrt(self.operators)
        return self.roundoff(dtype) + ROUNDOFF[self.compute] * sums


def compare_output(
    name: str,
    got: torch.Tensor,
    reference: torch.Tensor,
    truth: torch.Tensor,
    rules: Rules,
    explain: bool = True,
    noise: Noise = None,
    others: Callable[[], list[torch.Tensor]] | None = None,
    more_noise: Noise = None,
) -> dict[str, Any]:
    """The COMPARISON of one output (docs/architecture.md). `got` is a contiguous view of the candidate's buffer; `noise` gives
    what rounding does to each element (flat), `more_noise` the same from more runs, `others` the answers of integers that are as
    right: asked only when it matters."""
    if not got.dtype.is_floating_point:
        return _compare_exact(name, got, reference, truth, explain, others)
    return _compare_floating(name, got, reference, truth, rules, explain, noise, more_noise)


def _compare_exact(
    name: str,
    got: torch.Tensor,
    reference: torch.Tensor,
    truth: torch.Tensor,
    explain: bool,
    others: Callable[[], list[torch.Tensor]] | None,
) -> dict[str, Any]:
    """Integers and flags: equal to the reference, or to the truth or another answer where rounding decided between them."""
    kind, mark = pattern_bits(got.dtype)
    wanted = reference.to(got.dtype)
    bad = got.view(kind) != wanted.view(kind)
    if truth.dtype == got.dtype:
        bad &= got.view(kind) != truth.view(kind)
    for other in others() if others and truth.dtype == got.dtype and bool(bad.any()) else ():
        bad &= got.view(kind) != other.to(got.device).contiguous().view(kind)
    unwritten = bad & (got.view(kind) == mark)
    distance = torch.where(
        bad, (got.double() - wanted.double()).abs(), torch.zeros((), dtype=torch.float64, device=got.device)
    )
    wrong = int(bad.sum())
    pattern = explained(bad, got, wanted, int(unwritten.sum())) if wrong and explain else Pattern()
    largest = float(distance.max()) if distance.numel() else 0.0
    return {
        "name": name,
        "elements": got.numel(),
        "wrong": wrong,
        "nan": 0,
        "inf": 0,
        "unwritten": int(unwritten.sum()),
        "max_abs": largest,
        "max_rel": 0.0,
        "rms_rel": 0.0,
        "reference_max_abs": 0.0,
        "reference_max_rel": 0.0,
        "reference_rms_rel": 0.0,
        "tolerance": {"rtol": 0.0, "atol": 0.0, "rms": 0.0, "rms_factor": 0.0},
        "imprecise": False,
        "beyond": wrong,
        "class": class_name(got.dtype),
        "worst": worst(distance, got, wanted) if wrong and explain else [],
        "pattern": pattern.text,
        "relation": pattern.relation,
    }


@dataclass
class Limits:
    """The limits of every element of an output, besides those measured in its block."""

    rtol: float  # of |truth| + scale
    rms: float
    floor: float  # the least scale: numbers below are rounded to multiples of it


@dataclass
class Sums:
    """The result of a pass over an output. fused.py's has the same names."""

    excess: torch.Tensor  # f32, flat: error over what is allowed; infinity where a non-finite value is out of place
    beyond: int = 0  # elements with an excess above one
    off: int = 0  # elements with an error above that of honest arithmetic, as a rule
    off_blocks: int = 0  # blocks of which most are off
    blocks: int = 0
    max_abs: float = 0.0
    max_rel: float = 0.0  # finite ones
    square: float = 0.0
    reference_max_rel: float = 0.0
    reference_max_abs: float = 0.0
    reference_square: float = 0.0
    truth_sum: float = 0.0
    truth_square: float = 0.0
    noise_square: float = 0.0
    misplaced: int = 0  # not finite where it should be, or the other way round; of these:
    nan: int = 0
    inf: int = 0
    unwritten: int = 0


def _compare_floating(
    name: str,
    got: torch.Tensor,
    reference: torch.Tensor,
    truth: torch.Tensor,
    rules: Rules,
    explain: bool,
    noise: Noise,
    more_noise: Noise,
) -> dict[str, Any]:
    limits = limits_of(got.dtype, rules)
    sums = measure_quickly(got, reference, truth, limits)
    found = judge(got.numel(), got.dtype, sums, limits)
    known = noise() if noise and (found["beyond"] or found["imprecise"]) else None
    if known is not None:
        sums = measure(got, reference, truth, limits, known)
        found = judge(got.numel(), got.dtype, sums, limits)
        if more_noise and 0 < found["beyond"] <= max(FEW * got.numel(), 1):
            sums = measure(got, reference, truth, limits, more_noise())
            found = judge(got.numel(), got.dtype, sums, limits)
    bad, pattern = found["beyond"] or found["imprecise"], Pattern()
    if found["beyond"] and explain:
        pattern = explained((sums.excess > 1.0).reshape(got.shape), got, truth, sums.unwritten)
    return {
        "name": name,
        "elements": got.numel(),
        **figures(sums),
        **found,
        "class": _class_of(got, reference, truth, rules, noise),
        "worst": worst(sums.excess.reshape(got.shape), got, truth) if explain and bad else [],
        "pattern": pattern.text,
        "relation": pattern.relation,
    }


def class_name(dtype: torch.dtype, as_fp32: bool = True) -> str:
    """The accuracy class of an output: that of its type, or TF32's if it does not meet fp32's limits."""
    if not dtype.is_floating_point:
        return "exact"
    if dtype in (torch.float16, torch.bfloat16):
        return "16-bit"
    return "fp64" if dtype == torch.float64 else "fp32" if as_fp32 else "TF32-class"


def _class_of(
    got: torch.Tensor, reference: torch.Tensor, truth: torch.Tensor, rules: Rules, noise: Noise
) -> str:
    """Where TF32 is allowed, the limits of fp32 decide which of the two it is."""
    if not rules.tf32 or got.dtype != torch.float32:
        return class_name(got.dtype)
    limits = limits_of(got.dtype, rules.strict())
    reference = rules.as_fp32(reference, truth)
    found = judge(got.numel(), got.dtype, measure_quickly(got, reference, truth, limits), limits)
    if found["beyond"] or found["imprecise"]:
        known = noise(strict=True) if noise else None
        if known is not None:
            found = judge(got.numel(), got.dtype, measure(got, reference, truth, limits, known), limits)
    return class_name(got.dtype, not (found["beyond"] or found["imprecise"]))


def limits_of(dtype: torch.dtype, rules: Rules) -> Limits:
    floor = 2.0**-24 if dtype == torch.float16 else float(torch.finfo(dtype).tiny)
    return Limits(rules.element(dtype), rules.rms(dtype), floor)


def measure_quickly(got: torch.Tensor, reference: torch.Tensor, truth: torch.Tensor, limits: Limits) -> Any:
    """By fused.cu where it can."""
    return fused.measure(got, reference, truth, limits, measure) or measure(got, reference, truth, limits)


def figures(sums: Any) -> dict[str, Any]:
    """The sums that a comparison shows as they are."""
    names = "nan inf unwritten max_abs max_rel reference_max_abs reference_max_rel"
    return {name: getattr(sums, name) for name in names.split()}


def judge(elements: int, dtype: torch.dtype, sums: Any, limits: Limits) -> dict[str, Any]:
    """What the sums mean."""
    count = max(elements, 1)
    magnitude = math.sqrt(sums.truth_square / count) + limits.floor
    rms, reference_rms, noise_rms = (
        math.sqrt(square / count) / magnitude for square in (sums.square, sums.reference_square, sums.noise_square)
    )
    rms_limit = max(RMS_FACTOR * reference_rms, limits.rms, NOISE_RMS * noise_rms)
    if reference_rms > 1:  # nothing but noise
        rms_limit = math.inf
    gross = max(GROSS[dtype], limits.rtol)
    spread_out = 0 < sums.beyond and sums.off > SPREAD * count and sums.max_rel <= gross and not sums.misplaced
    wrong = 0 if spread_out else sums.beyond
    blurred = sums.off_blocks > PART * sums.blocks
    return {
        "wrong": wrong,
        "rms_rel": rms,
        "reference_rms_rel": reference_rms,
        "tolerance": {
            "rtol": limits.rtol,
            "atol": limits.rtol * sums.truth_sum / count,
            "rms": rms_limit,
            "rms_factor": RMS_FACTOR,
        },
        "imprecise": spread_out or (wrong == 0 and (blurred or not rms <= rms_limit)),
        "beyond": sums.beyond,
    }


def measure(
    got: torch.Tensor,
    reference: torch.Tensor,
    truth: torch.Tensor,
    limits: Limits,
    noise: torch.Tensor | None = None,
) -> Sums:
    """By torch, part by part. `noise`: of each element, or None where it was not asked for."""
    flat_got, flat_ref, flat_truth = (t.contiguous().reshape(-1) for t in (got, reference, truth))  # the truth may be the host's
    sums = Sums(torch.empty(got.numel(), dtype=torch.float32, device=got.device))
    kind, mark = pattern_bits(got.dtype)
    largest = float(torch.finfo(got.dtype).max)
    division = divide(got.shape)
    sums.blocks = division.blocks
    for part in division.parts(SLICE[got.device.type]):
        raw = part.take(flat_got)
        wide, ref, real = raw.double(), part.take(flat_ref).double(), part.take(flat_truth).to(got.device).double()
        off, ref_off, size = wide.sub(real).abs_(), ref.sub(real).abs_(), real.abs()
        if not bool(torch.isfinite(off.sum() + ref_off.sum())):
            _settle_non_finite(sums, raw, wide, ref, real, off, ref_off, got.dtype, kind, mark)
            size = torch.where(torch.isfinite(size), size, torch.zeros_like(size))
        # A value that is not finite, or overflows in this type, or is 0 in fused.py's 32 bits, must not set the scale
        # of its neighbours.
        counted = torch.where(size > largest, torch.zeros_like(size), size)
        counted = counted if got.dtype == torch.float64 else counted.float().double()
        scale = part.median(counted, count_zeros=False)
        usual = part.median(ref_off, count_zeros=True)
        # Below the reference's noise there is nothing to be hidden, and noise may be of any shape.
        usual = torch.where(scale < usual, ref_off.amax(1, keepdim=True), usual)
        weight = size + (scale + limits.floor)
        allowed = torch.maximum(weight * limits.rtol, usual * ELEMENT_FACTOR)
        allowed = torch.maximum(allowed, ref_off * OWN_FACTOR)
        honest = torch.maximum(weight * limits.rms, usual * RMS_FACTOR)
        if noise is not None:
            here = part.take(noise).double()
            steady = torch.maximum(here, part.median(here, count_zeros=True))
            allowed = torch.maximum(allowed, steady * NOISE_ELEMENT)
            honest = torch.maximum(honest, steady * NOISE_RMS)
            sums.noise_square += float(here.square().sum())
        _add_up(sums, off, ref_off, size, weight)
        far = off > honest
        sums.off += int(far.sum())
        sums.off_blocks += int((2 * far.sum(1) > part.sizes(far)).sum())
        # NaN counts as beyond the limit, so that a failed comparison cannot pass.
        excess = torch.where(off == 0, off, off / allowed)
        excess[torch.isnan(excess)] = math.inf
        sums.beyond += int((excess > 1.0).sum())
        part.put(sums.excess, excess.float())
    return sums


def _add_up(
    sums: Sums, off: torch.Tensor, ref_off: torch.Tensor, size: torch.Tensor, weight: torch.Tensor
) -> None:
    finite = torch.where(torch.isfinite(off), off, torch.zeros_like(off))
    sums.max_abs = max(sums.max_abs, float(finite.max()))
    sums.max_rel = max(sums.max_rel, float((finite / weight).max()))
    sums.square += float(finite.square().sum())
    sums.reference_max_abs = max(sums.reference_max_abs, float(ref_off.max()))
    sums.reference_max_rel = max(sums.reference_max_rel, float((ref_off / weight).max()))
    sums.reference_square += float(ref_off.square().sum())
    sums.truth_sum += float(size.sum())
    sums.truth_square += float(size.square().sum())


def explained(bad: torch.Tensor, got: torch.Tensor, truth: torch.Tensor, unwritten: int) -> Pattern:
    """Where the errors are; what was never written comes first, since the rest may follow from it."""
    bad, got = bad.to(truth.device), got.to(truth.device)
    kind, mark = pattern_bits(got.dtype)
    if not unwritten:
        return describe_errors(bad, got, truth)
    missing = bad & (got.view(kind) == mark)
    if not bool(missing.any()):  # a candidate that said it was done may still be writing
        return describe_errors(bad, got, truth)
    rest = bad & ~missing
    text = f"never written: {describe_place(missing)}"
    return Pattern(f"{text}; wrong besides: {describe_place(rest)}" if bool(rest.any()) else text)


def _settle_non_finite(
    sums: Sums,
    raw: torch.Tensor,
    got: torch.Tensor,
    ref: torch.Tensor,
    real: torch.Tensor,
    off: torch.Tensor,
    ref_off: torch.Tensor,
    dtype: torch.dtype,
    kind: torch.dtype,
    mark: int,
) -> None:
    """Where anything is not finite, `off` becomes 0 (as it should be) or infinity (out of place). Where the reference itself
    overflows, its value or the true one is right. The mark of an unwritten element is a NaN too, and no answer anywhere."""
    largest = float(torch.finfo(dtype).max)
    rounded = torch.where(real.abs() > largest, torch.sign(real) * math.inf, real)
    got_nan, got_inf = torch.isnan(got), torch.isinf(got)
    right = (got_nan & (torch.isnan(ref) | torch.isnan(real))) | (got_inf & ((got == ref) | (got == rounded)))
    right |= ~got_nan & ~got_inf & (got == ref)  # finite, as the reference, where the truth is not
    unwritten = raw.view(kind) == mark
    right &= ~unwritten
    odd = (got_nan | got_inf | ~torch.isfinite(rounded)) & ~torch.isfinite(got.abs() + ref.abs() + real.abs())
    off[odd & right] = 0.0
    off[odd & ~right] = math.inf
    misplaced = odd & ~right
    sums.misplaced += int(misplaced.sum())
    sums.unwritten += int((unwritten & misplaced).sum())
    sums.nan += int((got_nan & misplaced & ~unwritten).sum())
    sums.inf += int((got_inf & misplaced).sum())
    ref_off[~torch.isfinite(ref_off)] = 0.0


def forgive(got: torch.Tensor, reference: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """`got`, a copy of ours, with the reference's answer where infinite inputs leave more than one right: NaN beside an infinity
    (a product made of parts), and anything that was written where the reference has NaN, or float64 and its own type are
    not of one mind."""
    largest = float(torch.finfo(got.dtype).max)
    flat, wanted, real = (t.contiguous().reshape(-1) for t in (got, reference, truth.to(got.device)))
    places = (~(torch.isfinite(wanted) & (real <= largest) & (real >= -largest))).nonzero().reshape(-1)
    if not places.numel():
        return got
    kind, mark = pattern_bits(got.dtype)
    said, own, real = flat[places], wanted[places], real[places].double()
    rounded = torch.where(real.abs() > largest, torch.sign(real) * math.inf, real)
    free = ((own.double() != rounded) | torch.isnan(said)) & (said.view(kind) != mark)
    flat[places] = torch.where(free, own, said)
    return flat.reshape(got.shape)


def worst(err: torch.Tensor, got: torch.Tensor, wanted: torch.Tensor) -> list[dict[str, Any]]:
    """The elements that are furthest off, with where they are."""
    flat = torch.nan_to_num(err.reshape(-1), nan=math.inf, posinf=torch.finfo(torch.float32).max)
    if flat.numel() == 0:
        return []
    values, places = torch.topk(flat, min(WORST, flat.numel()))
    flat_got, flat_wanted = got.reshape(-1), wanted.contiguous().reshape(-1)
    found = []
    for value, place in zip(values.tolist(), places.tolist()):
        if value > 0:
            found.append(
                {
                    "index": _index(place, got.shape),
                    "expected": _number(flat_wanted[place]),
                    "got": _number(flat_got[place]),
                }
            )
    return found


def _index(place: int, shape: torch.Size) -> list[int]:
    index = []
    for size in reversed(shape):
        index.append(place % size)
        place //= size
    return index[::-1]


def _number(value: torch.Tensor) -> Any:
    """JSON has no NaN: writes such numbers as strings."""
    number = value.item()
    return (
        number
        if not isinstance(number, float) or math.isfinite(number)
        else {True: "nan"}.get(math.isnan(number), "inf" if number > 0 else "-inf")
    )


def passes(comparison: dict[str, Any]) -> bool:
    return comparison["wrong"] == 0 and not comparison["imprecise"] and comparison["unwritten"] == 0
