# SPDX-License-Identifier: Apache-2.0
"""Formulas of special functions. Those with loops are device functions of recipes/special.cuh, called by name.

Accuracy: zeta, polygamma from 2 on and the incomplete gamma functions are summed in double and rounded once; digamma and
trigamma are of their type, a few units in the last place off, beside a zero of theirs a few units of the terms that cancel.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from .formulas_sort import primitive

INF = math.inf


def _call(name: str, *tensors: Any) -> Any:
    """A device function of tensors that are broadcast against each other."""
    shape = torch.broadcast_shapes(*[t.shape for t in tensors])
    dtype = tensors[0].dtype if tensors[0].dtype.is_floating_point else torch.float32
    for t in tensors[1:]:
        dtype = torch.promote_types(dtype, t.dtype)
    return primitive(f"generic.special_{name}", list(tensors), {}, shape, dtype)


def _tensor(value: Any, like: Any) -> Any:
    return value if isinstance(value, torch.Tensor) else torch.full_like(like, value)


def digamma(x: Any) -> Any:
    return _call("digamma", x)


def polygamma(order: Any, x: Any) -> Any:
    """ATen names the order first; x.polygamma(n) does not."""
    if isinstance(order, torch.Tensor):
        order, x = x, order
    if order == 0:
        return digamma(x)
    if order == 1:
        return _call("trigamma", x)
    factor = math.factorial(order) * (1 if order % 2 else -1)
    return zeta(float(order + 1), x) * float(factor)


def zeta(x: Any, q: Any) -> Any:
    like = x if isinstance(x, torch.Tensor) else q
    return _call("zeta", _tensor(x, like), _tensor(q, like))


def igamma(a: Any, x: Any) -> Any:
    return _call("igamma", a, x)


def igammac(a: Any, x: Any) -> Any:
    return _call("igammac", a, x)


def _far_from(x: Any) -> float:
    """Where six terms are enough for the type."""
    return 600.0 if x.dtype == torch.float64 else 20.0


def _scaled_bessel(x: Any, first: Any, series: list[float]) -> Any:
    """exp(-|x|) I(x): from the function itself as far as it goes, then by its asymptotic series in 1 / x."""
    size, far_from = torch.abs(x), _far_from(x)
    near = first(torch.clamp(x, -far_from, far_from)) * torch.exp(-size)
    far = torch.full_like(size, series[-1])
    for factor in series[-2::-1]:
        far = far / torch.clamp(size, min=1.0) + factor
    far = far * torch.rsqrt(torch.clamp(size, min=1.0) * (2 * math.pi))
    return torch.where(size <= far_from, near, far)


def i0e(x: Any) -> Any:
    return _scaled_bessel(x, torch.i0, [1, 1 / 8, 9 / 128, 225 / 3072, 11025 / 98304, 893025 / 3932160])


def i1e(x: Any) -> Any:
    series = [1, -3 / 8, -15 / 128, -315 / 3072, -14175 / 98304, -1091475 / 3932160]
    made = _scaled_bessel(x, torch.special.i1, series)
    return torch.where(x < -_far_from(x), -made, made)


def entr(x: Any) -> Any:
    inside = torch.where(x > 0, -x * torch.log(x), torch.where(x == 0, torch.zeros_like(x), torch.full_like(x, -INF)))
    return torch.where(torch.isnan(x), x, inside)


def xlog1py(x: Any, y: Any) -> Any:
    like = x if isinstance(x, torch.Tensor) else y
    x, y = _tensor(x, like), _tensor(y, like)
    return torch.where(torch.isnan(y), y, torch.where(x == 0, torch.zeros_like(x), x * torch.log1p(y)))


def ndtr(x: Any) -> Any:
    return 0.5 * torch.erfc(x * -math.sqrt(0.5))


def log_ndtr(x: Any) -> Any:
    t = x * math.sqrt(0.5)
    low = torch.log(torch.special.erfcx(-t) * 0.5) - t * t
    return torch.where(x < -1, low, torch.log1p(-0.5 * torch.erfc(t)))


def logaddexp2(x: Any, y: Any) -> Any:
    most = torch.maximum(x, y)
    apart = torch.log2(1 + torch.exp2(-torch.abs(x - y)))
    return torch.where((x == y) & (torch.abs(x) == INF), x, most + apart)


def mvlgamma(x: Any, p: int) -> Any:
    """The multivariate one: a sum of p of the common kind."""
    total = torch.lgamma(x) + p * (p - 1) / 4 * math.log(math.pi)
    for k in range(1, p):
        total = total + torch.lgamma(x - k / 2)
    return total
