# SPDX-License-Identifier: Apache-2.0
"""The folder through which a guest gets inputs and returns outputs: the oracle's side.

Everything in the folder may be changed by the guest at any moment, also while we look. So

1. Files are written and read, never mapped: one that is cut short is a short read, not a fault of ours.
2. What is compared was copied into memory of our own first.
3. Our files are new and have names that cannot be guessed; what is read is a regular file of the right size with one name. A link,
   a FIFO or a folder in its place is an output that was not written.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import secrets
import stat
from pathlib import Path
from typing import Any

import torch

from .buffers import pattern_bits, span_of
from .fault import machine


def memory_of(tensor: torch.Tensor) -> memoryview:
    """The bytes of a contiguous tensor on the CPU, where they are."""
    size = tensor.numel() * tensor.element_size()
    return memoryview((ctypes.c_ubyte * size).from_address(tensor.data_ptr())).cast("B") if size else memoryview(b"")


def read_into(fd: int, tensor: torch.Tensor) -> bool:
    """Fills the tensor from the file's beginning; False where the file ends too early."""
    target, at = memory_of(tensor), 0
    while at < len(target):
        count = os.preadv(fd, [target[at : at + (1 << 30)]], at)
        if count <= 0:
            return False
        at += count
    return True


def write_all(fd: int, tensor: torch.Tensor) -> None:
    data, at = memory_of(tensor), 0
    while at < len(data):
        at += os.write(fd, data[at : at + (1 << 30)])


class Exchange:
    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        self.names: dict[str, str] = {}  # "in0" -> its file

    def put(self, key: str, value: torch.Tensor, strides: list[int] | None = None) -> dict[str, Any]:
        """A tensor for the guest, as the bytes from its first to its last element."""
        shape = list(value.shape)
        strides = list(value.contiguous().stride()) if strides is None else strides
        flat = torch.zeros(span_of(shape, strides), dtype=value.dtype)
        if flat.numel():
            view = torch.as_strided(flat, shape, strides)
            index = tuple(slice(0, 1) if s == 0 else slice(None) for s in strides)
            view[index].copy_(value[index].cpu())  # an expanded dimension is written once
        name = self._name(key)
        try:
            fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=self.fd)
            try:
                write_all(fd, flat)
            finally:
                os.close(fd)
        except OSError as err:
            hint = "make the task smaller (--set N=512), or name a folder with more room in TMPDIR"
            raise machine(
                f"cannot hand {key} to the module: {self.folder}: {err.strerror}", hint if err.errno == errno.ENOSPC else ""
            ) from err
        return self.wire(key, flat.numel() * flat.element_size())

    def expect(self, key: str, size: int) -> dict[str, Any]:
        """The file where the guest will write an output."""
        self._name(key)
        return self.wire(key, size)

    def wire(self, key: str, size: int) -> dict[str, Any]:
        return {"path": str(Path(self.folder) / self.names[key]), "offset": 0, "bytes": size}

    def get(self, key: str, shape: list[int], strides: list[int], dtype: torch.dtype) -> torch.Tensor | None:
        """A copy of the file's current content; None if there is no file of that size."""
        flat = torch.empty(span_of(shape, strides), dtype=dtype)
        try:
            fd = os.open(self.names[key], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self.fd)
        except OSError:
            return None
        try:
            found = os.fstat(fd)
            good = stat.S_ISREG(found.st_mode) and found.st_nlink == 1
            if not good or found.st_size != flat.numel() * flat.element_size() or not read_into(fd, flat):
                return None
        except OSError:
            return None
        finally:
            os.close(fd)
        return torch.as_strided(flat, shape, strides) if flat.numel() else flat.reshape(shape)

    def output(self, key: str, shape: list[int], strides: list[int], dtype: torch.dtype) -> torch.Tensor:
        """The same, with the mark of the unwritten everywhere where there is nothing. The file is gone then."""
        made = self.get(key, shape, strides, dtype)
        self._forget(key)
        if made is None:
            kind, bits = pattern_bits(dtype)
            made = torch.full(shape, bits, dtype=kind).view(dtype)
        return made

    def clear(self) -> None:
        for key in list(self.names):
            self._forget(key)
        self.names.clear()

    def close(self) -> None:
        if self.fd >= 0:
            self.clear()
            os.close(self.fd)
            self.fd = -1

    def _name(self, key: str) -> str:
        self.names[key] = f"{key}-{secrets.token_hex(8)}"
        return self.names[key]

    def _forget(self, key: str) -> None:
        with contextlib.suppress(OSError):  # a folder, or gone already
            os.unlink(self.names[key], dir_fd=self.fd)
