# SPDX-License-Identifier: Apache-2.0
"""sitecustomize.py - Triton on simt: what its launcher and compiler need, for `cutegen simt exec`.

Python loads it at its start, from the front of PYTHONPATH. When Triton is imported, three things are changed:
kernels stay PTX (no ptxas), the device is simt whatever torch says of CUDA, and CPU tensors are device memory for the
time of a launch. torch itself has no CUDA device. Nothing is imported before the program does.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

MAJOR, MINOR = 75, 76  # CUdevice_attribute


def cuda() -> Any:
    return ctypes.CDLL("libcuda.so.1")


def attribute(number: int) -> int:
    out = ctypes.c_int()
    cuda().cuDeviceGetAttribute(ctypes.byref(out), number, 0)
    return out.value


# ---- tensors of the host as memory of the device --------------------------------------------------------------------


def tensors(values: Sequence[Any]) -> Iterator[Any]:
    """Whatever has an address among a launch's arguments, in tuples and descriptors too."""
    for v in values:
        if isinstance(v, (tuple, list)):
            yield from tensors(v)
        elif hasattr(v, "data_ptr"):
            yield v
        elif hasattr(v, "base") and hasattr(v.base, "data_ptr"):
            yield v.base


def extent(tensor: Any) -> tuple[int, int]:
    """Address and bytes of the memory that a tensor is a view of."""
    if hasattr(tensor, "untyped_storage"):
        storage = tensor.untyped_storage()
        return storage.data_ptr(), storage.nbytes()
    return tensor.data_ptr(), getattr(tensor, "nbytes", 0)


@contextlib.contextmanager
def registered(values: Sequence[Any]) -> Iterator[None]:
    lib, mine = cuda(), []
    for t in tensors(values):
        at, size = extent(t)
        if size and lib.cuMemHostRegister_v2(ctypes.c_void_p(at), ctypes.c_size_t(size), 0) == 0:
            mine.append(at)
    try:
        yield
    finally:
        for at in mine:
            lib.cuMemHostUnregister(ctypes.c_void_p(at))


# ---- Triton ----------------------------------------------------------------------------------------------------------


class Event:
    """Time of the host, which says nothing of a GPU."""

    def __init__(self, enable_timing: bool = False) -> None:
        self.at = 0.0

    def record(self, stream: Any = None) -> None:
        self.at = time.perf_counter()

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, other: Event) -> float:
        return (other.at - self.at) * 1e3


def patch_driver(m: ModuleType) -> None:
    launcher: Any = m.CudaLauncher

    class SimtLauncher(launcher):  # type: ignore[misc]
        def __call__(self, *args: Any) -> Any:
            with registered(args):
                return super().__call__(*args)

    def init(self: Any) -> None:
        self.utils = m.CudaUtils()
        self.launcher_cls = SimtLauncher
        self.get_device_capability = lambda device=0: (attribute(MAJOR), attribute(MINOR))
        self.get_current_device = lambda: 0
        self.set_current_device = lambda device: None
        self.get_current_stream = lambda device=0: 0

    def torch_device(self: Any) -> Any:
        import torch  # the program's own

        return torch.device("cpu")

    driver: Any = m.CudaDriver
    driver.__init__ = init
    driver.is_active = staticmethod(lambda: True)
    driver.get_active_torch_device = torch_device
    driver.get_device_interface = lambda self: SimpleNamespace(
        Event=Event, synchronize=lambda *a: None, current_device=lambda: 0
    )
    driver.get_empty_cache_for_benchmark = lambda self: SimpleNamespace(zero_=lambda: None)


def patch_compiler(m: ModuleType) -> None:
    backend: Any = m.CUDABackend
    backend.make_cubin = lambda self, src, metadata, opt, capability: src.encode() + b"\0"
    backend.hash = lambda self: f"simt-{self.target.arch}"


# ---- torch: its CUDA runtime is not replaced, so it has no CUDA device ------------------------------------------------


def patch_torch(m: ModuleType) -> None:
    def no_device() -> None:
        raise RuntimeError(
            "torch has no CUDA device under `cutegen simt exec`: make tensors on the CPU (DEVICE = 'cpu'); "
            "kernels take them as they are"
        )

    torch_cuda: Any = m
    torch_cuda.is_available = lambda: False
    torch_cuda.device_count = lambda: 0
    torch_cuda._lazy_init = no_device


# ---- at import -------------------------------------------------------------------------------------------------------

PATCHES: dict[str, Callable[[ModuleType], None]] = {
    "torch.cuda": patch_torch,
    "triton.backends.nvidia.driver": patch_driver,
    "triton.backends.nvidia.compiler": patch_compiler,
}


class Patched(importlib.abc.Loader):
    def __init__(self, loader: Any, patch: Callable[[ModuleType], None]) -> None:
        self.loader, self.patch = loader, patch

    def create_module(self, spec: Any) -> Any:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self.loader.exec_module(module)
        self.patch(module)


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        patch = PATCHES.get(name)
        spec = importlib.machinery.PathFinder.find_spec(name, path) if patch else None
        if spec and spec.loader and patch:
            spec.loader = Patched(spec.loader, patch)
        return spec


def begin() -> None:
    folder = os.environ.get("CUTEGEN_SIMT_LIBRARIES")
    if not folder:
        return
    os.environ["TRITON_LIBCUDA_PATH"] = folder
    # What Triton compiles here is not for a real GPU.
    cache = os.environ.get("CUTEGEN_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "cutegen"
    )
    os.environ["TRITON_CACHE_DIR"] = os.path.join(cache, "triton")
    sys.meta_path.insert(0, Finder())


def give_way() -> None:
    """The program's own sitecustomize, which this one hides."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if os.path.abspath(p) != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize")
    if spec and spec.loader:
        sys.modules["sitecustomize"] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)



begin()
give_way()
