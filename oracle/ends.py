# SPDX-License-Identifier: Apache-2.0
"""What random numbers seldom are: extremes at the ends of lines, equal elements, whole numbers, rows of zeros.

A reduction that misses the last element of a row is right unless that element counts: the maximum of 1000 random numbers is
seldom the last one. So in a draw, every line along every dimension (LINES of them, where there are more) and the whole tensor in
memory order have their extremes at their ends.

1. Values are permuted, or repeated: sign, range and domain stay. What has structure (facts.py) is left alone.
2. "normal" and "zeros" exchange: the largest goes to the end and the smallest to the beginning, or the other way round, in turns;
   what comes first in one distribution comes last in the other. "wide" repeats: the largest, or the smallest, stands at both
   ends besides its own place, so that an index of a maximum has ties to decide, and a sum of squares ends that count.
3. "zeros" also has multiples of one half, and rows of zeros where the reference bears them (loaded.py).
4. Beside a draw of any size there is memory for a few times PIECE elements: of longer lines only the whole tensor has extremes at
   its ends.
"""

from __future__ import annotations

import math

import torch

LINES = 64
PIECE = 1 << 22
WHOLE = 1 / 8  # of the elements of a zeros draw are multiples of one half


def reach_ends(values: torch.Tensor, distribution: str, generator: torch.Generator) -> None:
    """`values`: contiguous, changed in place."""
    for dim in reversed(range(values.dim())):
        most = min(LINES, PIECE // max(values.shape[dim], 1))
        if values.shape[dim] < 2 or values.dim() == 1 or not most:
            continue
        lines = values.movedim(dim, -1)
        shape = lines.shape[:-1]
        count = math.prod(shape)
        if count <= most:
            chosen = torch.arange(count, device=values.device)
        else:
            chosen = torch.randint(count, (most,), generator=generator, device=generator.device).unique()
        place = _unravelled(chosen, shape)
        some = lines[place]
        _reach(some, distribution)
        lines[place] = some
    if values.numel() > 1:
        _reach(values.view(1, -1), distribution)


def _unravelled(number: torch.Tensor, shape: torch.Size) -> tuple[torch.Tensor, ...]:
    place = []
    for size in reversed(shape):
        place.append(number % size)
        number = torch.div(number, size, rounding_mode="floor")
    return tuple(reversed(place))


def _reach(lines: torch.Tensor, distribution: str) -> None:
    """(line, place in it), changed in place."""
    number = torch.arange(len(lines), device=lines.device)
    turned = (number % 2 == 1) != (distribution == "zeros")
    last = torch.full_like(number, lines.shape[1] - 1)
    if distribution == "wide":
        extreme = torch.where(turned, lines.amin(1), lines.amax(1))
        lines[:, 0] = lines[:, -1] = extreme
        return
    _exchange(lines, lines.argmax(1), torch.where(turned, 0, last))
    _exchange(lines, lines.argmin(1), torch.where(turned, last, 0))


def _exchange(lines: torch.Tensor, one: torch.Tensor, two: torch.Tensor) -> None:
    number = torch.arange(len(lines), device=lines.device)
    kept = lines[number, two]
    lines[number, two] = lines[number, one]
    lines[number, one] = kept


def round_some(values: torch.Tensor, generator: torch.Generator) -> None:
    """Some elements become multiples of one half: what is rounded, and compared with such a number, has ties."""
    for part in values.view(-1).split(PIECE):
        some = torch.rand(part.shape, generator=generator, device=values.device) < WHOLE
        part.copy_(torch.where(some, (part * 2).round_().div_(2), part))


def clear_some(values: torch.Tensor, generator: torch.Generator) -> None:
    """Some rows, and a slice along the first and the second dimension, are nothing but zeros: norms and deviations of 0."""
    shape, device = values.shape, generator.device
    if values.dim() < 2 or not values.numel():
        return
    rows = values.view(-1, shape[-1])
    if len(rows) >= 8:
        rows[torch.randint(len(rows), (max(len(rows) // 16, 1),), generator=generator, device=device)] = 0.0
    for dim in range(2):
        if shape[dim] >= 8:
            values.select(dim, int(torch.randint(shape[dim], (1,), generator=generator, device=device))).zero_()
