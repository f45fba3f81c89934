# SPDX-License-Identifier: Apache-2.0
"""Device memory that another process may open: allocated by the driver, seen by torch as a tensor.

Hides libcuda and DLPack. torch's own allocator is not used for buffers: it puts several tensors into one allocation, and an IPC
handle opens all of it.
"""

from __future__ import annotations

import ctypes
import functools

import torch

from .fault import machine, memory

_OUT_OF_MEMORY = 2


@functools.cache
def _driver() -> ctypes.CDLL:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as err:
        raise machine("there is no CUDA driver (libcuda.so.1)", "use --device simt") from err


def _check(code: int, what: str) -> None:
    if code == _OUT_OF_MEMORY:
        raise memory(f"{what}: the device is out of memory")
    if code:
        name = ctypes.c_char_p()
        _driver().cuGetErrorName(code, ctypes.byref(name))
        raise machine(f"{what}: {(name.value or b'').decode()} ({code})", "see cutegen doctor")


def allocate(device: torch.device, size: int) -> tuple[int, str]:
    """(address, IPC handle in hex) of fresh device memory in torch's context."""
    with torch.cuda.device(device):
        torch.cuda.current_stream().synchronize()  # makes torch's context current
        pointer = ctypes.c_uint64()
        code = _driver().cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size))
        if code == _OUT_OF_MEMORY:
            torch.cuda.empty_cache()
            code = _driver().cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size))
        _check(code, f"allocating {size} bytes")
        handle = (ctypes.c_ubyte * 64)()
        _check(_driver().cuIpcGetMemHandle(ctypes.byref(handle), pointer), "sharing a buffer by CUDA IPC")
        return pointer.value, bytes(handle).hex()


def free(device: torch.device, pointers: list[int]) -> None:
    with torch.cuda.device(device):
        torch.cuda.synchronize()
        for pointer in pointers:
            _driver().cuMemFree_v2(ctypes.c_uint64(pointer))


def reset_kept() -> None:
    """Resets lines that L2 was asked to keep (evict_last) to ordinary ones, which a flush evicts. The device must be idle."""
    try:
        _driver().cuCtxResetPersistingL2Cache()
    except AttributeError:  # an old driver
        pass


def open_handle(device: torch.device, handle: str) -> tuple[int, int]:
    """(address, bytes) of another process's memory."""
    with torch.cuda.device(device):
        raw = (ctypes.c_ubyte * 64).from_buffer_copy(bytes.fromhex(handle))

        class Handle(ctypes.Structure):
            _fields_ = [("bytes", ctypes.c_ubyte * 64)]

        pointer, base, size = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_size_t()
        _check(_driver().cuIpcOpenMemHandle_v2(ctypes.byref(pointer), Handle(raw), ctypes.c_uint(1)), "opening a buffer by CUDA IPC")
        _check(_driver().cuMemGetAddressRange_v2(ctypes.byref(base), ctypes.byref(size), pointer), "measuring a buffer")
        return pointer.value, size.value


# ---- DLPack, by hand: the one way into torch that needs neither numpy nor a compiler -----------


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("index", ctypes.c_int32)]


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]
_KCUDA, _KUINT = 2, 1
_alive: dict[int, tuple] = {}


@_Deleter
def _forget(managed: ctypes._Pointer[_Managed]) -> None:
    _alive.pop(ctypes.addressof(managed.contents), None)


def wrap(pointer: int, size: int, device: torch.device) -> torch.Tensor:
    """The memory as a byte tensor. It does not own the memory: free() does."""
    shape, strides = (ctypes.c_int64 * 1)(size), (ctypes.c_int64 * 1)(1)
    managed = _Managed(
        _Tensor(
            pointer,
            _Device(_KCUDA, device.index or 0),
            1,
            _DataType(_KUINT, 8, 1),
            ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64)),
            ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64)),
            0,
        ),
        None,
        _forget,
    )
    _alive[ctypes.addressof(managed)] = (managed, shape, strides)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return torch.utils.dlpack.from_dlpack(new(ctypes.addressof(managed), b"dltensor", None))
