# SPDX-License-Identifier: Apache-2.0
"""The device that a request names, and its available memory."""

from __future__ import annotations

import contextlib

import torch

from .fault import is_out_of_memory, unopened, use


def named_device(name: str) -> torch.device:
    if name == "cpu":
        return torch.device("cpu")
    if not name.startswith("cuda"):
        raise use(f"no device {name!r}", "cpu or cuda:0")
    if not torch.cuda.is_available():
        raise unopened("this PyTorch sees no CUDA device", "use --device simt, or a Python whose torch has CUDA")
    index = int(name.split(":")[1]) if ":" in name else 0
    if index >= torch.cuda.device_count():
        raise use(f"there is no {name}: {torch.cuda.device_count()} CUDA devices", "cuda:0 is the first")
    return torch.device("cuda", index)


def open_device(name: str) -> None:
    """Starts the device's context and a first kernel."""
    device = named_device(name)
    if device.type != "cuda":
        return
    try:
        torch.rand(1 << 10, device=device).double().sum().item()
    except RuntimeError as err:
        if is_out_of_memory(err):
            raise
        raise unopened(f"{name} does not open: {str(err).splitlines()[0]}", "see cutegen doctor") from err


def memory_now(device: torch.device) -> tuple[int, int]:
    """(free, in all) bytes of the device; a host's total is what is free."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
        return torch.cuda.mem_get_info(device)
    free = free_bytes(device)
    return free, free


def free_bytes(device: torch.device) -> int:
    """Memory that is available now."""
    if device.type == "cuda":
        return memory_now(device)[0]
    with contextlib.suppress(OSError, ValueError), open("/proc/meminfo", encoding="ascii") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    return 1 << 62
