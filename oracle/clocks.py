# SPDX-License-Identifier: Apache-2.0
"""A GPU's clocks and state directly after a measurement, by NVML in this warm process: nvidia-smi takes a tenth of a second.

Only a note beside a time. Any failure gives an empty line, and the client uses nvidia-smi instead.
"""

from __future__ import annotations

import ctypes
import functools
import uuid
from typing import Any

import torch

from .cuda import _check, _driver

SM, MEMORY = 1, 2  # nvmlClockType_t


@functools.cache
def _nvml(index: int) -> tuple[ctypes.CDLL, ctypes.c_void_p, str]:
    """(the library, its handle of torch's device, the device's name for all programs)"""
    library, device, raw = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_int(), (ctypes.c_ubyte * 16)()
    _check(_driver().cuDeviceGet(ctypes.byref(device), index), "a device")
    _check(_driver().cuDeviceGetUuid_v2(ctypes.byref(raw), device), "its name")
    name, handle = f"GPU-{uuid.UUID(bytes=bytes(raw))}", ctypes.c_void_p()
    if library.nvmlInit_v2() or library.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(handle)):
        raise OSError("NVML does not know this device")
    return library, handle, name


def line(device: torch.device) -> str:
    """In nvidia-smi's format: uuid, driver, clocks of SM and memory, the SM's maximal clock, temperature."""
    if device.type != "cuda":
        return ""
    try:
        library, handle, name = _nvml(device.index or 0)
        driver = ctypes.create_string_buffer(81)
        if library.nvmlSystemGetDriverVersion(driver, 81):
            return ""
        numbers = [
            _number(library.nvmlDeviceGetClockInfo, handle, SM),
            _number(library.nvmlDeviceGetClockInfo, handle, MEMORY),
            _number(library.nvmlDeviceGetMaxClockInfo, handle, SM),
            _number(library.nvmlDeviceGetTemperature, handle, 0),
        ]
    except Exception:  # no such library, no such entry, a device that it does not know
        return ""
    return ", ".join([name, driver.value.decode(errors="replace"), *numbers])


def _number(function: Any, handle: ctypes.c_void_p, kind: int) -> str:
    value = ctypes.c_uint()
    return "[N/A]" if function(handle, kind, ctypes.byref(value)) else str(value.value)
