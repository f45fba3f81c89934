"""A device whose memory is small, played on the CPU: counts what torch holds and fails as CUDA does when that is too much."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Meter(TorchDispatchMode):
    """Inside `with`, memory that operators make counts, as long as a tensor shows it. `limit`: bytes; 0: none."""

    def __init__(self, limit: int = 0) -> None:
        super().__init__()
        self.limit, self.now, self.peak, self.refused = limit, 0, 0, 0
        self.users: dict[int, int] = {}
        self.sizes: dict[int, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        known = {_place(a) for a in args if isinstance(a, torch.Tensor)}
        for tensor in result if isinstance(result, (list, tuple)) else [result]:
            if isinstance(tensor, torch.Tensor):
                self._see(tensor, known)
        return result

    def _see(self, tensor: torch.Tensor, known: set[int]) -> None:
        place = _place(tensor)
        if not place or (place in known and place not in self.sizes):
            return  # a view of what was there before: a buffer
        if place not in self.sizes:
            self.sizes[place] = tensor.storage().nbytes()
            self.now += self.sizes[place]
            self.peak = max(self.peak, self.now)
        self.users[place] = self.users.get(place, 0) + 1
        weakref.finalize(tensor, self._gone, place)
        if self.limit and self.now > self.limit:
            self.refused += 1
            raise RuntimeError(f"CUDA out of memory. Tried to allocate {self.sizes[place]} bytes (played by a test)")

    def _gone(self, place: int) -> None:
        self.users[place] -= 1
        if not self.users[place]:
            del self.users[place]
            self.now -= self.sizes.pop(place)


def _place(tensor: torch.Tensor) -> int:
    return tensor.storage().data_ptr() if tensor.layout == torch.strided else 0
