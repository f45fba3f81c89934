# SPDX-License-Identifier: Apache-2.0
"""Complex numbers between real tensors, as pairs of real ones; Fourier transforms as products with tables.

Kernels have no complex types. A real value computed from complex ones (abs, real, an inverse transform) gets a body that
begins at the last real tensors before it; the complex nodes between them are left out of the description.

A transform of n points is a product with a table of n columns up to LEAF points and for primes, and otherwise two
transforms of its factors with a rotation between them, so its work is n times the sum of n's factors.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch

from .formulas_images import wide

LEAF = 64
MOST_PRIME = 4096  # points of a transform that has no factors
NONE, BY_ROOT, BY_N = 0, 1, 2  # how ATen numbers norms


class Pair(NamedTuple):
    re: Any
    im: Any


def pair(value: Any) -> Pair:
    """A pair; of a real tensor or number the imaginary part is 0."""
    if isinstance(value, Pair):
        return value
    if isinstance(value, torch.Tensor):
        value = value if value.dtype.is_floating_point else value.float()
        return Pair(value, torch.zeros_like(value))
    number = complex(value)
    return Pair(number.real, number.imag)


# ---- arithmetic ---------------------------------------------------------------------------------------------


def _add(x: Any, y: Any, *, alpha: Any = 1) -> Pair:
    a, b = pair(x), pair(y)
    return Pair(a.re + b.re * alpha, a.im + b.im * alpha)


def _sub(x: Any, y: Any, *, alpha: Any = 1) -> Pair:
    return _add(x, y, alpha=-alpha)


def _mul(x: Any, y: Any) -> Pair:
    if isinstance(y, complex):
        y = pair(y)
    if not isinstance(y, Pair):
        return Pair(x.re * y, x.im * y)
    if not isinstance(x, Pair):
        return Pair(x * y.re, x * y.im)
    b = y
    return Pair(x.re * b.re - x.im * b.im, x.re * b.im + x.im * b.re)


def _reciprocal(x: Pair) -> Pair:
    size = x.re * x.re + x.im * x.im
    return Pair(x.re / size, -x.im / size)


def _div(x: Any, y: Any, **rest: Any) -> Pair:
    if isinstance(y, complex):
        return _mul(pair(x), 1 / y)
    if not isinstance(y, Pair):
        return Pair(x.re / y, x.im / y)
    a, size = pair(x), y.re * y.re + y.im * y.im
    return Pair((a.re * y.re + a.im * y.im) / size, (a.im * y.re - a.re * y.im) / size)


def _exp(x: Pair) -> Pair:
    size = torch.exp(x.re)
    return Pair(size * torch.cos(x.im), size * torch.sin(x.im))


def _pow(x: Pair, power: Any) -> Pair:
    if not isinstance(power, (int, float)) or power != int(power) or not 1 <= power <= 8:
        raise NotImplementedError("a complex power")
    made = x
    for _ in range(int(power) - 1):
        made = _mul(made, x)
    return made


def _product(name: str) -> Any:
    def made(x: Any, y: Any) -> Pair:
        multiply, a, b = getattr(torch, name), pair(x), pair(y)
        return Pair(multiply(a.re, b.re) - multiply(a.im, b.im), multiply(a.re, b.im) + multiply(a.im, b.re))

    return made


def _joined(name: str) -> Any:
    def made(items: list[Any], dim: int = 0) -> Pair:
        pairs = [pair(i) for i in items]
        join = getattr(torch, name)
        return Pair(join([p.re for p in pairs], dim), join([p.im for p in pairs], dim))

    return made


def _where(c: Any, x: Any, y: Any) -> Pair:
    a, b = pair(x), pair(y)
    return Pair(torch.where(c, a.re, b.re), torch.where(c, a.im, b.im))


def _to_copy(x: Any, **rest: Any) -> Any:
    return pair(x)


def _zeros(size: Any, **rest: Any) -> Pair:
    return Pair(*(torch.zeros(list(size), device="meta") for _ in range(2)))  # bodies are traced on shapes alone


def constant(text: str, shape: Any) -> Pair:
    number = complex(text)
    return Pair(*(torch.full(list(shape), v, device="meta") for v in (number.real, number.imag)))


def _filled(x: Pair, value: Any) -> Pair:
    return Pair(*(torch.zeros_like(x.re) + v for v in pair(value)))  # value: a number, or a tensor of one


def _copied(x: Any, y: Any, *rest: Any) -> Pair:
    made = pair(y)
    return Pair(*(v.expand(pair(x).re.shape) for v in made))


def _scattered(name: str) -> Any:
    def made(x: Any, y: Any, *args: Any, **kwargs: Any) -> Pair:
        call, a, b = getattr(torch.ops.aten, name), pair(x), pair(y)
        return Pair(call(a.re, b.re, *args, **kwargs), call(a.im, b.im, *args, **kwargs))

    return made


def _reshaped(x: Pair, size: Any, *rest: Any) -> Pair:
    return Pair(*(v.reshape(list(size)) for v in x))  # the parts may lie otherwise than the whole


def _as_complex(x: Any) -> Pair:
    return Pair(x[..., 0], x[..., 1])


# ---- transforms ---------------------------------------------------------------------------------------------


def _angles(rows: int, columns: int, n: int, like: Any) -> Any:
    """2 pi (row * column mod n) / n, in [-pi, pi]."""
    k = (torch.arange(rows, device=like.device).reshape(-1, 1) * torch.arange(columns, device=like.device)) % n
    k = torch.where(2 * k > n, k - n, k)
    return k.to(wide(like)) * (2 * math.pi / n)


def _factor(n: int) -> int:
    """The largest factor up to the root; 1: a prime."""
    return next(f for f in range(math.isqrt(n), 0, -1) if n % f == 0)


def _direct(x: Pair, sign: int, real: bool) -> Pair:
    n = x.re.shape[-1]
    if n > MOST_PRIME:
        raise NotImplementedError(f"a transform of {n} points, which has no factors")
    angles = _angles(n, n, n, x.re)
    cos, sin = torch.cos(angles), torch.sin(angles) * float(sign)
    if real:
        made = torch.matmul(x.re, torch.cat([cos, sin], 1))
    else:
        table = torch.cat([torch.cat([cos, sin], 1), torch.cat([-sin, cos], 1)], 0)
        made = torch.matmul(torch.cat([x.re, x.im], -1), table)
    return Pair(made[..., :n], made[..., n:])


def _last(x: Pair, sign: int, real: bool = False) -> Pair:
    """Along the last dimension."""
    n = x.re.shape[-1]
    a = _factor(n)
    if n <= LEAF or a == 1:
        return _direct(x, sign, real)
    b, lead = n // a, list(x.re.shape[:-1])
    x = Pair(*(v.reshape([*lead, b, a]).transpose(-2, -1) for v in x))  # [j1, j2] of j = a j2 + j1
    x = _last(x, sign, real)
    angles = _angles(a, b, n, x.re)
    x = _mul(x, Pair(torch.cos(angles), torch.sin(angles) * float(sign)))
    x = _last(Pair(*(v.transpose(-2, -1) for v in x)), sign)  # [k2, k1] of k = b k1 + k2
    return Pair(*(v.transpose(-2, -1).reshape([*lead, n]) for v in x))


def _along(x: Pair, dim: int, sign: int, real: bool = False) -> Pair:
    moved = Pair(*(v.to(wide(v)).movedim(dim, -1) for v in x))
    made = _last(moved, sign, real)
    return Pair(*(v.movedim(-1, dim) for v in made))


def _scaled(x: Any, norm: int, points: int) -> Any:
    factor = {NONE: 1.0, BY_ROOT: points**-0.5, BY_N: 1.0 / max(points, 1)}[norm]
    if factor == 1.0:
        return x
    return Pair(x.re * factor, x.im * factor) if isinstance(x, Pair) else x * factor


def _c2c(x: Any, dims: Any, norm: int, forward: bool) -> Pair:
    x = pair(x)
    points = math.prod(x.re.shape[d] for d in dims)
    for d in dims:
        x = _along(x, d, -1 if forward else 1)
    return _scaled(x, norm, points)


def _r2c(x: Any, dims: Any, norm: int, onesided: bool) -> Pair:
    points = math.prod(x.shape[d] for d in dims)
    made = _along(pair(x), dims[-1], -1, real=True)
    if onesided:
        kept = x.shape[dims[-1]] // 2 + 1
        made = Pair(*(v.narrow(dims[-1], 0, kept) for v in made))
    for d in dims[:-1]:
        made = _along(made, d, -1)
    return _scaled(made, norm, points)


def _c2r(x: Any, dims: Any, norm: int, size: int) -> Any:
    x, last = pair(x), dims[-1]
    for d in dims[:-1]:
        x = _along(x, d, 1)
    kept = size // 2 + 1
    half = Pair(*(v.narrow(last, 0, kept) for v in x))
    rest = size - kept
    if rest > 0:
        mirrored = [v.narrow(last, 1, rest).flip([last]) for v in half]
        half = Pair(torch.cat([half.re, mirrored[0]], last), torch.cat([half.im, -mirrored[1]], last))
    points = math.prod(x.re.shape[d] for d in dims[:-1]) * size
    return _scaled(_along(half, last, 1).re, norm, points)


FORMULAS = {
    "_fft_c2c": _c2c,
    "_fft_r2c": _r2c,
    "_fft_c2r": _c2r,
    "add": _add,
    "sub": _sub,
    "rsub": lambda x, y, alpha=1: _sub(y, x, alpha=alpha),
    "mul": _mul,
    "div": _div,
    "reciprocal": _reciprocal,
    "neg": lambda x: Pair(-x.re, -x.im),
    "abs": lambda x: torch.hypot(x.re, x.im),
    "angle": lambda x: torch.atan2(x.im, x.re),
    "exp": _exp,
    "pow": _pow,
    "square": lambda x: _mul(x, x),
    "mm": _product("mm"),
    "bmm": _product("bmm"),
    "cat": _joined("cat"),
    "stack": _joined("stack"),
    "where": _where,
    "complex": lambda re, im: Pair(re, im),
    "polar": lambda size, angle: Pair(size * torch.cos(angle), size * torch.sin(angle)),
    "view_as_complex": _as_complex,
    "view_as_real": lambda x: torch.stack([x.re, x.im], -1),
    "real": lambda x: x.re,
    "imag": lambda x: x.im,
    "_conj": lambda x: Pair(x.re, -x.im),
    "conj_physical": lambda x: Pair(x.re, -x.im),
    "_conj_physical": lambda x: Pair(x.re, -x.im),
    "_to_copy": _to_copy,
    **dict.fromkeys(("view", "_unsafe_view", "reshape", "_reshape_alias"), _reshaped),
    "zeros": _zeros,
    "empty": _zeros,
    "ones": lambda size, **rest: Pair(_zeros(size).re + 1, _zeros(size).im),
    "new_zeros": lambda x, size, **rest: _zeros(size),
    "zeros_like": lambda x, **rest: _zeros(pair(x).re.shape),
    "empty_like": lambda x, **rest: _zeros(pair(x).re.shape),
    "fill": _filled,
    "zero": lambda x: _zeros(x.re.shape),
    "copy": _copied,
    "slice_scatter": _scattered("slice_scatter"),
    "select_scatter": _scattered("select_scatter"),
}
# the same of both parts
BOTH = frozenset("""
    t transpose permute expand unsqueeze squeeze slice select narrow diagonal
    unfold movedim flatten unflatten clone contiguous resolve_conj resolve_neg alias detach flip roll index_select gather
    sum mean cumsum repeat constant_pad_nd tril triu split split_with_sizes unbind as_strided index
    """.split())


def formula(op: str) -> Any:
    """The pair for an operator with complex operands or results; None: unknown operator."""
    words = op.split(".")
    name = words[1] if len(words) > 1 else op
    name = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    if name in FORMULAS:
        return FORMULAS[name]
    if name not in BOTH:
        return None
    call = getattr(torch.ops.aten, name)  # the overload follows from the arguments

    def both(x: Pair, *args: Any, **kwargs: Any) -> Any:
        re, im = call(x.re, *args, **kwargs), call(x.im, *args, **kwargs)
        return [Pair(r, i) for r, i in zip(re, im)] if isinstance(re, (list, tuple)) else Pair(re, im)

    return both
