# SPDX-License-Identifier: Apache-2.0
"""Describe which elements are wrong so that a kernel's author can act on it: a tail, a tile, every other lane, transposed, a factor.

One sentence; the first explanation that fits all of the evidence wins. The relation of the values to the right ones also has a name
(RELATIONS, as in src/eval/oracle.h), from which the advice follows.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

PERIODS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
LOOK = 1 << 16  # relations between values are looked for on about so many elements
CORNER = 192
RELATIONS = ("", "zeros", "factor", "offset", "transposed", "shifted", "reversed")


class Pattern(NamedTuple):
    """Of the errors of one output."""

    text: str = ""
    relation: str = ""  # one of RELATIONS


def describe_errors(bad: torch.Tensor, got: torch.Tensor, wanted: torch.Tensor) -> Pattern:
    """`bad` marks the wrong elements of `got`; `wanted` is what they should be."""
    if bad.dim() == 0:
        found = _relation(got.reshape(1), wanted.reshape(1))
        return found if found.text else Pattern("the only element is wrong")
    share = int(bad.sum()) / bad.numel()
    found = _relation(got, wanted) if share > 0.2 else Pattern()
    place = describe_place(bad)
    return found._replace(text=f"{place}; {found.text}" if found.text else place)


def describe_place(bad: torch.Tensor) -> str:
    """Which elements are marked."""
    return _place(bad, int(bad.sum()) / bad.numel()) if bad.dim() else "the only element"


# ---- where -------------------------------------------------------------------------------------


def _place(bad: torch.Tensor, share: float) -> str:
    if share == 1.0:
        return "every element"
    parts = []
    covered = 1.0
    for dim in range(bad.dim()):
        hit = bad.movedim(dim, 0).reshape(bad.shape[dim], -1).any(1)
        if not bool(hit.all()):
            parts.append(_along(hit, _noun(dim, bad.dim())))
            covered *= int(hit.sum()) / hit.numel()
    if not parts:
        return _flat_period(bad, share)
    whole = share > 0.9 * covered
    text = ", ".join(parts)
    return text if whole else f"{share / covered:.1%} of the elements in {text}"


def _noun(dim: int, dims: int) -> str:
    if dims == 1:
        return "elements"
    return "columns" if dim == dims - 1 else "rows" if dim == dims - 2 else f"slices (dim {dim})"


def _along(hit: torch.Tensor, noun: str) -> str:
    """Which indices of one dimension are hit."""
    where = hit.nonzero().reshape(-1)
    first, last, count, size = int(where[0]), int(where[-1]), where.numel(), hit.numel()
    if last - first + 1 == count:
        return _run(first, last, size, noun)
    period = _period(hit)
    if period:
        return f"{noun} {period}"
    return f"{count} of {size} {noun}, {first} to {last}"


def _run(first: int, last: int, size: int, noun: str) -> str:
    if first == last:
        return f"{noun[:-1] if noun.endswith('s') else noun} {first} of {size} only"
    if last == size - 1:
        return f"the last {last - first + 1} {noun} of {size} (tail, from {first})"
    if first == 0:
        return f"the first {last + 1} {noun} of {size}"
    block = last - first + 1
    tile = f", one whole tile of {block}" if block in PERIODS and first % block == 0 else ""
    return f"{noun} {first}..{last} of {size}{tile}"


def _period(hit: torch.Tensor) -> str:
    """'64..127 of every 128' when the hits repeat with a power of two."""
    for period in PERIODS:
        if period * 2 > hit.numel():
            break
        rows = hit[: hit.numel() // period * period].reshape(-1, period)
        if bool((rows == rows[0]).all()):
            inside = rows[0].nonzero().reshape(-1)
            if inside.numel() == 0:
                continue
            if period == 2:
                return f"{'1, 3, 5' if int(inside[0]) else '0, 2, 4'}, ... (every other one)"
            low, high = int(inside[0]), int(inside[-1])
            return (
                f"{low}..{high} of every {period}"
                if high - low + 1 == inside.numel()
                else f"{inside.numel()} of every {period}"
            )
    return ""


def _flat_period(bad: torch.Tensor, share: float) -> str:
    """Errors in all rows and columns: try the last dimension, then tiles, then memory order."""
    if bad.dim() >= 2:
        matrix = bad.reshape(-1, bad.shape[-1])
        same = matrix[0]
        if bool((matrix == same).all()):
            return _along(same, "columns")
        tiles = _tiles(matrix)
        if tiles:
            return tiles
        triangle = _triangle(bad)
        if triangle:
            return triangle
    flat = _period(bad.reshape(-1))
    if flat:
        return f"elements {flat} in memory order"
    return (
        f"{share:.2%} of the elements, scattered over all rows and columns"
        if bad.dim() > 1
        else f"{share:.2%} of the elements, scattered"
    )


def _tiles(matrix: torch.Tensor) -> str:
    """Whole tiles of a power of two that are all wrong or all right."""
    rows, columns = matrix.shape
    for size in (256, 128, 64, 32, 16, 8):
        if size * 2 > rows or size * 2 > columns:
            continue
        kept = matrix[: rows // size * size, : columns // size * size].float()
        means = kept.reshape(rows // size, size, columns // size, size).mean(dim=(1, 3))
        full = (means > 0.9).sum()
        if int(full) and bool(((means > 0.9) | (means == 0)).all()):
            return f"whole tiles of {size} x {size}: {int(full)} of {means.numel()}"
    return ""


def _triangle(bad: torch.Tensor) -> str:
    if bad.shape[-1] != bad.shape[-2]:
        return ""
    above, below = torch.triu(bad, 1), torch.tril(bad, -1)
    if not bool(below.any()):
        return "only above the diagonal"
    if not bool(above.any()):
        return "only below the diagonal"
    return ""


# ---- how ---------------------------------------------------------------------------------------


def _relation(got: torch.Tensor, wanted: torch.Tensor) -> Pattern:
    """What `got` is instead: zeros, a multiple, shifted, transposed. Looked for on a part of the elements."""
    if not got.is_floating_point() or got.numel() == 0:
        return Pattern()
    step = max(got.numel() // LOOK, 1) | 1  # odd, so that it does not beat with a tile
    g, w = (t.reshape(-1)[::step].double() for t in (got, wanted))
    fine = torch.isfinite(g) & torch.isfinite(w)
    if float(fine.double().mean()) < 0.5:
        return Pattern()
    g, w = g[fine], w[fine]
    if not bool(g.any()):
        return Pattern("all of them are zero", "zeros")
    size = float(w.square().mean().sqrt())
    if size == 0.0:
        return Pattern()
    factor = float((g * w).sum() / (w * w).sum())
    if _near(g, w * factor, size * abs(factor)) and abs(factor - 1) > 1e-6:
        return Pattern(f"{factor:.6g} times the right value", "factor")
    offset = float((g - w).mean())
    if _near(g, w + offset, size) and abs(offset) > 1e-6 * size:
        return Pattern(f"the right value plus {offset:.6g}", "offset")
    return _moved(got, wanted)


def _near(a: torch.Tensor, b: torch.Tensor, size: float) -> bool:
    return float((a - b).square().mean().sqrt()) < 1e-3 * max(size, 1e-300)


def _same(got: torch.Tensor, other: torch.Tensor) -> bool:
    """Are two views of the same shape approximately equal? Compares only their leading corner."""
    corner = tuple(slice(0, CORNER) if k >= got.dim() - 2 else slice(0, 4) for k in range(got.dim()))
    a, b = torch.nan_to_num(got[corner].double()), torch.nan_to_num(other[corner].double())
    return a.numel() > 8 and _near(a, b, float(b.square().mean().sqrt()))


def _moved(g: torch.Tensor, w: torch.Tensor) -> Pattern:
    if g.dim() >= 2 and g.shape[-1] == g.shape[-2] and _same(g, w.mT):
        return Pattern("transposed", "transposed")
    if g.dim() == 2 and g.shape[-1] != g.shape[-2] and _same(g.reshape(g.shape[1], g.shape[0]), w.mT):
        return Pattern("transposed: written in column-major order", "transposed")
    for dim in range(g.dim()):
        size = g.shape[dim]
        if size < 3:
            continue
        if _same(g.narrow(dim, 0, size - 1), w.narrow(dim, 1, size - 1)):
            return Pattern(f"off by one: holds what belongs one further along {_noun(dim, g.dim())}", "shifted")
        if _same(g.narrow(dim, 1, size - 1), w.narrow(dim, 0, size - 1)):
            return Pattern(f"off by one: holds what belongs one earlier along {_noun(dim, g.dim())}", "shifted")
        if _same(g, w.flip(dim)):
            return Pattern(f"{_noun(dim, g.dim())} in reverse order", "reversed")
    return Pattern()
