# SPDX-License-Identifier: Apache-2.0
"""Blocks of neighbouring elements of an output, and the medians of each.

Hides the index arithmetic. docs/tasks.md explains what the medians are for.

1. A row is the trailing dimensions of the output, as few as make LEAST elements (all of them, where there are fewer). A row
   longer than MOST is divided evenly into blocks of at most MOST. So a block is contiguous, belongs to one row, and the
   blocks cover the output in memory order.
2. The division depends on the shape alone: fused.cu makes the same one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

LEAST, MOST = 16, 256


@dataclass
class Division:
    """How a shape is divided into blocks."""

    columns: int  # elements of a row
    segments: int  # blocks of a row
    blocks: int

    @property
    def width(self) -> int:
        """The longest block; others are one shorter."""
        return -(-self.columns // self.segments)

    def start(self, block: int) -> int:
        row, segment = divmod(block, self.segments)
        return row * self.columns + segment * self.columns // self.segments

    def parts(self, elements: int) -> Iterator[Part]:
        """All blocks, in parts of about that many elements."""
        step = max(elements // self.width, 1)
        for first in range(0, self.blocks, step):
            yield Part(self, first, min(first + step, self.blocks))


def divide(shape: torch.Size | list[int]) -> Division:
    columns = 1
    for size in reversed(shape):
        if columns >= LEAST:
            break
        columns *= size
    total = math.prod(shape)
    if not total:
        return Division(1, 1, 0)
    segments = -(-columns // MOST)
    return Division(columns, segments, total // columns * segments)


class Part:
    """Consecutive blocks as a matrix (block, place in it); short blocks are filled up."""

    def __init__(self, division: Division, first: int, last: int) -> None:
        self.division, self.shape = division, (last - first, division.width)
        self.begin, self.end = division.start(first), division.start(last)
        self.whole = division.columns % division.segments == 0
        if not self.whole:
            starts = torch.tensor([division.start(b) - self.begin for b in range(first, last + 1)])
            index = starts[:-1, None] + torch.arange(division.width)
            self.inside = index < starts[1:, None]
            self.index = index.clamp_(max=self.end - self.begin - 1)

    def take(self, flat: torch.Tensor, filler: float = 0.0) -> torch.Tensor:
        """The part's elements of a flat tensor, one block a row."""
        piece = flat[self.begin : self.end]
        if self.whole:
            return piece.reshape(self.shape)
        found = piece[self.index.to(flat.device)]
        return found.masked_fill_(~self.inside.to(flat.device), filler)

    def put(self, flat: torch.Tensor, values: torch.Tensor) -> None:
        piece = values.reshape(-1) if self.whole else values[self.inside.to(values.device)]
        flat[self.begin : self.end] = piece

    def median(self, values: torch.Tensor, count_zeros: bool) -> torch.Tensor:
        """(blocks, 1): the lower median of what is finite in each block, of what is not zero if zeros do not count; else 0."""
        keys = values.clone()
        keys[~torch.isfinite(keys)] = math.nan
        if not count_zeros:
            keys[keys == 0] = math.nan
        if not self.whole:
            keys.masked_fill_(~self.inside.to(keys.device), math.nan)
        return torch.nan_to_num(torch.nanmedian(keys, dim=1, keepdim=True).values, nan=0.0)

    def sizes(self, like: torch.Tensor) -> Any:
        """How many elements each block has."""
        return self.shape[1] if self.whole else self.inside.sum(1).to(like.device)
