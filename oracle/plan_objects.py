# SPDX-License-Identifier: Apache-2.0
"""What a candidate's plan(p) is given: tensors that have shapes but no data, and the list of launches it makes.

A plan is the host half of a candidate written in Python. It runs where there is neither a GPU nor a single input: a Tensor here is a
name, a type and sizes. Launches are recorded, not carried out. docs/triton.md has the interface; names and limits are checked again
by src/toolchain/launch_list.c, which believes nothing of this.
"""

from __future__ import annotations

import math
import sys
from typing import Any

ALIGNED = 256  # every buffer begins at a multiple of it
SLOT_BITS, TAG, TAG_BIT = 38, 0x5A, 49  # buffer n has addresses from TAG << TAG_BIT | n << SLOT_BITS on: they belong to no memory
MAX_OPS = 1024
SIZES = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "i64": 8, "i32": 4, "i16": 2, "i8": 1, "u8": 1, "bool": 1}


class PlanError(Exception):
    """The plan's own fault, in words for its author."""

    def __init__(self, text: str, kind: str = "plan", line: int = 0) -> None:
        super().__init__(text)
        self.kind, self.line = kind, line


class Tensor:
    """A buffer of the task, or workspace. Looks like a torch tensor as far as shapes go."""

    def __init__(self, plan: Plan, buffer: str, name: str, dtype: str, shape: Any, strides: Any, offset: int = 0) -> None:
        self.name, self.buffer, self.code, self.offset = name, buffer, dtype, offset
        self.shape, self.strides = tuple(shape), tuple(strides)
        self.dtype = plan.dtype_of(dtype)
        self._plan = plan

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def dim(self) -> int:
        return len(self.shape)

    def size(self, d: int | None = None) -> Any:
        return self.shape if d is None else self.shape[d]

    def stride(self, d: int | None = None) -> Any:
        return self.strides if d is None else self.strides[d]

    def numel(self) -> int:
        return math.prod(self.shape)

    def element_size(self) -> int:
        return SIZES[self.code]

    def is_contiguous(self) -> bool:
        want = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides)):
            if size != 1 and stride != want:
                return False
            want *= size
        return True

    def data_ptr(self) -> int:
        """No address of memory: compilers see how it is aligned, and arguments are known again by it."""
        if not 0 <= self.offset < 1 << SLOT_BITS:
            raise PlanError(f"{self.name} has no byte {self.offset}", "launch", self._plan.line())
        return self._plan.address_of(self.buffer) + self.offset

    def alignment(self) -> int:
        """Of its first element, in bytes."""
        return min(ALIGNED, self.offset & -self.offset) if self.offset else ALIGNED

    def at(self, elements: int) -> Tensor:
        """The same buffer from that element on."""
        return type(self)(self._plan, self.buffer, self.name, self.code, self.shape, self.strides, self.offset + int(elements) * self.element_size())

    def zero_(self) -> Tensor:
        self._plan.memset(self)
        return self

    def __repr__(self) -> str:
        return f"{self.name}: {self.code}{list(self.shape)}"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a tensor of a plan has sizes and no data, so no {name}: shape, stride(), dtype, numel(), at(), zero_() are there")


class Device:
    """The GPU that is planned for."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.arch: int = facts.get("arch", 80)
        self.sm_count: int = facts.get("sm_count", 0)
        self.smem_block_bytes: int = facts.get("smem_block_bytes", 0)
        self.l2_bytes: int = facts.get("l2_bytes", 0)


class Plan:
    """p of plan(p)."""

    def __init__(self, request: dict[str, Any], dtypes: dict[str, Any], path: str, tensor: type[Tensor] = Tensor) -> None:
        self._dtypes, self._path, self._tensor = dtypes, path, tensor
        self.inputs = tuple(self._given("in", i, t) for i, t in enumerate(request["inputs"]))
        self.outputs = tuple(self._given("out", i, t) for i, t in enumerate(request["outputs"]))
        self.scalars = tuple(s.get("value") for s in request.get("scalars", []))
        self.device = Device(request["device"])
        self._ops: list[dict[str, Any]] = []
        self._workspace: list[dict[str, int]] = []
        self._maps: list[dict[str, Any]] = []
        self._slots: list[str] = []  # buffers in the order in which their addresses were asked for

    def address_of(self, buffer: str) -> int:
        if buffer not in self._slots:
            self._slots.append(buffer)
        return TAG << TAG_BIT | self._slots.index(buffer) << SLOT_BITS

    def place_of(self, address: int) -> dict[str, Any] | None:
        """Buffer and offset of such an address; None: it is another number. Whether it lies inside is the judge's to say."""
        slot = (address & (1 << TAG_BIT) - 1) >> SLOT_BITS
        if address >> TAG_BIT != TAG or slot >= len(self._slots):
            return None
        return {"buffer": self._slots[slot], "offset": address & (1 << SLOT_BITS) - 1}

    def map(self, described: dict[str, Any]) -> int:
        """The number of a tensor map."""
        if described not in self._maps:
            self._maps.append(described)
        return self._maps.index(described)

    def dtype_of(self, code: str) -> Any:
        if code not in self._dtypes:
            raise PlanError(f"this language has no type for {code}")
        return self._dtypes[code]

    def _given(self, kind: str, number: int, t: dict[str, Any]) -> Tensor:
        return self._tensor(self, f"{kind}{number}", t.get("name") or f"{kind}{number}", t["dtype"], t["shape"], t["strides"])

    def require(self, condition: Any, text: str) -> None:
        """Ends the plan where it is not meant for these sizes."""
        if not condition:
            raise PlanError(text, line=self.line())

    def workspace(self, *shape: Any, dtype: Any = None) -> Tensor:
        """Device memory for this call: not cleared, gone afterwards."""
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        code = self._code_of(dtype)
        strides = [math.prod(sizes[d + 1 :]) for d in range(len(sizes))]
        self._workspace.append({"bytes": math.prod(sizes) * SIZES[code]})
        number = len(self._workspace) - 1
        return self._tensor(self, f"ws{number}", f"ws{number}", code, sizes, strides)

    def _code_of(self, dtype: Any) -> str:
        if dtype is None:
            return "f32"
        for code, known in self._dtypes.items():
            if dtype == known or dtype == code:
                return code
        raise PlanError(f"workspace of type {dtype}, which is none of {' '.join(SIZES)}", line=self.line())

    def memset(self, t: Tensor, value: int = 0) -> None:
        """Every byte of a tensor, in order with the launches."""
        if not isinstance(t, Tensor):
            raise PlanError("memset wants a tensor of this plan", line=self.line())
        size = t.numel() * t.element_size()
        self.add({"op": "memset", "buffer": t.buffer, "offset": t.offset, "bytes": size, "value": int(value)})

    def add(self, op: dict[str, Any]) -> None:
        if len(self._ops) >= MAX_OPS:
            raise PlanError(f"more than {MAX_OPS} launches and memsets", line=self.line())
        op["line"] = self.line()
        self._ops.append(op)

    def line(self) -> int:
        """Of the candidate's file, that is being carried out; 0: none."""
        frame: Any = sys._getframe()
        while frame is not None:
            if frame.f_code.co_filename == self._path:
                return int(frame.f_lineno)
            frame = frame.f_back
        return 0

    def scratch(self, size: int) -> dict[str, Any]:
        """An argument that points to memory a compiler asks for."""
        t = self.workspace(size, dtype="u8")
        return {"buffer": t.buffer, "offset": 0}

    def launches(self) -> dict[str, Any]:
        if not any(op["op"] == "launch" for op in self._ops):
            raise PlanError("plan(p) launches no kernel: kernel[grid](arguments) inside of it")
        return {"workspace": self._workspace, "maps": self._maps, "ops": self._ops}
