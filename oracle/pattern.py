"""Which elements are wrong, in words a kernel's author can act on: a tail, a tile, every other lane, transposed, a factor.

One sentence; the first explanation that fits all of the evidence wins.
"""
from __future__ import annotations


import torch

PERIODS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
LOOK = 1 << 22  # relations between values are looked for on at most so many elements


def describe_errors(bad: torch.Tensor, got: torch.Tensor, wanted: torch.Tensor) -> str:
    """`bad` marks the wrong elements of `got`; `wanted` is what they should be."""
    if bad.dim() == 0:
        return _relation(got.reshape(1), wanted.reshape(1)) or "the only element is wrong"
    share = float(bad.double().mean())
    relation = _relation(got, wanted) if share > 0.2 else ""
    place = _place(bad, share)
    return f"{place}; {relation}" if relation else place


# ---- where -------------------------------------------------------------------------------------


def _place(bad: torch.Tensor, share: float) -> str:
    if share == 1.0:
        return "every element"
    parts = []
    covered = 1.0
    for dim in range(bad.dim()):
        hit = bad.any(dim=[d for d in range(bad.dim()) if d != dim]) if bad.dim() > 1 else bad
        if not bool(hit.all()):
            parts.append(_along(hit, _noun(dim, bad.dim())))
            covered *= float(hit.double().mean())
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
            return f"{low}..{high} of every {period}" if high - low + 1 == inside.numel() else f"{inside.numel()} of every {period}"
    return ""


def _flat_period(bad: torch.Tensor, share: float) -> str:
    """Errors in all rows and columns: look at the last dimension, then at tiles, then at memory order."""
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
    return f"{share:.2%} of the elements, scattered over all rows and columns" if bad.dim() > 1 else f"{share:.2%} of the elements, scattered"


def _tiles(matrix: torch.Tensor) -> str:
    """Whole tiles of a power of two that are all wrong or all right."""
    rows, columns = matrix.shape
    for size in (256, 128, 64, 32, 16, 8):
        if size * 2 > rows or size * 2 > columns:
            continue
        kept = matrix[: rows // size * size, : columns // size * size].double()
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


def _relation(got: torch.Tensor, wanted: torch.Tensor) -> str:
    """What `got` is instead: zeros, a multiple, shifted, transposed."""
    if not got.is_floating_point() or got.numel() == 0 or got.numel() > LOOK:
        return ""
    g, w = got.double(), wanted.double()
    fine = torch.isfinite(g) & torch.isfinite(w)
    if float(fine.double().mean()) < 0.5:
        return ""
    g, w = torch.where(fine, g, torch.zeros_like(g)), torch.where(fine, w, torch.zeros_like(w))
    if not bool(g.any()):
        return "all of them are zero"
    size = float(w.square().mean().sqrt())
    if size == 0.0:
        return ""
    factor = float((g * w).sum() / (w * w).sum())
    if _near(g, w * factor, size * abs(factor)) and abs(factor - 1) > 1e-6:
        return f"{factor:.6g} times the right value"
    offset = float((g - w).mean())
    if _near(g, w + offset, size) and abs(offset) > 1e-6 * size:
        return f"the right value plus {offset:.6g}"
    return _moved(g, w, size)


def _near(a: torch.Tensor, b: torch.Tensor, size: float) -> bool:
    return float((a - b).square().mean().sqrt()) < 1e-3 * max(size, 1e-300)


def _moved(g: torch.Tensor, w: torch.Tensor, size: float) -> str:
    if g.dim() >= 2 and g.shape[-1] == g.shape[-2] and _near(g, w.mT, size):
        return "transposed"
    if g.dim() >= 2 and g.shape[-1] != g.shape[-2] and g.dim() == 2 and _near(g.reshape(-1), w.mT.reshape(-1), size):
        return "transposed: written in column-major order"
    for dim in range(g.dim()):
        noun = _noun(dim, g.dim())
        for step in (1, -1):
            if g.shape[dim] > 2 and _near(torch.narrow(torch.roll(g, step, dim), dim, 1, g.shape[dim] - 2), torch.narrow(w, dim, 1, g.shape[dim] - 2), size):
                return f"off by one: {noun} moved by {-step:+d}"
    if g.dim() >= 1:
        for dim in range(g.dim()):
            if g.shape[dim] > 1 and _near(g.flip(dim), w, size):
                return f"{_noun(dim, g.dim())} in reverse order"
    return ""
