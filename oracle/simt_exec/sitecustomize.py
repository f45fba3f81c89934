# SPDX-License-Identifier: Apache-2.0
"""sitecustomize.py - Triton and the CuTe DSL on simt: what their launchers and compilers need, for `cutegen simt exec`.

Python loads it at its start, from the front of PYTHONPATH. When Triton is imported, three things are changed:
kernels stay PTX (no ptxas), the device is simt whatever torch says of CUDA, and CPU tensors are device memory for the
time of a launch. When the CuTe DSL is imported, likewise: kernels stay PTX, the runtime inside of its library is
replaced by simt's, and what from_dlpack() was given is device memory as long as the result lives. torch itself has no
CUDA device. Nothing is imported before the program does.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import importlib.abc
import importlib.machinery
import importlib.util
import os
import shutil
import sys
import tempfile
import time
import weakref
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
    if hasattr(tensor, "ctypes"):  # numpy
        return tensor.ctypes.data, tensor.nbytes
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


# ---- the CuTe DSL ----------------------------------------------------------------------------------------------------


def patch_cute(m: ModuleType) -> None:
    """The library that launches kernels gets simt's runtime."""
    dsl: Any = m.CutlassBaseDSL
    libraries = dsl.get_shared_libs
    hooked: set[str] = set()

    def hook(self: Any) -> list[str]:
        paths: list[str] = libraries(self)
        for path in paths:
            if path not in hooked and cuda().cutegen_hook_library(os.fsencode(path)) == 0:
                raise RuntimeError(f"{path} does not export the CUDA runtime as this version of cutegen knows it")
            hooked.add(path)
        return paths

    dsl.get_shared_libs = hook
    keep = os.environ.get("CUTE_DSL_KEEP", "")
    os.environ["CUTE_DSL_KEEP"] = keep + "," * bool(keep) + "ptx"
    if "CUTE_DSL_DUMP_DIR" not in os.environ:
        os.environ["CUTE_DSL_DUMP_DIR"] = tempfile.mkdtemp(prefix="cute-dsl-")
        atexit.register(shutil.rmtree, os.environ["CUTE_DSL_DUMP_DIR"], ignore_errors=True)


class CuteRuntime:
    """cuda.bindings.runtime, which holds a runtime of NVIDIA's own: the calls that the DSL's loader makes are simt's."""

    def __init__(self, bindings: Any) -> None:
        self.bindings = bindings

    def __getattr__(self, name: str) -> Any:
        return getattr(self.bindings, name)

    def cudaGetDeviceCount(self) -> tuple[Any, int]:
        return self.bindings.cudaError_t(0), 1

    def cudaLibraryUnload(self, library: Any) -> tuple[Any]:
        return (self.bindings.cudaError_t(cuda().cudaLibraryUnload(ctypes.c_void_p(int(library)))),)


def patch_cute_loader(m: ModuleType) -> None:
    """A compiled function holds its PTX (CUTE_DSL_KEEP): simt loads that, not the machine code."""
    module: Any = m
    module.cuda_runtime = CuteRuntime(module.cuda_runtime)
    function: Any = m.CudaDialectJitCompiledFunction
    load = function._load_cuda_library

    def load_ptx(self: Any) -> Any:
        ptx = self.__ptx__
        if not ptx:
            raise RuntimeError("the CuTe DSL kept no PTX of this function, which simt needs (CUTE_DSL_KEEP=ptx)")
        lib, text = cuda(), ptx.encode().rstrip(b"\0")  # text lives until the load is over
        lib.cutegen_offer_ptx(text)
        try:
            return load(self)
        finally:
            lib.cutegen_offer_ptx(None)

    function._load_cuda_library = load_ptx


def forget(at: int) -> None:
    cuda().cuMemHostUnregister(ctypes.c_void_p(at))


class OnDevice:
    """An array of the host whose capsule says that it is in the memory of CUDA device 0, as simt sees it."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getattr__(self, name: str) -> Any:
        return getattr(self.array, name)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0  # kDLCUDA

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        capsule = self.array.__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        # DLTensor: data, then the device's type and number
        ctypes.c_int32.from_address(pointer(capsule, b"dltensor") + ctypes.sizeof(ctypes.c_void_p)).value = 2
        return capsule


def patch_cute_tensors(m: ModuleType) -> None:
    from_dlpack = m.from_dlpack

    def registering(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        out = from_dlpack(OnDevice(tensor), *args, **kwargs)
        at, size = extent(tensor)
        if size and cuda().cuMemHostRegister_v2(ctypes.c_void_p(at), ctypes.c_size_t(size), 0) == 0:
            weakref.finalize(out, forget, at)
        return out

    module: Any = m
    module.from_dlpack = registering


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
    "cutlass.cute.runtime": patch_cute_tensors,
    "cutlass.cutlass_dsl.cuda_jit_executor": patch_cute_loader,
    "cutlass.cutlass_dsl.cutlass": patch_cute,
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
    # Nor is what the CuTe DSL compiles; findings need its lines.
    os.environ["CUTE_DSL_DISABLE_FILE_CACHING"] = "1"
    os.environ.setdefault("CUTE_DSL_LINEINFO", "1")
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
