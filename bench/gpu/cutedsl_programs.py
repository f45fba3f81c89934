# SPDX-License-Identifier: Apache-2.0
"""cutedsl_programs.py - the eight CuTe DSL kernels of tests/simt on a GPU whose machine has no CuTe DSL.

    cutedsl_programs.py run FOLDER OUT.md     on that machine: one row for each kernel, as it is done; 1: one is wrong

FOLDER is what `bench/gpu/cutedsl_programs.sh FOLDER` prepares where the DSL is; it calls

    cutedsl_programs.py export FOLDER         each kernel compiled, exported with the DSL's own launch code; no GPU
    cutedsl_programs.py simt FOLDER           under `cutegen simt exec`: the results of the DSL's own launches
    cutedsl_programs.py run FOLDER OUT.md --ptx    under `cutegen simt exec`: the trial of `run`, with PTX

Inputs and NumPy's results are those of tests/simt/cutedsl/kernels.py, whose tolerance decides what is right. `run`
needs NumPy and libcudart, and a process of its own for each kernel, so that none can spoil the next one.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

TOLERANCE = 1e-3  # of kernels.py: relative and absolute
SECONDS = 35  # for all kernels of `run`


def programs() -> Any:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/simt/cutedsl"))
    import kernels  # needs the DSL

    return kernels


def drawn(kernels: Any) -> Any:
    """Name, result and NumPy's result of each kernel, with the inputs that kernels.py draws."""
    generator = np.random.default_rng(1)
    for kernel in kernels.AMPERE + kernels.HOPPER:
        out, want = kernel(lambda *shape: generator.standard_normal(shape, dtype=np.float32))
        yield kernel.__name__, out, want


# ---- where the DSL is ------------------------------------------------------------------------------------------------


def export(folder: Path) -> None:
    """NAME.h, NAME.o, NAME.ptx, NAME.npz (arguments, NumPy's result), and names.json."""
    import cutlass.cute as cute
    from cutlass.base_dsl.typing import Float16, Float32
    from cutlass.cute.runtime import make_fake_tensor

    kernels, given = programs(), []
    types = {np.dtype(np.float16): Float16, np.dtype(np.float32): Float32}

    def device(array: np.ndarray) -> Any:
        """What from_dlpack() makes of a copy of the array in the memory of a GPU."""
        given.append(array)
        strides = tuple(s // array.itemsize for s in array.strides)
        return make_fake_tensor(types[array.dtype], array.shape, strides, assumed_align=16)

    def compiled(name: str, host: Any, *args: Any) -> None:
        function = cute.compile(host, *args)
        function.export_to_c(str(folder), name)
        (folder / f"{name}.ptx").write_text(function.__ptx__)

    kernels.device = device
    for kernel in kernels.AMPERE + kernels.HOPPER:
        entry = kernel.__name__ + "_host"
        setattr(kernels, entry, functools.partial(compiled, kernel.__name__, getattr(kernels, entry)))
    names = {}
    for name, out, want in drawn(kernels):
        header = (folder / f"{name}.h").read_text()
        members = re.findall(r"^typedef struct \{([^}]*)\} \w+_Tensor_\w+;", header, re.M)
        if len(members) != len(given) or any(m.strip() != "void *data;" for m in members):
            sys.exit(f"{name}.h: {len(given)} arguments that are pointers alone were expected; see its structures")
        result = [i for i, array in enumerate(given) if array is out]
        found = re.search(r"^void (_mlir_\w+)\(void \*\*args, int32_t num_args\);", header, re.M)
        names[name] = {"entry": found[1] if found else "", "out": result[0]}
        np.savez(folder / f"{name}.npz", *given, want=want)
        given.clear()
    (folder / "names.json").write_text(json.dumps(names, indent=1))


def simt(folder: Path) -> None:
    for name, out, want in drawn(programs()):
        if not np.allclose(out, want, rtol=TOLERANCE, atol=TOLERANCE):
            sys.exit(f"{name}: wrong on simt")
        np.save(folder / f"{name}.simt.npy", out)


# ---- where the GPU is ------------------------------------------------------------------------------------------------


def runtime() -> Any:
    """libcudart: simt's under `cutegen simt exec`, else the toolkit's or that of PyTorch's packages."""
    soname, nvcc = "libcudart.so.13", shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    toolkit = [Path(nvcc).resolve().parents[1] / x / soname for x in ("lib64", "lib", "targets/x86_64-linux/lib")]
    packages = [at for path in sys.path for at in Path(path).glob(f"nvidia/*/lib/{soname}")]
    for path in (soname, *toolkit, *packages):
        try:
            return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        except OSError:
            pass
    sys.exit(f"no {soname}; put its folder into LD_LIBRARY_PATH")


class Runtime:
    """libcudart; a call that fails ends the process."""

    def __init__(self) -> None:
        self.lib = runtime()
        self.lib.cudaGetErrorString.restype = ctypes.c_char_p

    def check(self, what: str, status: int) -> None:
        if status:
            sys.exit(f"{what}: {self.lib.cudaGetErrorString(status).decode()} ({status})")

    def __getattr__(self, name: str) -> Any:
        return lambda *args: self.check(name, getattr(self.lib, name)(*args))

    def copy(self, to: int | None, source: int | None, size: int, kind: int) -> None:
        self.cudaMemcpy(ctypes.c_void_p(to), ctypes.c_void_p(source), ctypes.c_size_t(size), kind)


def loaded(lib: Any, cuda: Runtime, name: str) -> ctypes.c_void_p:
    """What NAME_Kernel_Module_Load of the header does, for device 0."""
    module, status, device = ctypes.c_void_p(), ctypes.c_int(-1), ctypes.c_int(0)
    pointer = ctypes.pointer(module)

    def call(function: str, *args: Any) -> None:
        status.value = -1
        getattr(lib, function)((ctypes.c_void_p * len(args))(*map(ctypes.addressof, args)))
        cuda.check(function, status.value)

    call(f"_mlir_{name}_cuda_init", pointer, status)
    call(f"_mlir_{name}_cuda_load_to_device", pointer, device, status)
    return module


def launch(folder: Path, name: str, ptx: bool) -> None:
    """One kernel in this process; its row on stdout."""
    info = json.loads((folder / "names.json").read_text())[name]
    with np.load(folder / f"{name}.npz") as file:
        want = file["want"]
        arrays = [np.ascontiguousarray(file[f"arr_{i}"]) for i in range(len(file.files) - 1)]
    expected = np.load(folder / f"{name}.simt.npy")
    cuda = Runtime()
    lib = ctypes.CDLL(str(folder / "libcutedsl_programs.so"))
    if ptx:
        code = ctypes.create_string_buffer((folder / f"{name}.ptx").read_bytes())
        ctypes.c_void_p.in_dll(lib, "cutegen_code").value = ctypes.addressof(code)
    cuda.cudaSetDevice(0)
    pointers = [ctypes.c_void_p() for _ in arrays]
    for pointer, array in zip(pointers, arrays, strict=True):
        cuda.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(array.nbytes))
        cuda.copy(pointer.value, array.ctypes.data, array.nbytes, 1)
    module = loaded(lib, cuda, name)  # stays
    status = ctypes.c_int(-1)
    args = (ctypes.c_void_p * (len(arrays) + 1))(*map(ctypes.addressof, [*pointers, status]))
    getattr(lib, info["entry"])(args, len(args))
    cuda.check(f"launch with library {module.value:#x}", status.value)
    cuda.cudaDeviceSynchronize()
    out = np.empty_like(arrays[info["out"]])
    cuda.copy(out.ctypes.data, pointers[info["out"]].value, out.nbytes, 2)
    ok = np.allclose(out, want, rtol=TOLERANCE, atol=TOLERANCE)
    print(
        f"| {name} | {'right' if ok else 'WRONG'} | {np.abs(out - want).max():.2g} | {np.abs(out - expected).max():.2g} "
        f"| {np.count_nonzero(out != expected)} of {out.size} |"
    )
    sys.exit(not ok)


def device_name() -> str:
    cuda, name = Runtime(), ctypes.create_string_buffer(4096)  # cudaDeviceProp begins with the name
    getter = "cudaGetDeviceProperties" if hasattr(cuda.lib, "cudaGetDeviceProperties") else "cudaGetDeviceProperties_v2"
    getattr(cuda, getter)(name, 0)
    return name.value.decode()


def run(folder: Path, out: Path, ptx: bool) -> int:
    end, wrong = time.monotonic() + SECONDS, 0
    me = [sys.executable, __file__]
    name = subprocess.run([*me, "name"], capture_output=True, text=True).stdout.strip() or "an unknown GPU"
    name = f"simt as {name}" if ptx else name
    with out.open("w") as table:

        def row(text: str) -> None:
            print(text, flush=True)
            print(text, file=table, flush=True)

        row(f"| CuTe DSL kernel | result on {name} | largest difference from NumPy | from simt | not the same bits |")
        row("|---|---|---|---|---|")
        for kernel in json.loads((folder / "names.json").read_text()):
            command = [*me, "launch", str(folder), kernel, *(["--ptx"] if ptx else [])]
            left = min(10.0, end - time.monotonic())
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=max(left, 0.01))
                lines = [x for x in done.stdout.splitlines() if x.startswith("|")]
                text = (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]
                wrong += done.returncode != 0
            except subprocess.TimeoutExpired:
                lines, text, wrong = [], f"no result after {left:.0f} s", wrong + 1
            row(lines[0] if lines else f"| {kernel} | WRONG: {text} | | | |")
    return wrong > 0


def main() -> int:
    command, ptx = sys.argv[1], "--ptx" in sys.argv
    if command == "name":
        print(device_name())
        return 0
    folder = Path(sys.argv[2]).resolve()
    if command == "launch":
        launch(folder, sys.argv[3], ptx)
    elif command == "run":
        return run(folder, Path(sys.argv[3]), ptx)
    else:
        os.makedirs(folder, exist_ok=True)
        {"export": export, "simt": simt}[command](folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
