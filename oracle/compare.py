"""Is this output right, and as accurate as its type allows? Measured against the float64 truth.

Hides numbers only; docs/tasks.md explains them. For each element, err = |got - truth| / (|truth| + scale), where scale is the
mean magnitude of the output.

1. Limits come from the arithmetic (unit roundoff, number of terms added up) and from the reference's own error, whichever is larger:
   an answer that is nearer to the truth than the reference always passes.
2. An element is bad above `rtol`; the whole is imprecise when its rms error is above `rms`, or when the errors are
   everywhere but none is gross: that is what a narrower type looks like. Bad elements otherwise are wrong.
3. NaN and infinity must be where the truth or the reference has them.
4. Work is done in slices, so temporary memory stays bounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Iterator

import torch

from . import fused
from .buffers import pattern_bits
from .pattern import describe_errors, describe_place

SLICE = {
    "cpu": 1 << 15,
    "cuda": 1 << 25,
}  # elements at a time; on the CPU just below what torch spreads over threads: a busy core would stall each step
WORST = 8
ELEMENT_FACTOR = 16.0  # times the reference's own worst error
RMS_FACTOR = 8.0  # times the reference's own rms error
GROSS = {
    "f64": 2.0**-20,
    "f32": 2.0**-6,
    "f16": 2.0**-3,
    "bf16": 2.0**-2,
}  # no honest arithmetic is so far off
SPREAD = 0.25  # where more than this part of the elements is off, the errors are not a matter of place
ROUNDOFF = {
    torch.float64: 2.0**-53,
    torch.float32: 2.0**-24,
    torch.float16: 2.0**-11,
    torch.bfloat16: 2.0**-8,
}
TF32 = 2.0**-10  # of a factor, cut rather than rounded
MAX_TERMS = 1 << 16  # nobody adds up more than this one after the other


@dataclass
class Rules:
    """What the graph says about the arithmetic of one task."""

    terms: int  # added up for one result, over all operators
    operators: int
    compute: torch.dtype  # sums are made in this type: float32 for 16-bit types
    tf32: bool = False  # factors of float32 products may be TF32

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
) -> dict[str, Any]:
    """The COMPARISON of one output (docs/architecture.md). `got` is a contiguous view of the candidate's buffer."""
    if not got.dtype.is_floating_point:
        return _compare_exact(name, got, reference, truth, explain)
    return _compare_floating(name, got, reference, truth, rules, explain)


def _compare_exact(
    name: str, got: torch.Tensor, reference: torch.Tensor, truth: torch.Tensor, explain: bool
) -> dict[str, Any]:
    """Integers and flags: equal to the reference, or to the truth where rounding decided between them."""
    kind, mark = pattern_bits(got.dtype)
    wanted = reference.to(got.dtype)
    bad = got.view(kind) != wanted.view(kind)
    if truth.dtype == got.dtype:
        bad &= got.view(kind) != truth.view(kind)
    unwritten = bad & (got.view(kind) == mark)
    distance = torch.where(
        bad, (got.double() - wanted.double()).abs(), torch.zeros((), dtype=torch.float64, device=got.device)
    )
    wrong = int(bad.sum())
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
        "worst": _worst(distance, got, wanted) if wrong and explain else [],
        "pattern": _explain(bad, got, wanted, int(unwritten.sum())) if wrong and explain else "",
    }


@dataclass
class _Sums:
    """What one pass over an output finds."""

    err: (
        torch.Tensor
    )  # f32, flat: relative error of each element; infinity where a non-finite value is out of place
    max_abs: float = 0.0
    square: float = 0.0
    reference_max: float = 0.0
    reference_max_abs: float = 0.0
    reference_square: float = 0.0
    nan: int = 0
    inf: int = 0
    unwritten: int = 0


def _slices(tensor: torch.Tensor) -> Iterator[slice]:
    step = SLICE[tensor.device.type]
    for start in range(0, tensor.numel(), step):
        yield slice(start, min(start + step, tensor.numel()))


def _compare_floating(
    name: str, got: torch.Tensor, reference: torch.Tensor, truth: torch.Tensor, rules: Rules, explain: bool
) -> dict[str, Any]:
    flat_got, flat_ref, flat_truth = (
        got.reshape(-1),
        reference.contiguous().reshape(-1),
        truth.contiguous().reshape(-1),
    )
    floor = 2.0**-24 if got.dtype == torch.float16 else float(torch.finfo(got.dtype).tiny)
    measured = fused.measure(flat_got, flat_ref, flat_truth, floor, _by_torch)
    if measured:
        scale, rms_truth, sums = measured.scale, measured.rms_truth, measured
    else:
        scale, rms_truth, sums = _by_torch(flat_got, flat_ref, flat_truth, floor)
    count = max(flat_got.numel(), 1)
    rms = math.sqrt(sums.square / count) / (rms_truth + floor)
    reference_rms = math.sqrt(sums.reference_square / count) / (rms_truth + floor)
    rtol = max(ELEMENT_FACTOR * sums.reference_max, rules.element(got.dtype))
    rms_limit = max(RMS_FACTOR * reference_rms, rules.rms(got.dtype))
    if measured:
        beyond, off_limit, largest = measured.above(rtol, rms_limit)
    else:
        beyond, off_limit = int((sums.err > rtol).sum()), int((sums.err > rms_limit).sum())
        largest = float(sums.err.max()) if sums.err.numel() else 0.0
    gross = GROSS[
        {torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}[got.dtype]
    ]
    largest_finite = (
        largest if math.isfinite(largest) else float(torch.nan_to_num(sums.err, posinf=0.0).max())
    )
    everywhere = off_limit > SPREAD * count
    spread_out = beyond > 0 and everywhere and largest <= max(gross, rtol)
    wrong = 0 if spread_out else beyond
    imprecise = spread_out or (wrong == 0 and not rms <= rms_limit)
    return {
        "name": name,
        "elements": flat_got.numel(),
        "wrong": wrong,
        "nan": sums.nan,
        "inf": sums.inf,
        "unwritten": sums.unwritten,
        "max_abs": sums.max_abs,
        "max_rel": largest_finite,
        "rms_rel": rms,
        "reference_max_abs": sums.reference_max_abs,
        "reference_max_rel": sums.reference_max,
        "reference_rms_rel": reference_rms,
        "tolerance": {"rtol": rtol, "atol": rtol * scale, "rms": rms_limit, "rms_factor": RMS_FACTOR},
        "imprecise": imprecise,
        "beyond": beyond,
        "worst": _worst(sums.err.reshape(got.shape), got, truth) if explain and (beyond or imprecise) else [],
        "pattern": (
            _explain((sums.err > rtol).reshape(got.shape), got, truth, sums.unwritten)
            if beyond and explain
            else ""
        ),
    }


def _by_torch(
    got: torch.Tensor, reference: torch.Tensor, truth: torch.Tensor, floor: float
) -> tuple[float, float, _Sums]:
    """Mean magnitude and root mean square of the truth, and what a pass over the output finds."""
    scale, rms_truth = _magnitude(truth)
    return scale, rms_truth, _pass(got, reference, truth, scale, floor)


def _explain(bad: torch.Tensor, got: torch.Tensor, truth: torch.Tensor, unwritten: int) -> str:
    """Where the errors are; what was never written comes first, since the rest may follow from it."""
    kind, mark = pattern_bits(got.dtype)
    if not unwritten:
        return describe_errors(bad, got, truth)
    missing = bad & (got.view(kind) == mark)
    if not bool(missing.any()):  # a candidate that said it was done may still be writing
        return describe_errors(bad, got, truth)
    rest = bad & ~missing
    text = f"never written: {describe_place(missing)}"
    return f"{text}; wrong besides: {describe_place(rest)}" if bool(rest.any()) else text


def _magnitude(truth: torch.Tensor) -> tuple[float, float]:
    """Mean magnitude and root mean square of the finite elements."""
    total = square = 0.0
    count = 0
    for part in _slices(truth):
        values = truth[part].double().abs()
        peak = float(values.max())
        if not math.isfinite(peak):
            values = values[torch.isfinite(values)]
        total += float(values.sum())
        square += float(values.square().sum())
        count += values.numel()
    return (total / count, math.sqrt(square / count)) if count else (0.0, 0.0)


def _pass(
    got: torch.Tensor, reference: torch.Tensor, truth: torch.Tensor, scale: float, floor: float
) -> _Sums:
    sums = _Sums(torch.empty(got.numel(), dtype=torch.float32, device=got.device))
    kind, mark = pattern_bits(got.dtype)
    for part in _slices(got):
        wide, ref, real = got[part].double(), reference[part].double(), truth[part].double()
        weight = real.abs().add_(scale + floor)
        off = wide.sub(real).abs_()
        ref_off = ref.sub(real).abs_()  # not in place: a float64 reference is not a copy
        worst = float(off.max())  # NaN when anything is
        ref_worst = float(ref_off.max())
        if not (math.isfinite(worst) and math.isfinite(ref_worst)):
            _settle_non_finite(sums, got[part], wide, ref, real, off, ref_off, got.dtype, kind, mark)
            weight = torch.where(torch.isfinite(weight), weight, torch.ones_like(weight))
            finite = torch.where(torch.isfinite(off), off, torch.zeros_like(off))
        else:
            finite = off
        sums.max_abs = max(sums.max_abs, float(finite.max()))
        sums.square += float(torch.dot(finite, finite))
        sums.reference_max_abs = max(sums.reference_max_abs, float(ref_off.max()))
        sums.reference_square += float(torch.dot(ref_off, ref_off))
        sums.err[part] = off.div_(weight)
        sums.reference_max = max(sums.reference_max, float(ref_off.div_(weight).max()))
    return sums


def _settle_non_finite(
    sums: _Sums,
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
    overflows, its value or the true one is right."""
    largest = float(torch.finfo(dtype).max)
    rounded = torch.where(real.abs() > largest, torch.sign(real) * math.inf, real)
    got_nan, got_inf = torch.isnan(got), torch.isinf(got)
    right = (got_nan & (torch.isnan(ref) | torch.isnan(real))) | (got_inf & ((got == ref) | (got == rounded)))
    right |= ~got_nan & ~got_inf & (got == ref)  # finite, as the reference, where the truth is not
    odd = got_nan | got_inf | ~torch.isfinite(rounded)
    off[odd & right] = 0.0
    off[odd & ~right] = math.inf
    misplaced = odd & ~right
    unwritten = raw.view(kind) == mark
    sums.unwritten += int((unwritten & misplaced).sum())
    sums.nan += int((got_nan & misplaced & ~unwritten).sum())
    sums.inf += int((got_inf & misplaced).sum())
    ref_off[~torch.isfinite(ref_off)] = 0.0


def _worst(err: torch.Tensor, got: torch.Tensor, wanted: torch.Tensor) -> list[dict[str, Any]]:
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
    """JSON has no NaN: those are words."""
    number = value.item()
    return (
        number
        if not isinstance(number, float) or math.isfinite(number)
        else {True: "nan"}.get(math.isnan(number), "inf" if number > 0 else "-inf")
    )


def passes(comparison: dict[str, Any]) -> bool:
    return comparison["wrong"] == 0 and not comparison["imprecise"] and comparison["unwritten"] == 0
