# SPDX-License-Identifier: Apache-2.0
"""Triton without a GPU: kernel[grid](...) is compiled to PTX and written down as a launch.

Triton's own code binds arguments, specializes and compiles; only its driver is another one. It compiles no launcher, starts no
ptxas (the judge does that itself, from the PTX) and records what would have been launched.
"""

from __future__ import annotations

import re
import struct
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia import compiler as nvidia
from triton.compiler.errors import CompilationError
from triton.runtime import driver
from triton.runtime.errors import OutOfResources

from oracle.plan_objects import Plan, PlanError, Tensor
from oracle.plan_ptx import Joined, parameter_count

DTYPES = {
    "f64": tl.float64,
    "f32": tl.float32,
    "f16": tl.float16,
    "bf16": tl.bfloat16,
    "i64": tl.int64,
    "i32": tl.int32,
    "i16": tl.int16,
    "i8": tl.int8,
    "u8": tl.uint8,
    "bool": tl.int1,
}
TENSOR = Tensor
_FORMATS = {
    "i1": "<b", "u1": "<B", "i8": "<b", "u8": "<B", "i16": "<h", "u16": "<H", "i32": "<i", "u32": "<I", "i64": "<q", "u64": "<Q",
    "fp16": "<e", "fp32": "<f", "f32": "<f", "fp64": "<d",
}  # fmt: skip


def _flat(value: Any) -> list[Any]:
    return [x for v in value for x in _flat(v)] if isinstance(value, tuple) else [value]


def _bytes_of(value: Any, kind: str, name: str) -> dict[str, str]:
    if kind == "bf16":
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
        data = struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)
    elif kind in _FORMATS:
        data = struct.pack(_FORMATS[kind], value)
    else:
        raise PlanError(f"argument {name} is of type {kind}: tensors of the plan, numbers and tuples of them can be passed", "launch")
    return {"bytes": data.hex(), "type": "float" if kind in ("fp16", "bf16", "fp32", "f32", "fp64") else "int"}


class _Launcher:
    """What Triton calls in place of a launch."""

    plan: Plan
    joined: Joined
    names: dict[str, str] = {}  # PTX -> the kernel's name in the module

    def __init__(self, src: Any, metadata: Any) -> None:
        self.signature, self.metadata = src.signature, metadata

    def _argument(self, name: str, kind: str, value: Any) -> dict[str, Any]:
        if not kind.startswith("*"):
            return _bytes_of(value, kind, name)
        if not isinstance(value, Tensor):
            raise PlanError(f"argument {name} is not a tensor of this plan: pass p.inputs, p.outputs or p.workspace(...)", "launch", self.plan.line())
        return {"buffer": value.buffer, "offset": value.offset}

    def _arguments(self, ptx: str, blocks: int, values: tuple[Any, ...]) -> list[dict[str, Any]]:
        args = []
        for (name, kinds), value in zip(self.signature.items(), values):
            for kind, one in zip(_flat(kinds), _flat(value)):
                if kind != "constexpr":
                    args.append(self._argument(name, kind, one))
        scratch = [getattr(self.metadata, f"{what}_scratch_size", 0) or 0 for what in ("global", "profile")]
        for size in scratch[: parameter_count(ptx) - len(args)]:
            args.append(self.plan.scratch(size * blocks) if size else {"bytes": "00" * 8, "type": "int"})
        return args

    def __call__(self, x: int, y: int, z: int, stream: Any, function: Any, *rest: Any) -> None:
        ptx: str = function
        m = self.metadata
        if getattr(m, "launch_cooperative_grid", False):
            raise PlanError("a cooperative grid cannot be judged", "launch", self.plan.line())
        cluster = list(getattr(m, "cluster_dims", None) or (getattr(m, "num_ctas", 1), 1, 1))  # newer ones say only how many
        grid = [int(x) * cluster[0], int(y) * cluster[1], int(z) * cluster[2]]
        args = self._arguments(ptx, grid[0] * grid[1] * grid[2], rest[-len(self.signature) :])
        if ptx not in self.names:
            self.names[ptx] = self.joined.add(ptx)
        self.plan.add(
            {"op": "launch", "kernel": self.names[ptx], "grid": grid, "block": [32 * m.num_warps, 1, 1], "cluster": cluster, "smem": m.shared,
             "overlap": bool(getattr(m, "launch_pdl", False)), "args": args}
        )  # fmt: skip


class _Utils:
    """Of the device: what Triton asks before it loads a kernel."""

    def __init__(self, smem: int) -> None:
        self.smem = smem

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {"max_shared_mem": self.smem, "multiprocessor_count": 0, "warpSize": 32, "max_num_regs": 65536}

    def unload_module(self, module: int) -> None:
        pass

    def load_binary(self, name: str, kernel: Any, shared: int, device: int) -> tuple[Any, ...]:
        return 0, kernel.decode() if isinstance(kernel, bytes) else kernel, 0, 0, 1024


class _Driver:
    launcher_cls = _Launcher

    def __init__(self, arch: int, smem: int) -> None:
        self.arch, self.utils = arch, _Utils(smem)

    def get_current_target(self) -> Any:
        return GPUTarget("cuda", self.arch, 32)

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        pass

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_benchmarker(self) -> Any:
        raise PlanError("an autotuned kernel with several configs: a plan has no GPU to time them on; give the one to be judged", "plan")

    def get_active_torch_device(self) -> Any:
        raise PlanError("a plan has no device: p.inputs, p.outputs and p.workspace() are its tensors", "plan")


def enter(plan: Plan, ptx_version: int, path: str) -> None:
    """From here on launches of Triton's kernels are the plan's."""
    original = nvidia.CUDABackend.parse_options

    def parse_options(self: Any, opts: dict[str, Any]) -> Any:
        return original(self, {**opts, "ptx_version": ptx_version})

    nvidia.CUDABackend.parse_options = parse_options
    nvidia.CUDABackend.make_cubin = lambda self, src, *rest: src.encode()
    nvidia.get_ptxas_version = lambda *rest: str(ptx_version)
    _Launcher.plan, _Launcher.joined, _Launcher.names = plan, Joined(path), {}
    driver.set_active(_Driver(plan.device.arch, plan.device.smem_block_bytes))


def ptx() -> str:
    return _Launcher.joined.text()


def version() -> str:
    return str(triton.__version__)


def _file_line(err: CompilationError, path: str) -> int:
    """The error's line counts from the function's first; 0: the function is not of this file."""
    from triton.runtime.jit import JITFunction

    with open(path, encoding="utf-8", errors="replace") as f:
        text = f.read()
    at = text.find((err.src or "\0").split("\n", 1)[0])
    for fn in (f for f in _known_functions() if isinstance(f, JITFunction) and f.src == err.src):
        if fn.fn.__code__.co_filename != path:
            return 0
        start = getattr(fn, "starting_line_number", 0)
        skipped = next((i for i, line in enumerate(getattr(fn, "raw_src", [])) if line.lstrip().startswith("def ")), 0)
        return int(start + skipped + err.node.lineno - 1)
    return text.count("\n", 0, at) + err.node.lineno if at >= 0 else 0


def _known_functions() -> list[Any]:
    import sys

    return [v for m in list(sys.modules.values()) for v in list(vars(m).values()) if type(v).__name__ == "JITFunction"]


def fault_of(err: BaseException, path: str) -> PlanError | None:
    """An error of Triton's as one of ours; None: it is not Triton's."""
    chain: list[Any] = [err]
    while isinstance(chain[-1].__cause__, CompilationError):
        chain.append(chain[-1].__cause__)
    inner = chain[-1]
    if isinstance(inner, CompilationError):
        lines = [_file_line(e, path) for e in chain if isinstance(e, CompilationError) and hasattr(e.node, "lineno")]
        line = next((n for n in reversed(lines) if n), 0)  # the innermost that is the candidate's: others are of Triton's library
        why = inner.error_message or (str(inner.__cause__) if inner.__cause__ else str(inner))
        return PlanError(f"Triton: {why.strip()[:1500]}", "compile", line)
    if isinstance(err, OutOfResources):
        return PlanError(f"the kernel does not fit: {err}", "launch")
    if isinstance(err, RuntimeError) and re.search(r"during parsing|PassManager::run failed|during compilation", str(err)):
        return PlanError(f"Triton: {err}: types or shapes of an operation do not fit, as of tl.dot and its accumulator", "compile")
    return None
