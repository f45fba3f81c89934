# SPDX-License-Identifier: Apache-2.0
"""The operator in C: torch calls cutegen's small library (loader-MACHINE.so), which queues all launches in one call. The
same file in every export.

The library links with neither torch nor CUDA. Their functions are looked up here and handed over: torch's stable C
functions, so that one binary serves every torch that has them. If something is missing, Unavailable names it, and loader.py does the same
in Python. The launch list stays data; the library checks each word of it.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import types
from typing import Any, Callable

import torch

VERSION = 1
_TORCH = (  # as struct torch_calls of src/loader/loader.h
    "aoti_torch_get_sizes",
    "aoti_torch_get_strides",
    "aoti_torch_get_dim",
    "aoti_torch_get_dtype",
    "aoti_torch_get_device_type",
    "aoti_torch_get_device_index",
    "aoti_torch_get_data_ptr",
    "aoti_torch_empty_strided",
    "aoti_torch_copy_",
    "aoti_torch_delete_tensor_object",
    "aoti_torch_get_current_cuda_stream",
    "aoti_torch_library_init_impl",
    "aoti_torch_library_impl",
    "aoti_torch_check",
)
_DRIVER = ("current", "push", "pop", "memset", "encode", "launch")  # struct driver_calls; launcher.py's names
_DTYPES = {
    "f64": ("float64", 8), "f32": ("float32", 4), "f16": ("float16", 2), "bf16": ("bfloat16", 2), "i64": ("int64", 8),
    "i32": ("int32", 4), "i16": ("int16", 2), "i8": ("int8", 1), "u8": ("uint8", 1), "bool": ("bool", 1),
}  # fmt: skip
_ASK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_int64), ctypes.c_int64)


class Unavailable(Exception):
    """Why the kernel is launched from Python."""


def file_name() -> str:
    return f"loader-{platform.machine()}.so"


def address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def table(functions: list[int]) -> Any:
    return (ctypes.c_void_p * len(functions))(*functions)


def open_library(path: str) -> Any:
    try:
        library = ctypes.CDLL(path)
        found = library.loader_version()
    except (OSError, AttributeError) as err:
        raise Unavailable(f"{os.path.basename(path)} cannot be loaded here: {err}") from err
    if found != VERSION:
        raise Unavailable(f"{os.path.basename(path)} has version {found}, {VERSION} is wanted")
    library.loader_said.restype = ctypes.c_char_p
    library.loader_operator.argtypes = [_ASK, ctypes.c_int32, ctypes.c_int32, ctypes.c_int64]
    size, pointer = ctypes.c_size_t, ctypes.c_void_p
    library.loader_case.argtypes = [ctypes.c_int32, pointer, size, ctypes.c_char_p, size, pointer, size]
    library.loader_ready.argtypes = [ctypes.c_int32] * 3 + [pointer] * 3 + [size, pointer, size]
    library.loader_launch.argtypes = [ctypes.c_int32] * 3 + [pointer, pointer, size, ctypes.c_uint64]
    library.loader_torch.argtypes = [pointer, size, ctypes.c_int32, ctypes.c_int32]
    library.loader_driver.argtypes = [pointer, size]
    library.loader_register.argtypes = [ctypes.c_int32] + [ctypes.c_char_p] * 3
    return library


class Shim:
    """torch's stable C functions."""

    def __init__(self) -> None:
        folder = os.path.join(os.path.dirname(torch.__file__), "lib")
        self.libraries = []
        for name in ("libtorch_cpu.so", "libtorch_cuda.so"):
            try:
                self.libraries.append(ctypes.CDLL(os.path.join(folder, name)))
            except OSError as err:
                raise Unavailable(f"this PyTorch ({torch.__version__}) has no {name}: {err}") from err
        self.functions = [address(self.find(name)) for name in _TORCH]

    def find(self, name: str) -> Any:
        for library in self.libraries:
            found = getattr(library, name, None)
            if found is not None:
                return found
        raise Unavailable(f"this PyTorch ({torch.__version__}) has no {name}")

    def dtype(self, name: str) -> int:
        return self.find(f"aoti_torch_dtype_{_DTYPES[name][0]}")()

    def cuda(self) -> int:
        return self.find("aoti_torch_device_type_cuda")()


# ---- a case as words (src/loader/table.c) ------------------------------------------------------------------


def _numbered(case: dict[str, Any]) -> Callable[[str], int]:
    starts = {"in": 0, "out": len(case["inputs"]), "ws": len(case["inputs"]) + len(case["outputs"])}
    return lambda name: starts[name.rstrip("0123456789")] + int(name.lstrip("inoutws"))


def _tensor_words(t: dict[str, Any], dtypes: dict[str, int]) -> list[int]:
    return [dtypes[t["dtype"]], _DTYPES[t["dtype"]][1], len(t["shape"]), *t["shape"], *t["strides"]]


def _map_words(m: dict[str, Any], number: int, codes: Any) -> list[int]:
    if len(m["strides_bytes"]) != len(m["dims"]) - 1:
        raise Unavailable("a tensor map of launches.json has a wrong number of strides")
    kind = codes._MAP_DTYPES.index(codes._MAP_ALIASES.get(m["dtype"], m["dtype"]))
    ways = codes._MAP_SWIZZLES.index(m["swizzle"]), codes._MAP_L2.index(m["l2"]), int(m["fill"] == "nan")
    lists = *m["dims"], *m["strides_bytes"], *m["box"], *m["element_strides"]
    return [number, m["offset"], kind, len(m["dims"]), *lists, *ways]


def _argument_words(arg: dict[str, Any], number: Callable[[str], int], blob: bytearray) -> list[int]:
    if "bytes" in arg:
        data = bytes.fromhex(arg["bytes"])
        blob += data
        return [1, len(blob) - len(data), len(data)]
    if "map" in arg:
        return [2, arg["map"]]
    return [0, number(arg["buffer"]), arg["offset"]]


def case_words(case: dict[str, Any], dtypes: dict[str, int], codes: Any) -> tuple[list[int], bytes, list[str]]:
    """The case as words, the bytes of its arguments, and its kernels in the order of their numbers. `codes`: launcher.py."""
    number, blob = _numbered(case), bytearray()
    kernels = sorted({op["kernel"] for op in case["ops"] if op["op"] == "launch"})
    words = [len(case["inputs"]), len(case["outputs"])]
    for t in case["inputs"] + case["outputs"]:
        words += _tensor_words(t, dtypes)
    words += [len(case["workspace"]), *(w["bytes"] for w in case["workspace"]), len(case["maps"])]
    for m in case["maps"]:
        words += _map_words(m, number(m["buffer"]), codes)
    words += [len(kernels), len(case["ops"])]
    for op in case["ops"]:
        if op["op"] != "launch":
            words += [0, number(op["buffer"]), op["offset"], op["value"], op["bytes"]]
            continue
        words += [1, kernels.index(op["kernel"]), *op["grid"], *op["block"], *op["cluster"], op["smem"], int(bool(op.get("overlap"))), len(op["args"])]
        for arg in op["args"]:
            words += _argument_words(arg, number, blob)
    return words, bytes(blob), kernels


# ---- one export ----------------------------------------------------------------------------------------------


class Native:
    """An export's operator in the library. `asked(number, device)` loads a case on a device and calls ready();
    `refused(tensors)` raises what is wrong with them."""

    def __init__(self, library: Any, shim: Any, codes: Any, table_: dict[str, Any], asked: Any, refused: Any) -> None:
        self.library, self.shim, self.codes, self.asked, self.refused = library, shim, codes, asked, refused
        self.keep: list[Any] = []  # memory that the library reads
        self.dtypes = {name: shim.dtype(name) for name in _DTYPES}
        self.callback = _ASK(self._answer)
        library.loader_torch(table(shim.functions), len(shim.functions), shim.cuda(), self.dtypes["u8"])
        first = table_["cases"][0]
        self.slot = library.loader_operator(self.callback, len(first["inputs"]), len(first["outputs"]), table_["alignment"])
        self._must(self.slot)
        self.kernels: list[list[str]] = []
        self.room: list[int] = []
        self.workspaces: list[int] = []  # bytes of all of a case's, as table.c lays them
        for case in table_["cases"]:
            self._add(case)

    def _must(self, result: int) -> None:
        if result < 0:
            raise Unavailable((self.library.loader_said() or b"").decode(errors="replace"))

    def _memory(self, count: int) -> Any:
        self.keep.append(ctypes.create_string_buffer(count))
        return self.keep[-1]

    def _add(self, case: dict[str, Any]) -> None:
        words, blob, kernels = case_words(case, self.dtypes, self.codes)
        room = 65536 + 256 * len(words) + 2 * len(blob)  # more than table.c and launch.c take for as many words
        memory, data = self._memory(room), (ctypes.c_int64 * len(words))(*words)
        self._must(self.library.loader_case(self.slot, data, len(words), blob, len(blob), memory, room))
        self.kernels.append(kernels)
        self.room.append(room)
        align = self.codes.WORKSPACE_ALIGN
        self.workspaces.append(sum(-(-max(w["bytes"], 1) // align) * align for w in case["workspace"]))

    def register(self, space: str, name: str, key: str = "CUDA") -> None:
        self._must(self.library.loader_register(self.slot, space.encode(), name.encode(), key.encode()))

    def ready(self, number: int, device: int, driver: Any, context: int, functions: dict[str, tuple[int, bool]]) -> None:
        """A case's kernels are loaded: name to handle, and whether a cluster must be named."""
        calls = [address(getattr(driver, name)) for name in _DRIVER]
        self.library.loader_driver(table(calls), len(calls))
        mine = [functions[kernel] for kernel in self.kernels[number]]
        handles = (ctypes.c_uint64 * max(1, len(mine)))(*(handle for handle, _ in mine))
        musts = (ctypes.c_int32 * max(1, len(mine)))(*(int(must) for _, must in mine))
        room = self.room[number]
        result = self.library.loader_ready(self.slot, number, device, context, handles, musts, len(mine), self._memory(room), room)
        if result:
            raise RuntimeError((self.library.loader_said() or b"").decode(errors="replace"))

    def launching(self, number: int, device: int) -> Any:
        """What launcher.py's Launcher is: for an operator that torch calls in Python, because its tensors are a list."""
        return types.SimpleNamespace(workspace_bytes=self.workspaces[number], launch=functools.partial(self.launch, number, device))

    def launch(self, number: int, device: int, stream: int, pointers: list[int], workspace: int) -> None:
        addresses = (ctypes.c_uint64 * len(pointers))(*pointers)
        if self.library.loader_launch(self.slot, number, device, stream, addresses, len(pointers), workspace):
            raise RuntimeError((self.library.loader_said() or b"").decode(errors="replace"))

    def _answer(self, slot: int, number: int, device: int, words: Any, count: int) -> int:
        """The library asks, in the middle of a call: load this case, or say what is wrong with these tensors."""
        try:
            if number >= 0:
                self.asked(number, device)
            else:
                self.refused(self._described(words, count))
            return 0
        except Exception as err:  # must not leave a callback
            self.library.loader_say(str(err).encode())
            return 1

    def _described(self, words: Any, count: int) -> list[Any]:
        """Stand-ins for tensors, with the attributes that a refusal uses."""
        names = {code: getattr(torch, _DTYPES[name][0]) for name, code in self.dtypes.items()}
        made, at = [], 0
        while at < count:
            dtype, device, rank = words[at], words[at + 1], words[at + 2]
            shape = tuple(words[at + 3 + d] for d in range(rank))
            place = torch.device("cuda", device) if device >= 0 else torch.device("cpu")
            kind = names.get(dtype, f"dtype {dtype}")
            made.append(types.SimpleNamespace(dtype=kind, shape=shape, layout=torch.strided, device=place, dim=lambda rank=rank: rank))
            at += 3 + rank
        return made
