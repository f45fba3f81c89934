# SPDX-License-Identifier: Apache-2.0
"""Queues the launch lists of an exported kernel through the CUDA driver. The same file in every export.

1. Everything but addresses is laid out once per device; a call fills in addresses and queues.
2. The caller's context is current again afterwards, and a capture that is under way goes on.
3. A launch list is data from a file: each number is checked before it is used, as the library in C does it.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import types
from typing import Any

WORKSPACE_ALIGN = 256

_POINTER, _INT = ctypes.c_void_p, ctypes.c_int
_CALLS = {  # name: the driver's symbol, its arguments; all return a CUresult
    "init": ("cuInit", [ctypes.c_uint]),
    "device": ("cuDeviceGet", [_POINTER, _INT]),
    "retain": ("cuDevicePrimaryCtxRetain", [_POINTER, _INT]),
    "current": ("cuCtxGetCurrent", [_POINTER]),
    "push": ("cuCtxPushCurrent_v2", [_POINTER]),
    "pop": ("cuCtxPopCurrent_v2", [_POINTER]),
    "capture_mode": ("cuThreadExchangeStreamCaptureMode", [_POINTER]),
    "load": ("cuModuleLoadData", [_POINTER, _POINTER]),
    "function": ("cuModuleGetFunction", [_POINTER, _POINTER, ctypes.c_char_p]),
    "attribute": ("cuFuncGetAttribute", [_POINTER, _INT, _POINTER]),
    "set_attribute": ("cuFuncSetAttribute", [_POINTER, _INT, _INT]),
    "memset": ("cuMemsetD8Async", [ctypes.c_uint64, ctypes.c_ubyte, ctypes.c_size_t, _POINTER]),
    "encode": ("cuTensorMapEncodeTiled", [_POINTER, _INT, ctypes.c_uint32] + [_POINTER] * 5 + [_INT] * 4),
    "launch": ("cuLaunchKernelEx", [_POINTER] * 4),
    "error_name": ("cuGetErrorName", [_INT, _POINTER]),
    "error_text": ("cuGetErrorString", [_INT, _POINTER]),
}
_RELAXED = 2  # CUstreamCaptureMode: loading a module must not break a capture that is under way
_DYNAMIC_SMEM, _CLUSTER_MUST_BE_SET, _NON_PORTABLE_CLUSTER = 8, 10, 14  # CUfunction_attribute
_CLUSTER, _SERIALIZATION = 4, 6  # CUlaunchAttributeID
_MAP_DTYPES = ["u8", "u16", "u32", "i32", "u64", "i64", "f16", "f32", "f64", "bf16"]  # CUtensorMapDataType
_MAP_ALIASES = {"i8": "u8", "bool": "u8", "i16": "u16"}
_MAP_SWIZZLES, _MAP_L2 = ["none", "32", "64", "128"], ["none", "64", "128", "256"]
_MAP_BYTES, _MAP_ALIGN = 128, 64


def open_driver() -> Any:
    """The driver's calls by our names."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError as err:
        raise RuntimeError(f"this kernel needs the NVIDIA driver: {err}") from err
    driver = types.SimpleNamespace()
    for name, (symbol, arguments) in _CALLS.items():
        call = getattr(library, symbol, None)
        if call is None:
            raise RuntimeError(f"the NVIDIA driver has no {symbol}: a driver for CUDA 12 or later is needed")
        call.argtypes, call.restype = arguments, _INT
        setattr(driver, name, call)
    return driver


def check(driver: Any, result: int, what: str) -> None:
    if result:
        name, text = ctypes.c_char_p(), ctypes.c_char_p()
        driver.error_name(result, ctypes.addressof(name))
        driver.error_text(result, ctypes.addressof(text))
        words = (name.value or b"unknown").decode(), (text.value or b"").decode()
        raise RuntimeError(f"{what}: {words[0]} ({result}): {words[1]}")


class _Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint32 * 16)]


class _Config(ctypes.Structure):
    _fields_ = [
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("smem", ctypes.c_uint32),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("attribute_count", ctypes.c_uint32),
    ]


class Module:
    """One code file on one device; the device's primary context is torch's own."""

    def __init__(self, driver: Any, device: int, code: bytes) -> None:
        self.driver = driver
        self.context, module, ordinal = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
        self.popped = ctypes.c_void_p()
        self.popped_at = ctypes.addressof(self.popped)
        check(driver, driver.init(0), "starting the driver")
        check(driver, driver.device(ctypes.addressof(ordinal), device), f"device {device}")
        check(driver, driver.retain(ctypes.addressof(self.context), ordinal.value), f"context of device {device}")
        image = ctypes.create_string_buffer(code, len(code) + 1)
        with self.current(), self.outside_capture():
            result = driver.load(ctypes.addressof(module), ctypes.addressof(image))
            check(driver, result, f"loading the kernel on device {device}")
        self.handle, self.device = module.value, device

    @contextlib.contextmanager
    def current(self):
        """Makes its context current; restores the caller's afterwards."""
        check(self.driver, self.driver.push(self.context.value), "making the context current")
        try:
            yield
        finally:
            self.driver.pop(self.popped_at)

    @contextlib.contextmanager
    def outside_capture(self):
        mode = ctypes.c_int(_RELAXED)
        self.driver.capture_mode(ctypes.addressof(mode))
        try:
            yield
        finally:
            self.driver.capture_mode(ctypes.addressof(mode))

    def function(self, name: str, smem: int, cluster: int) -> tuple[int, bool]:
        """The kernel, ready for these sizes, and whether a cluster must be named at each launch."""
        found, must = ctypes.c_void_p(), ctypes.c_int()
        driver = self.driver
        with self.current(), self.outside_capture():
            check(driver, driver.function(ctypes.addressof(found), self.handle, name.encode()), f"kernel {name}")
            # Asked for now, so that a kernel that is loaded lazily is not loaded inside a capture.
            driver.attribute(ctypes.addressof(must), _CLUSTER_MUST_BE_SET, found.value)
            if smem:
                check(driver, driver.set_attribute(found.value, _DYNAMIC_SMEM, smem), f"{smem} bytes of shared memory")
            if cluster > 8:
                check(driver, driver.set_attribute(found.value, _NON_PORTABLE_CLUSTER, 1), f"clusters of {cluster}")
        return found.value or 0, bool(must.value)


# ---- limits: those of src/loader/table.c ----------------------------------------------------------------------

_BYTES = {"f64": 8, "i64": 8, "u64": 8, "f32": 4, "i32": 4, "u32": 4, "f16": 2, "bf16": 2, "i16": 2, "u16": 2, "i8": 1, "u8": 1, "bool": 1}


def _whole(value: Any, least: int, most: int, what: str) -> int:
    if type(value) is not int or not least <= value <= most:
        raise RuntimeError(f"the launch list has {what} {value!r}, not {least} to {most}: launches.json is not what was judged")
    return value


def _wholes(values: Any, count: int, least: int, most: int, what: str) -> list[int]:
    if not isinstance(values, list) or len(values) != count:
        raise RuntimeError(f"the launch list has {what} {values!r}, not {count} numbers: launches.json is not what was judged")
    return [_whole(value, least, most, what) for value in values]


def _one_of(value: Any, known: Any, what: str) -> Any:
    if not isinstance(value, str) or value not in known:
        raise RuntimeError(f"the launch list has {what} {value!r}, which there is not: launches.json is not what was judged")
    return value


def _extent(t: dict[str, Any]) -> int:
    """Bytes from the first element to the end of the last."""
    sizes = _wholes(t["shape"], len(t["shape"]), 0, 1 << 62, "a size")
    strides = _wholes(t["strides"], len(sizes), 0, 1 << 62, "a stride")
    last = sum((n - 1) * step for n, step in zip(sizes, strides))
    return _whole((last + 1) * _BYTES[_one_of(t["dtype"], _BYTES, "a dtype")], 0, 1 << 62, "bytes of a tensor") if all(sizes) else 0


def _check_map(m: dict[str, Any], rooms: dict[str, int]) -> None:
    rank = _whole(len(m["dims"]), 1, 5, "a map's rank")
    dims = _wholes(m["dims"], rank, 1, 1 << 32, "a map's size")
    strides = _wholes(m["strides_bytes"], rank - 1, 0, 1 << 40, "a map's stride")
    _wholes(m["box"], rank, 1, 256, "a map's box")
    _wholes(m["element_strides"], rank, 1, 8, "a map's element stride")
    kind = _one_of(m["dtype"], _BYTES, "a map's dtype")
    _one_of(m["swizzle"], _MAP_SWIZZLES, "a map's swizzle")
    _one_of(m["l2"], _MAP_L2, "a map's l2")
    room = rooms[_one_of(m["buffer"], rooms, "a buffer")] - _whole(m["offset"], 0, rooms[m["buffer"]], "an offset")
    if dims[0] * _BYTES[kind] + sum((n - 1) * step for n, step in zip(dims[1:], strides)) > room:
        raise RuntimeError("a tensor map of the launch list leaves its buffer: launches.json is not what was judged")


def _check_launch(op: dict[str, Any], case: dict[str, Any], rooms: dict[str, int]) -> None:
    _one_of(op["kernel"], case["names"], "a kernel")
    _wholes(op["grid"], 3, 1, (1 << 31) - 1, "a grid")
    _wholes(op["grid"][1:], 2, 1, 65535, "a grid")
    block = _wholes(op["block"], 3, 1, 1024, "a block")
    _whole(block[0] * block[1] * block[2], 1, 1024, "threads of a block")
    _wholes(op["cluster"], 3, 1, 16, "a cluster")
    _whole(op["smem"], 0, 1 << 20, "bytes of shared memory")
    for arg in op["args"]:
        if "map" in arg:
            _whole(arg["map"], 0, len(case["maps"]) - 1, "a map")
        elif "bytes" not in arg:
            _whole(arg["offset"], 0, rooms[_one_of(arg["buffer"], rooms, "a buffer")], "an offset")


def check_case(case: dict[str, Any]) -> None:
    """Does every place of this launch list lie in its buffer, and every size within the hardware's limits?"""
    rooms = {f"{kind}{k}": _extent(t) for kind, tensors in (("in", case["inputs"]), ("out", case["outputs"])) for k, t in enumerate(tensors)}
    rooms.update({f"ws{k}": _whole(w["bytes"], 0, 1 << 53, "bytes of a workspace") for k, w in enumerate(case["workspace"])})
    for m in case["maps"]:
        _check_map(m, rooms)
    for op in case["ops"]:
        if _one_of(op["op"], ("launch", "memset"), "a step") == "launch":
            _check_launch(op, case, rooms)
            continue
        room = rooms[_one_of(op["buffer"], rooms, "a buffer")] - _whole(op["offset"], 0, rooms[op["buffer"]], "an offset")
        _whole(op["bytes"], 0, room, "bytes to set")
        _whole(op["value"], 0, 255, "a byte")


def functions_of(module: Module, case: dict[str, Any]) -> dict[str, tuple[int, bool]]:
    """The kernels of a launch list by the names it has for them, ready for the largest sizes it asks of each."""
    found, launches = {}, [op for op in case["ops"] if op["op"] == "launch"]
    for kernel in sorted({op["kernel"] for op in launches}):
        mine = [op for op in launches if op["kernel"] == kernel]
        most = max(op["cluster"][0] * op["cluster"][1] * op["cluster"][2] for op in mine)
        found[kernel] = module.function(case["names"][kernel], max(op["smem"] for op in mine), most)
    return found


class Launcher:
    """One launch list on one device with its argument blocks laid out; only addresses change from call to call.

    Buffers are numbered: inputs, outputs, then workspaces. The lock is held while blocks are filled and read."""

    def __init__(self, module: Module, case: dict[str, Any]) -> None:
        check_case(case)
        self.module, self.driver, self.lock = module, module.driver, threading.Lock()
        self.workspace_bytes, self.workspaces = 0, []
        for workspace in case["workspace"]:
            self.workspaces.append(self.workspace_bytes)
            self.workspace_bytes += -(-max(workspace["bytes"], 1) // WORKSPACE_ALIGN) * WORKSPACE_ALIGN
        starts = {"in": 0, "out": len(case["inputs"]), "ws": len(case["inputs"]) + len(case["outputs"])}
        self._number = lambda name: starts[name.rstrip("0123456789")] + int(name.lstrip("inoutws"))
        self.sources: list[tuple[int, int]] = []  # what each slot holds: address of a buffer plus an offset
        self.keep: list[Any] = []  # memory that the driver reads
        self.configs: list[_Config] = []
        launches = [op for op in case["ops"] if op["op"] == "launch"]
        self.slots = (ctypes.c_uint64 * max(1, sum(len(op["args"]) for op in launches)))()
        self._lay_maps(case["maps"])
        functions = functions_of(module, case)
        self.steps = [
            self._launch(op, *functions[op["kernel"]]) if op["op"] == "launch" else self._memset(op) for op in case["ops"]
        ]

    def _lay_maps(self, maps: list[dict[str, Any]]) -> None:
        room = ctypes.create_string_buffer(_MAP_BYTES * len(maps) + _MAP_ALIGN)
        first = -(-ctypes.addressof(room) // _MAP_ALIGN) * _MAP_ALIGN
        self.keep.append(room)
        self.maps = []
        for i, m in enumerate(maps):
            rank = len(m["dims"])
            lists: list[Any] = [
                (ctypes.c_uint64 * rank)(*m["dims"]),
                (ctypes.c_uint64 * max(1, len(m["strides_bytes"])))(*m["strides_bytes"]),
                (ctypes.c_uint32 * rank)(*m["box"]),
                (ctypes.c_uint32 * rank)(*m["element_strides"]),
            ]
            self.keep.append(lists)
            kind = _MAP_DTYPES.index(_MAP_ALIASES.get(m["dtype"], m["dtype"]))
            ways = (0, _MAP_SWIZZLES.index(m["swizzle"]), _MAP_L2.index(m["l2"]), int(m["fill"] == "nan"))
            place = first + i * _MAP_BYTES
            encode = (place, kind, rank), (*(ctypes.addressof(part) for part in lists), *ways)
            self.maps.append([self._number(m["buffer"]), m["offset"], encode, 0])

    def _slot(self, source: tuple[int, int]) -> int:
        """The address of the slot that holds this pointer."""
        if source not in self.sources:
            self.sources.append(source)
        return ctypes.addressof(self.slots) + 8 * self.sources.index(source)

    def _argument(self, arg: dict[str, Any]) -> int:
        """Where the launch finds this argument."""
        if "bytes" in arg:
            data = bytes.fromhex(arg["bytes"])
            self.keep.append(ctypes.create_string_buffer(data, len(data)))
            return ctypes.addressof(self.keep[-1])
        if "map" in arg:
            return self.maps[arg["map"]][2][0][0]
        return self._slot((self._number(arg["buffer"]), arg["offset"]))

    def _launch(self, op: dict[str, Any], function: int, must: bool) -> tuple[Any, ...]:
        attributes = (_Attribute * 2)()
        count = 0
        if must or op["cluster"] != [1, 1, 1]:
            attributes[count].id = _CLUSTER
            attributes[count].value[:3] = op["cluster"]
            count += 1
        if op.get("overlap"):
            attributes[count].id = _SERIALIZATION
            attributes[count].value[0] = 1
            count += 1
        config = _Config(smem=op["smem"], attributes=ctypes.addressof(attributes), attribute_count=count)
        config.grid[:], config.block[:] = op["grid"], op["block"]
        params = (ctypes.c_void_p * max(1, len(op["args"])))(*(self._argument(arg) for arg in op["args"]))
        self.keep += [attributes, params]
        self.configs.append(config)
        return (True, ctypes.addressof(config), function, ctypes.addressof(params), op["kernel"])

    def _memset(self, op: dict[str, Any]) -> tuple[Any, ...]:
        return (False, self._number(op["buffer"]), op["offset"], op["value"], op["bytes"])

    def launch(self, stream: int, pointers: list[int], workspace: int) -> None:
        """Queues the whole list on `stream`. `pointers`: addresses of inputs and outputs."""
        driver, slots, module, result, what = self.driver, self.slots, self.module, 0, ""
        if self.workspaces:
            pointers = pointers + [workspace + offset for offset in self.workspaces]
        with self.lock:
            for i, (buffer, offset) in enumerate(self.sources):
                slots[i] = pointers[buffer] + offset
            for config in self.configs:
                config.stream = stream
            result = driver.push(module.context.value)
            if result:
                check(driver, result, "making the context current")
            try:
                for m in self.maps:
                    address = pointers[m[0]] + m[1]
                    if address != m[3]:
                        check(driver, driver.encode(*m[2][0], address, *m[2][1]), "a tensor map")
                        m[3] = address
                for step in self.steps:
                    if step[0]:
                        result, what = driver.launch(step[1], step[2], step[3], None), step[4]
                    elif step[4]:
                        result, what = driver.memset(pointers[step[1]] + step[2], step[3], step[4], stream), "memset"
                    if result:
                        break
            finally:
                driver.pop(module.popped_at)
        if result:
            check(driver, result, f"launching {what}")
