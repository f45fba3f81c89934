# SPDX-License-Identifier: Apache-2.0
"""Fingerprints of rows: was this memory changed since? Instead of a second copy of it.

1. The keys are secret and drawn per process: who changes a row cannot choose a change that does not show. A fingerprint is
   the sum of its 32-bit words, each times a key of 64 bits: two rows agree by chance once in 2^33.
2. Temporary memory stays bounded, however large the rows.
"""

from __future__ import annotations

import functools
import secrets

import torch

from .buffers import pattern_bits

KEYS = 1 << 20
AT_ONCE = 1 << 23  # words


@functools.lru_cache(None)
def _keys(device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """(a key per word, a factor per KEYS words of a row)"""
    generator = torch.Generator().manual_seed(secrets.randbits(63))
    low, high = -(1 << 63), (1 << 63) - 1
    words = torch.randint(low, high, (KEYS,), generator=generator, dtype=torch.int64)
    factors = torch.randint(low, high, (4096,), generator=generator, dtype=torch.int64) | 1
    return words.to(device), factors.to(device)


def fingerprints(tensor: torch.Tensor, unit: int) -> torch.Tensor:
    """(units,) int64: of every `unit` rows of a contiguous tensor; the last unit may be shorter."""
    rows = tensor.shape[0]
    even = rows // unit * unit
    found = [_of(tensor[:even].reshape(even // unit, -1))] if even else []
    if even < rows:
        found.append(_of(tensor[even:].reshape(1, -1)))
    return torch.cat(found)


def _of(matrix: torch.Tensor) -> torch.Tensor:
    words = matrix.contiguous().view(pattern_bits(matrix.dtype)[0])
    if words.dtype == torch.int64 or words.shape[1] * words.element_size() % 4 == 0:
        words = words.view(torch.int32)
    keys, factors = _keys(matrix.device)
    found = torch.zeros(matrix.shape[0], dtype=torch.int64, device=matrix.device)
    for number, left in enumerate(range(0, words.shape[1], KEYS)):
        width = min(KEYS, words.shape[1] - left)
        step = max(AT_ONCE // width, 1)
        for top in range(0, words.shape[0], step):
            piece = words[top : top + step, left : left + width].to(torch.int64)
            found[top : top + step] += piece.mul_(keys[:width]).sum(1) * factors[number % len(factors)]
    return found
