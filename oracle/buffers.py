# SPDX-License-Identifier: Apache-2.0
"""The memory a candidate works on: one block per tensor, with guard zones, shared with the runner.

Hides where it lies: files mapped by both sides (CPU), or device memory by CUDA IPC.

1. A block is guard, tensor, guard. Guards and outputs hold a pattern that reads as NaN in every floating point type.
2. A block belongs to one tensor and to nothing else of this process: a stray write does no harm but is seen.
3. The tensor begins at a multiple of ALIGN bytes; `shift` moves it by that much.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import sys
from pathlib import Path
from typing import Any

import torch

from .fault import machine

ALIGN = 256
GUARD = 1 << 16
SHIFTS = 64
CUDA_UNIT = 2 << 20  # smaller device allocations share one IPC block with others


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory as integers, so that equal bits compare equal, even NaN."""
    return tensor.view(pattern_bits(tensor.dtype)[0])


def pattern_bits(dtype: torch.dtype) -> tuple[torch.dtype, int]:
    """The integer type to view a tensor with, and the mark of an unwritten element: a signalling NaN where there is one."""
    return {
        torch.float64: (torch.int64, 0x7FF4A5C0DEA5C0DE),
        torch.float32: (torch.int32, 0x7FA5C0DE),
        torch.float16: (torch.int16, 0x7DA5),
        torch.bfloat16: (torch.int16, 0x7FA5),
        torch.int64: (torch.int64, 0x7FA5C0DE7FA5C0DE),
        torch.int32: (torch.int32, 0x7FA5C0DE),
        torch.int16: (torch.int16, 0x7DA5),
        torch.int8: (torch.int8, 0x5A),
        torch.uint8: (torch.uint8, 0xA5),
        torch.bool: (torch.uint8, 0xA5),
    }[dtype]


def span_of(shape: list[int], strides: list[int]) -> int:
    """Elements from the first to the last one of a strided tensor."""
    return 0 if 0 in shape else 1 + sum((size - 1) * stride for size, stride in zip(shape, strides))


class Buffer:
    """One tensor's block. `raw` is the whole block as bytes; `tensor()` the part a kernel sees."""

    def __init__(
        self,
        name: str,
        dtype: torch.dtype,
        shape: list[int],
        strides: list[int],
        raw: torch.Tensor,
        place: dict[str, Any],
    ) -> None:
        self.name, self.dtype, self.shape, self.strides = name, dtype, shape, strides
        self.raw, self.place = raw, place
        self.bytes = span_of(shape, strides) * torch.empty(0, dtype=dtype).element_size()
        self.offset = GUARD

    def prepare(self, shift: int) -> None:
        """Moves the tensor and fills the whole block with the pattern."""
        self.offset = GUARD + (shift % SHIFTS) * ALIGN
        kind, bits = pattern_bits(self.dtype)
        self.raw.view(kind).fill_(bits)

    def tensor(self) -> torch.Tensor:
        flat = self.raw[self.offset : self.offset + self.bytes].view(self.dtype)
        return (
            torch.as_strided(flat, self.shape, self.strides, flat.storage_offset())
            if self.bytes
            else flat.reshape(self.shape)
        )

    def as_bits(self) -> torch.Tensor:
        return self.tensor().view(pattern_bits(self.dtype)[0])

    def guards_hit(self) -> list[dict[str, Any]]:
        kind, bits = pattern_bits(self.dtype)
        size = torch.empty(0, dtype=kind).element_size()
        end = -(-(self.offset + self.bytes) // size) * size
        hits = []
        for side, zone in (("before", self.raw[: self.offset]), ("after", self.raw[end:])):
            if zone.device.type == "cpu" and ctypes.string_at(zone.data_ptr(), zone.numel()) == filled(bits, size, zone.numel()):
                continue
            changed = zone.view(kind) != bits
            count = int(changed.sum())
            if count:
                where = changed.nonzero().reshape(-1)
                near = int(where[0]) * size if side == "after" else zone.numel() - (int(where[-1]) + 1) * size
                hits.append({"buffer": self.name, "side": side, "bytes": count * size, "distance": near})
        return hits

    def wire(self) -> dict[str, Any]:
        return {**self.place, "offset": self.offset, "bytes": self.bytes}


def filled(bits: int, size: int, count: int) -> bytes:
    """`count` bytes of a pattern of `size` bytes."""
    return _repeated(bits, size, count // GUARD + 1)[:count]


@functools.lru_cache(maxsize=16)
def _repeated(bits: int, size: int, guards: int) -> bytes:
    return bits.to_bytes(size, sys.byteorder) * (guards * GUARD // size)


def block_bytes(tensor_bytes: int, device: torch.device) -> int:
    size = GUARD + SHIFTS * ALIGN + tensor_bytes + GUARD
    unit = CUDA_UNIT if device.type == "cuda" else 4096
    return -(-size // unit) * unit


class Pool:
    """All buffers of a loaded task; release() frees everything."""

    def __init__(self, device: torch.device, work: Path) -> None:
        self.device, self.work = device, work
        self.buffers: list[Buffer] = []
        self._paths: list[Path] = []
        self._pointers: list[int] = []

    def add(self, name: str, dtype: torch.dtype, shape: list[int], strides: list[int]) -> Buffer:
        size = block_bytes(span_of(shape, strides) * torch.empty(0, dtype=dtype).element_size(), self.device)
        raw, place = self._file(name, size) if self.device.type == "cpu" else self._device(size)
        self.buffers.append(Buffer(name, dtype, shape, strides, raw, place))
        return self.buffers[-1]

    def _file(self, name: str, size: int) -> tuple[torch.Tensor, dict[str, Any]]:
        path = self.work / name
        try:
            path.unlink(missing_ok=True)
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(
                    fd, 0, size
                )  # room now, or a clear error: a full tmpfs would kill us later
            finally:
                os.close(fd)
        except OSError as err:
            path.unlink(missing_ok=True)
            hint = (
                "make the task smaller (--set N=512), or name a folder with more room in TMPDIR"
                if err.errno == errno.ENOSPC
                else "raise the limit: ulimit -f unlimited" if err.errno == errno.EFBIG else "choose another folder: TMPDIR"
            )
            raise machine(f"cannot make buffer {path} of {size} bytes: {err.strerror}", hint) from err
        self._paths.append(path)
        return torch.from_file(str(path), shared=True, size=size, dtype=torch.uint8), {"path": str(path)}

    def _device(self, size: int) -> tuple[torch.Tensor, dict[str, Any]]:
        from . import cuda

        pointer, handle = cuda.allocate(self.device, size)
        self._pointers.append(pointer)
        return cuda.wrap(pointer, size, self.device), {"ipc": handle}

    def release(self) -> None:
        self.buffers.clear()
        for path in self._paths:
            path.unlink(missing_ok=True)
        self._paths.clear()
        if self._pointers:
            from . import cuda

            cuda.free(self.device, self._pointers)
            self._pointers.clear()
