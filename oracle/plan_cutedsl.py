# SPDX-License-Identifier: Apache-2.0
"""The CuTe DSL without a GPU: @cute.jit functions are compiled and called, and what they would launch is written down.

The DSL compiles a function to two halves: kernels (PTX, then machine code) and host code that calls a small runtime library for
each launch. Here the host code is linked against functions of this file, which record. The PTX is kept; the machine code is not used.
Tensors of a plan have addresses that belong to no memory: by them arguments and tensor maps are known again. Host code of the
candidate that reads one ends this process, as a plan may.
"""

from __future__ import annotations

import ctypes
import os
import re
import traceback
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import cutlass
import cutlass.cute
from cutlass._mlir.execution_engine import ExecutionEngine
from cutlass.base_dsl import compiler
from cutlass.base_dsl.common import DSLBaseError
from cutlass.cute.runtime import from_dlpack
from cutlass.cutlass_dsl import cuda_jit_executor as executor

from oracle.plan_launch import LaunchConfig, arguments_of, attributes_of
from oracle.plan_objects import Plan, PlanError, Tensor
from oracle.plan_ptx import Joined, parameters

DTYPES = {
    "f64": cutlass.Float64,
    "f32": cutlass.Float32,
    "f16": cutlass.Float16,
    "bf16": cutlass.BFloat16,
    "i64": cutlass.Int64,
    "i32": cutlass.Int32,
    "i16": cutlass.Int16,
    "i8": cutlass.Int8,
    "u8": cutlass.Uint8,
    "bool": cutlass.Boolean,
}
_SMEM_BLOCK, _SM_COUNT, _CC_MAJOR, _CC_MINOR = 97, 16, 75, 76  # cudaDeviceAttr


# ---- tensors of a plan as arguments ----------------------------------------------------------------------------------


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
    ]  # fmt: skip


_DL_CODES = {"f": 2, "i": 0, "u": 1, "b": 6}
_CUDA = (2, 0)  # kDLCUDA, device 0
_kept: list[Any] = []  # memory that compiled functions look at


def _capsule(t: Tensor) -> Any:
    """The tensor as DLPack has it. A scalar has one dimension: layouts have at least one."""
    shape, strides = t.shape or (1,), t.strides or (1,)
    lists = ((ctypes.c_int64 * len(shape))(*shape), (ctypes.c_int64 * len(shape))(*strides))
    code = 4 if t.code == "bf16" else _DL_CODES[t.code[0]]
    made = _DLTensor(t.data_ptr(), _CUDA, len(shape), code, 8 * t.element_size(), 1, *lists)
    _kept.append((made, lists))
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.addressof(made), b"dltensor", None)


class CuteTensor(Tensor):
    """What a tensor of a plan has not itself, the DSL's tensor over the same address has: it is passed as such."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # as the DSL's own do: annotations are checked by it
        return cutlass.cute.Tensor

    def __dlpack__(self, **ignored: Any) -> Any:
        return _capsule(self)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CUDA

    def __getattr__(self, name: str) -> Any:
        if name.startswith("mark_"):  # changes the DSL's tensor, of which parts are kept once it was an argument
            return getattr(from_dlpack(self, assumed_align=self.alignment()), name)
        if "_cute" not in self.__dict__:
            self._cute = from_dlpack(self, assumed_align=self.alignment())
        return getattr(self._cute, name)


TENSOR = CuteTensor


# ---- the runtime that host code calls --------------------------------------------------------------------------------


class _State:
    plan: Plan
    joined: Joined
    fault: BaseException | None = None  # what a call below raised: it cannot pass through compiled code
    loading = ""  # PTX of the function whose kernels are asked for
    kernels: list[tuple[str, str]] = []  # a kernel's handle is its place here, from 1: name, PTX
    names: dict[str, dict[str, str]] = {}  # PTX -> names in it -> names in the module
    functions: dict[str, Any] = {}  # symbol -> C function


def _recorded(*types: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a C function, "_" and its name, that returns 0, or 1 once something went wrong."""

    def wrap(body: Callable[..., None]) -> Callable[..., None]:
        def call(*args: Any) -> int:
            try:
                if _State.fault is None:
                    body(*args)
            except BaseException as err:
                _State.fault = err
            return int(_State.fault is not None)

        _State.functions[body.__name__] = ctypes.CFUNCTYPE(ctypes.c_int32, *types)(call)
        return body

    return wrap


_P, _I, _N = ctypes.c_void_p, ctypes.c_int32, ctypes.c_size_t


def _write(address: int, kind: Any, value: int) -> None:
    kind.from_address(address).value = value


@_recorded(_P, _P, _P, _P, _I, _P, _P, _I)
def _cudaLibraryLoadData(library: int, *ignored: Any) -> None:
    _write(library, ctypes.c_uint64, 1)


@_recorded(_P, _P, ctypes.c_char_p)
def _cudaLibraryGetKernel(kernel: int, library: int, name: bytes) -> None:
    _State.kernels.append((name.decode(), _State.loading))
    _write(kernel, ctypes.c_uint64, len(_State.kernels))


@_recorded(_P)
def _cudaGetDevice(device: int) -> None:
    _write(device, _I, 0)


@_recorded(_P, _I, _I)
def _cudaDeviceGetAttribute(out: int, which: int, device: int) -> None:
    d = _State.plan.device
    known = {_SMEM_BLOCK: d.smem_block_bytes, _SM_COUNT: d.sm_count, _CC_MAJOR: d.arch // 10, _CC_MINOR: d.arch % 10}
    if which not in known:
        raise PlanError(f"host code asks for device attribute {which}, which a plan does not know: p.device has what it knows")
    _write(out, _I, known[which])


@_recorded(_P, _I, _P, _I)
def _cuKernelGetAttribute(out: int, which: int, kernel: int, device: int) -> None:
    _write(out, _I, 0)  # asked for the kernel's own shared memory: the judge knows and checks


@_recorded(_P, _I, _I, _I)
def _cudaKernelSetAttributeForDevice(*ignored: Any) -> None: ...


@_recorded(_P, _I, _I)
def _cudaFuncSetAttribute(*ignored: Any) -> None: ...


@_recorded(_P, _P, _P)
def _cudaLaunchKernelEx(config: int, kernel: int | None, args: int) -> None:
    c = LaunchConfig.from_address(config)
    _launch(kernel, list(c.grid), list(c.block), c.smem, attributes_of(c), args)


@_recorded(_P, _I, _I, _I, _I, _I, _I, _P, _N, _P)
def _cudaLaunchKernel(kernel: int | None, gx: int, gy: int, gz: int, bx: int, by: int, bz: int, args: int, smem: int, stream: Any) -> None:
    _launch(kernel, [gx, gy, gz], [bx, by, bz], smem, {}, args)


@_recorded(_P, _I, _N, _P)
def _cudaMemsetAsync(address: int, value: int, count: int, stream: Any) -> None:
    place = _State.plan.place_of(address or 0)
    if place is None:
        raise PlanError("memset wants a tensor of this plan", line=_State.plan.line())
    _State.plan.add({"op": "memset", **place, "bytes": count, "value": value & 255})


def _launch(kernel: int | None, grid: list[int], block: list[int], smem: int, more: dict[str, Any], args: int) -> None:
    if not kernel or kernel > len(_State.kernels):
        raise PlanError("host code launches what is not a kernel of its function", "launch", _State.plan.line())
    name, ptx = _State.kernels[kernel - 1]
    made = arguments_of(_State.plan, parameters(ptx, name), args)
    if ptx not in _State.names:
        _State.names[ptx] = _State.joined.add_all(ptx, _own_name)
    _State.plan.add(
        {"op": "launch", "kernel": _State.names[ptx][name], "grid": grid, "block": block, "cluster": [1, 1, 1], "smem": smem, **more, "args": made}
    )


def _own_name(name: str) -> str:
    """kernel_cutlass_swish_tensorptrf32gmemalign16..._0 -> swish, as it is called in the file."""
    import sys

    known = [f for f in vars(sys.modules.get("candidate", SimpleNamespace())) if name.startswith(f"kernel_cutlass_{f}_")]
    return max(known, key=len) if known else name[:200]


# ---- the DSL, with this runtime ---------------------------------------------------------------------------------------


def _engine(self: Any, module: Any, opt_level: int = 2, shared_libs: Any = ()) -> Any:
    engine = ExecutionEngine(module, opt_level=opt_level, shared_libs=[])
    for name, function in _State.functions.items():
        engine.raw_register_runtime(name, ctypes.cast(function, _P))
    return engine


def _patch_loader() -> None:
    load = executor.CudaDialectJitCompiledFunction._load_cuda_library

    def loading(self: Any) -> list[Any]:
        _State.loading = (self.__ptx__ or "").rstrip("\0")
        if not _State.loading:
            raise PlanError("the CuTe DSL kept no PTX of this function")
        load(self)
        return []  # what was loaded is nothing that could be unloaded

    executor.CudaDialectJitCompiledFunction._load_cuda_library = loading
    executor.CudaDialectJitCompiledFunction.num_devices = property(lambda self: 1)


def _patch_options() -> None:
    """PTX is kept. Not by CUTE_DSL_KEEP, which would compile a function again for every call."""
    options: Any = compiler.CompileOptions
    apply = options.apply_envar_settings

    def applying(self: Any, envar: Any, function_name: str) -> None:
        self.options[compiler.KeepPTX].value = True
        apply(self, envar, function_name)

    options.apply_envar_settings = applying


def enter(plan: Plan, ptx_version: int, path: str) -> None:
    """From here on launches of the DSL's kernels are the plan's."""
    compiler.Compiler.jit = _engine
    _patch_loader()
    _patch_options()
    _State.plan, _State.joined = plan, Joined(path)


def ptx() -> str:
    return _State.joined.text()


def version() -> str:
    return str(cutlass.__version__)


# ---- its errors --------------------------------------------------------------------------------------------------------


def _plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text).strip()


def _chain(err: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while err is not None and err not in found:
        found.append(err)
        err = err.__cause__ or err.__context__
    return found


def _while_compiling(err: BaseException, path: str) -> bool:
    """The DSL called a function of the candidate's, to compile it."""
    library = os.path.dirname(cutlass.__file__)
    files = [f.filename for f in traceback.extract_tb(err.__traceback__)]
    return any(f.startswith(library) and path in files[i:] for i, f in enumerate(files))


def fault_of(err: BaseException, path: str) -> PlanError | None:
    """An error of the DSL's as one of ours; None: it is not the DSL's."""
    if _State.fault is not None:
        return _State.fault if isinstance(_State.fault, PlanError) else PlanError(f"a launch could not be recorded: {_State.fault!r}", "launch")
    for one in _chain(err):
        if isinstance(one, PlanError):
            return one
    text = _plain(str(err)).replace(path, os.path.basename(path))
    missing = re.search(r"Symbols not found: \[ ([^\]]*) \]", text)
    if missing:
        return PlanError(f"host code calls {missing[1].replace('_cu', 'cu')}, which a plan cannot: it launches kernels and clears tensors")
    if not isinstance(err, DSLBaseError):
        return PlanError(f"{type(err).__name__}: {text[:1500]}", "compile") if _while_compiling(err, path) else None
    at = re.findall(re.escape(os.path.basename(path)) + r":(\d+)", text)
    return PlanError(f"the CuTe DSL: {text[:1500]}", "compile", int(at[0]) if at else 0)
