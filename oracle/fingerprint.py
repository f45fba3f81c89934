# SPDX-License-Identifier: Apache-2.0
"""Fingerprints of rows, which detect whether memory was changed without keeping a second copy.

1. The keys are secret and drawn per process, so that no candidate can choose an undetected change. A fingerprint is
   the sum of its 32-bit words, each times a key of 64 bits: two rows agree by chance once in 2^33.
2. Temporary memory stays bounded, however large the rows. On a GPU it is one pass (fused.cu).
"""

from __future__ import annotations

import functools
import secrets

import torch

from . import fused
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
    return _in_units(tensor, unit, None)


def copied(tensor: torch.Tensor, unit: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(a copy, its fingerprints): what is copied is what is marked, whoever writes there meanwhile."""
    if tensor.device.type != "cuda" or not tensor.is_contiguous():
        copy = tensor.clone()
        return copy, fingerprints(copy, unit)
    copy = torch.empty_like(tensor)
    return copy, _in_units(tensor, unit, copy)


def _in_units(tensor: torch.Tensor, unit: int, copy: torch.Tensor | None) -> torch.Tensor:
    rows = tensor.shape[0]
    even = rows // unit * unit
    found = []
    for part, units in ((slice(0, even), even // unit), (slice(even, rows), 1)):
        if part.start < part.stop:
            found.append(_of(tensor[part].reshape(units, -1), None if copy is None else copy[part].view(units, -1)))
    return torch.cat(found)


def _of(matrix: torch.Tensor, copy: torch.Tensor | None = None) -> torch.Tensor:
    words = _words(matrix.contiguous())
    keys, factors = _keys(matrix.device)
    found = fused.fingerprints(words, keys, factors, None if copy is None else _words(copy), _by_torch)
    if found is not None:
        return found
    if copy is not None:
        words = _words(copy).copy_(words)
    return _by_torch(words)


def _words(matrix: torch.Tensor) -> torch.Tensor:
    words = matrix.view(pattern_bits(matrix.dtype)[0])
    if words.dtype == torch.int64 or words.shape[1] * words.element_size() % 4 == 0:
        words = words.view(torch.int32)
    return words


def _by_torch(words: torch.Tensor) -> torch.Tensor:
    keys, factors = _keys(words.device)
    found = torch.zeros(words.shape[0], dtype=torch.int64, device=words.device)
    for number, left in enumerate(range(0, words.shape[1], KEYS)):
        width = min(KEYS, words.shape[1] - left)
        step = max(AT_ONCE // width, 1)
        for top in range(0, words.shape[0], step):
            piece = words[top : top + step, left : left + width].to(torch.int64)
            found[top : top + step] += piece.mul_(keys[:width]).sum(1) * factors[number % len(factors)]
    return found
