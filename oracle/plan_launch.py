# SPDX-License-Identifier: Apache-2.0
"""A launch as CUDA's runtime is given it, in memory, as an entry of a launch list.

Parameters are bytes. Addresses of the plan's tensors among them become buffer and offset; a tensor map becomes what it describes,
so that the judge makes its own.
"""

from __future__ import annotations

import ctypes
import struct
from typing import Any

from oracle.plan_objects import Plan, PlanError

MAP_BYTES = 128


class Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int32), ("pad", ctypes.c_char * 4), ("value", ctypes.c_uint32 * 16)]


class LaunchConfig(ctypes.Structure):
    """cudaLaunchConfig_t"""

    _fields_ = [
        ("grid", ctypes.c_uint32 * 3), ("block", ctypes.c_uint32 * 3), ("smem", ctypes.c_size_t), ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(Attribute)), ("count", ctypes.c_uint32),
    ]  # fmt: skip


_COOPERATIVE, _CLUSTER, _OVERLAP, _PRIORITY = 2, 4, 6, 8  # cudaLaunchAttributeID


def attributes_of(config: LaunchConfig) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for a in config.attributes[: config.count]:
        if a.id == _CLUSTER:
            made["cluster"] = [max(n, 1) for n in a.value[:3]]
        elif a.id == _OVERLAP:
            made["overlap"] = a.value[0] != 0
        elif a.id == _COOPERATIVE and a.value[0]:
            raise PlanError("a cooperative grid cannot be judged", "launch")
        elif a.id not in (0, _COOPERATIVE, _PRIORITY):
            raise PlanError(f"launch attribute {a.id} (cudaLaunchAttributeID) cannot be judged", "launch")
    return made


# ---- tensor maps -----------------------------------------------------------------------------------------------------

_TYPES = ["u8", "u16", "u32", "i32", "u64", "i64", "f16", "f32", "f64", "bf16", "", "tf32"]
_SWIZZLES, _L2S = ["none", "32", "64", "128"], ["none", "64", "128", "256"]
_VERSION, _KNOWN = 2, 0x657FFF


def map_of(plan: Plan, data: bytes) -> dict[str, Any] | None:
    """What a tiled tensor map of the hardware's describes; None: these bytes are none over a tensor of the plan."""
    x = struct.unpack("<16I", data[:64])
    place = plan.place_of(x[0] | x[1] << 32)
    kind, rank = x[2] >> 7 & 15, (x[2] >> 4 & 7) + 1
    if x[2] & 15 != _VERSION or rank > 5 or (place is None and x[2] & ~_KNOWN):
        return None
    if place is None:
        raise PlanError("a tensor map over memory that is no tensor of this plan", "launch")
    if x[2] & ~_KNOWN or x[2] >> 11 & 3 or kind >= len(_TYPES) or not _TYPES[kind] or x[7] or x[13] & 0xFFFFFF:
        raise PlanError("a tensor map that is not tiled, or has element strides or a fill, cannot be judged", "launch")
    box = [x[13] >> 24, *struct.pack("<I", x[14])]
    return {
        **place, "dtype": _TYPES[kind], "dims": [n + 1 for n in x[8 : 8 + rank]], "strides_bytes": [16 * n for n in x[3 : 2 + rank]],
        "box": [n + 1 for n in box[:rank]], "element_strides": [1] * rank, "swizzle": _SWIZZLES[x[2] >> 13 & 3], "fill": "zero",
        "l2": _L2S[x[2] >> 21 & 3],
    }  # fmt: skip


# ---- parameters ------------------------------------------------------------------------------------------------------


def _argument(plan: Plan, size: int, kind: str, data: bytes) -> dict[str, Any]:
    if size == MAP_BYTES and kind == "":
        described = map_of(plan, data)
        if described is not None:
            return {"map": plan.map(described)}
    words = [int.from_bytes(data[at : at + 8], "little") for at in range(0, size - 7, 8)]
    places = {8 * i: place for i, place in enumerate(map(plan.place_of, words)) if place is not None}
    if size == 8 and places:
        return places[0]
    made: dict[str, Any] = {"bytes": data.hex(), **({"type": kind} if kind else {})}
    if places:
        made["pointers"] = [{"at": at, **place} for at, place in places.items()]
    return made


def arguments_of(plan: Plan, parameters: list[tuple[int, str]], args: int) -> list[dict[str, Any]]:
    """`args` is the address of a list of addresses, one for each parameter: its size and what it is, "int", "float" or ""."""
    made = []
    for i, (size, kind) in enumerate(parameters):
        at = ctypes.c_uint64.from_address(args + 8 * i).value
        made.append(_argument(plan, size, kind, ctypes.string_at(at, size)))
    return made
