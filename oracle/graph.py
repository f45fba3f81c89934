# SPDX-License-Identifier: Apache-2.0
"""The operator graph of a forward pass at ATen level, and properties derived from it: work, bytes, class.

Hides torch's dispatch mode. The graph is what was executed, not what the source says.

1. Node 0.. are the leaves (inputs, parameters, buffers) in the order a kernel gets them.
2. An operator that writes in place makes a new node, and the tensor it wrote stands for that node from then on.
3. Nothing here keeps tensors alive: a tensor carries its node's number as an attribute.
4. A write through a view is a new value of what it is a view of (aliases.py).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from . import aliases
from .mode import Mode, called
from .operators import ATTENTION, ATTENTION_BACKWARD, FACTORIES, KNOWN_NUMBERS, PRODUCTS, REDUCTIONS, SAME, VIEWS
from .task import DTYPES

TABLE = 1024  # numbers of a constant tensor that a kernel may hold
_tokens = itertools.count(1)


class TooBig(Exception):
    """A tensor beyond the limit was requested and not created."""


@dataclass
class Node:
    op: str  # "aten.mul.Tensor", "input", "constant", "output"
    args: list[Any] = field(default_factory=list)
    kwargs: dict[str, Any] = field(default_factory=dict)
    parts: list[dict[str, Any]] = field(default_factory=list)  # dtype, shape, strides of each result
    index: int = -1

    @property
    def name(self) -> str:
        words = self.op.split(".")
        return words[1] if len(words) > 1 else self.op

    @property
    def shape(self) -> list[int]:
        return self.parts[0]["shape"] if self.parts else []

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    def reads(self) -> list[tuple[int, int]]:
        """The nodes this one reads and which of their results, in order."""
        found: list[tuple[int, int]] = []
        for arg in [*self.args, *self.kwargs.values()]:
            if not isinstance(arg, dict):  # the value of a constant
                continue
            found += [(item["node"], item.get("part", 0)) for item in [arg, *arg.get("list", [])] if "node" in item]
        return found

    def sources(self) -> list[int]:
        return [number for number, _ in self.reads()]

    def write(self, number: int) -> dict[str, Any]:
        base = {"id": number, "op": self.op, **(self.parts[0] if self.parts else {})}
        if len(self.parts) > 1:
            base["parts"] = self.parts
        if self.index >= 0:
            base["index"] = self.index
        if self.op not in ("input", "constant"):
            base["args"], base["kwargs"] = self.args, self.kwargs
        elif self.kwargs:
            base.update(self.kwargs)
        return base


def tensor_part(tensor: torch.Tensor) -> dict[str, Any]:
    dtype = DTYPES.get(tensor.dtype, str(tensor.dtype).replace("torch.", ""))
    return {
        "dtype": dtype,
        "shape": list(tensor.shape),
        "strides": list(tensor.stride()) if tensor.layout == torch.strided else [],
    }


class Tracer(Mode):
    """Records what runs inside `with`. `limit`: refuse to make a tensor with more elements."""

    def __init__(self, leaves: list[torch.Tensor], limit: int | None = None) -> None:
        super().__init__()
        self.nodes: list[Node] = []
        self.token = next(_tokens)  # a tensor may carry a number of an earlier trace
        self.limit = limit
        self.exact = True  # False: a write through a view that the graph has no operator for
        self.gap = ""  # what happens then
        self.mutated: set[int] = set()  # leaves written in place
        self.leaves = len(leaves)
        self.formulas: dict[str, Any] = {}  # operators that are traced as what they are made of
        self.following = False  # a backward
        self.paused = False  # what runs is not recorded
        self.indexing = False  # inside x[...]: places.py
        self.place: torch.Tensor | None = None  # the number that PyTorch has read there, and selects with next
        self.places: dict[Any, tuple[int, int]] = {}  # of a backward: by where a tensor lies
        self.kept: list[torch.Tensor] = []
        self.first = leaves
        for i, leaf in enumerate(leaves):
            self.nodes.append(Node("input", parts=[tensor_part(leaf)], index=i))
            self.mark(leaf, i, 0)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        func = called(func, args)
        kwargs = kwargs or {}
        if self.paused:
            return func(*args, **kwargs)
        _refuse_big(args, self.limit)
        name = str(func).split(".")[1] if "." in str(func) else str(func)
        if name in self.formulas:
            with self:
                return self.formulas[name](*args, **kwargs)
        if name.startswith("_foreach_"):
            return self._one_by_one(func, args, kwargs)
        if name == "_pack_padded_sequence" and self._is_fixed(self.node_of(args[1])[0]):
            return self._packed(*args)
        if name.endswith("_") and aliases.is_view(name[:-1]):
            return self._view_in_place(func, name[:-1], args, kwargs)
        if self.indexing and self._is_place(name, args):
            self.place = args[0]
            return func(*args, **kwargs)
        result = func(*args, **kwargs)
        if name in SAME and args and isinstance(args[0], torch.Tensor):
            self.mark(result, *self.node_of(args[0]))
            if result is not args[0] and aliases.shares_memory(result, args[0]):
                twin = self._alias_of(args[0])
                self._set_alias(result, aliases.Alias(twin.root, twin.steps, twin.root.version))
            return result
        if not func._schema.is_mutable and not aliases.is_view(name):
            self._settle_empty(args)
        if name == "index":
            args = (args[0], self._places(args[1]), *args[2:])
        op, places = str(func), self._outs(func, kwargs)
        if name == "masked_select" and args[0].shape == args[1].shape and self._places([args[1]])[0] is not args[1]:
            op, args = "aten.index.Tensor", (args[0], self._places([args[1]]))
        if name == "select" and self.place is not None:
            op, args, self.place = "aten.index.Tensor", (args[0], [None] * (args[1] % args[0].dim()) + [self.place]), None
        if name == "prelu" and args[0].dim() > 2 and args[1].numel() > 1:  # a weight per channel, which is not the last
            with self:
                args = (args[0], args[1].view(1, -1, *[1] * (args[0].dim() - 2)))
        if name == "cudnn_batch_norm":  # the same operator, but for what it keeps for its backward
            op = "aten.native_batch_norm.default"
        if places:
            op = _returning(func.overloadpacket, func)
        node = Node(
            op,
            [self._argument(a) for a in args],
            {k: self._argument(v) for k, v in kwargs.items() if not any(v is place for place in places)},
        )
        results = [
            r
            for r in (result if isinstance(result, (list, tuple)) else [result])
            if isinstance(r, torch.Tensor)
        ]
        if name in KNOWN_NUMBERS and all(self._is_fixed(n) for n in node.sources()) and self._known_numbers(results):
            return result
        node.parts = [tensor_part(r) for r in results]
        if name == "cudnn_batch_norm":
            node.parts[1:] = [tensor_part(r if r.numel() else args[3]) for r in results[1:3]]
        if self.limit and any(r.numel() > self.limit for r in results):
            raise TooBig(f"{func} makes {max(r.numel() for r in results)} elements")
        written = places or self._written(func, args)
        for tensor in written:
            self._note_leaf(tensor)
        self.nodes.append(node)
        for part, tensor in enumerate(results):
            self.mark(tensor, len(self.nodes) - 1, part)
        number = len(self.nodes) - 1
        if written:
            for part, tensor in enumerate(written):
                self._write_through(tensor, (number, part), op)
        elif args and isinstance(args[0], torch.Tensor) and (aliases.is_view(name) or _returns_views(func)):
            self._note_views(name, node, args[0], results)
        return result

    def follow(self, formulas: dict[str, Any]) -> None:
        """A backward is traced: autograd hands out other objects for the tensors it has saved, over the same memory."""
        self.formulas, self.following = formulas, True
        for i, leaf in enumerate(self.first):
            self.mark(leaf, i, 0)

    def mark(self, tensor: torch.Tensor, number: int, part: int) -> None:
        tensor._cutegen_node = self.token, number, part
        tensor._cutegen_memory = _memory(tensor)
        place = _place(tensor) if self.following else None
        if place is not None:
            self.places[place] = number, part
            self.kept.append(tensor)  # or its memory would be another's

    # ---- tensors over the same memory (aliases.py) ----

    def _make(self, op: str, args: list[dict[str, Any]], part: dict[str, Any]) -> tuple[int, int]:
        self.nodes.append(Node(op, args, {}, [part]))
        return len(self.nodes) - 1, 0

    def _alias_of(self, tensor: torch.Tensor) -> aliases.Alias:
        token, alias = self._alias_mark(tensor)
        if alias is None or token != self.token:
            place = self.node_of(tensor)
            alias = aliases.Alias(aliases.Root(place, place[0] if self.nodes[place[0]].op == "input" else -1))
            self._set_alias(tensor, alias)
        return alias

    @staticmethod
    def _alias_mark(tensor: torch.Tensor) -> tuple[int, aliases.Alias | None]:
        return getattr(tensor, "_cutegen_alias", (0, None))

    def _set_alias(self, tensor: torch.Tensor, alias: aliases.Alias) -> None:
        tensor._cutegen_alias = self.token, alias

    def _note_views(self, name: str, node: Node, base: torch.Tensor, results: list[torch.Tensor]) -> None:
        if any(not aliases.shares_memory(r, base) for r in results):
            return
        alias, before = self._alias_of(base), tensor_part(base)
        for k, tensor in enumerate(results):
            step = aliases.step_of(name, node.op, node.args[1:], before, node.parts[k], k)
            self._set_alias(tensor, aliases.Alias(alias.root, (*alias.steps, step), alias.root.version))

    @staticmethod
    def _outs(func: Any, kwargs: dict[str, Any]) -> list[torch.Tensor]:
        """What an operator writes its results to: out=."""
        if not func._schema.is_mutable:
            return []
        return [kwargs[a.name] for a in func._schema.arguments if a.is_out and isinstance(kwargs.get(a.name), torch.Tensor)]

    @staticmethod
    def _written(func: Any, args: Any) -> list[torch.Tensor]:
        """What an operator writes in place."""
        in_place = func._schema.is_mutable and args and isinstance(args[0], torch.Tensor)
        return [args[0]] if in_place else []

    def _note_leaf(self, tensor: torch.Tensor) -> None:
        number = self._alias_of(tensor).root.leaf
        if number >= 0:
            self.mutated.add(number)

    def _write_through(self, target: torch.Tensor, value: tuple[int, int], op: str) -> None:
        alias = self._alias_of(target)
        if not aliases.written(alias, value, self._make):
            self.lost(f"{op} writes through {' and '.join(step.op for step in alias.steps)}: the graph has no operator for that")

    def lost(self, why: str) -> None:
        """Something happens that the graph does not show."""
        self.exact, self.gap = False, self.gap or why

    def _view_in_place(self, func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        """A tensor becomes a view of what it was: nothing is written."""
        tensor, before, alias = args[0], tensor_part(args[0]), self._alias_of(args[0])
        op = _returning(getattr(torch.ops.aten, name), func)
        node = Node(op, [self._argument(a) for a in args], {k: self._argument(v) for k, v in kwargs.items()})
        result = func(*args, **kwargs)
        node.parts = [tensor_part(tensor)]
        self.nodes.append(node)
        self.mark(tensor, len(self.nodes) - 1, 0)
        step = aliases.step_of(name, op, node.args[1:], before, node.parts[0], 0)
        self._set_alias(tensor, aliases.Alias(alias.root, (*alias.steps, step), alias.root.version))
        return result

    def _one_by_one(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """An operator on lists of tensors: the same on one after the other."""
        name = func._schema.name.split("_foreach_")[1]
        call = getattr(torch.ops.aten, "linalg_vector_norm" if name == "norm" else name)
        named = {"value": args[3]} if name.startswith("addc") and len(args) > 3 else {}
        args, named = (args[:3] if named else args), {**kwargs, **named}

        def of(value: Any, k: int) -> Any:
            return value[k] if isinstance(value, (list, tuple)) else value

        with self:
            made = [call(*(of(a, k) for a in args), **{n: of(v, k) for n, v in named.items()}) for k in range(len(args[0]))]
        return None if func._schema.is_mutable else made

    def _packed(self, x: torch.Tensor, lengths: torch.Tensor, batch_first: bool) -> Any:
        """Sequences of known lengths, step by step: which rows are left at a step is known, too."""
        ends = lengths.tolist()
        left = [sum(end > t for end in ends) for t in range(max(ends))]
        steps = torch.tensor([t for t, n in enumerate(left) for _ in range(n)])
        rows = torch.tensor([row for n in left for row in range(n)])
        with self:
            data = x[rows, steps] if batch_first else x[steps, rows]
        return data, torch.tensor(left)

    def node_of(self, tensor: torch.Tensor) -> tuple[int, int]:
        """(node, part) a tensor stands for."""
        token, number, part = getattr(tensor, "_cutegen_node", (0, 0, 0))
        if token == self.token:
            if getattr(tensor, "_cutegen_memory", None) != _memory(tensor):
                self.lost("forward gives a tensor other memory (x.data = y): the graph does not show that")
            known, alias = self._alias_mark(tensor)
            if alias is not None and known == token and alias.version != alias.root.version:  # written since
                number, part = aliases.made_again(alias, self._make)
                alias.version = alias.root.version
                self.mark(tensor, number, part)
            return number, part
        place = _place(tensor) if self.following else None
        if place is not None and place in self.places:
            return self.places[place]
        self.nodes.append(
            Node("constant", kwargs=self._constant(tensor), parts=[tensor_part(tensor)])
        )  # made outside of the trace
        self.mark(tensor, len(self.nodes) - 1, 0)
        return len(self.nodes) - 1, 0

    def _places(self, indices: Any) -> list[Any]:
        """Masks that depend on no input as the places where they are true: how many is known then."""
        found: list[Any] = []
        for index in indices:
            if isinstance(index, torch.Tensor) and index.dtype in (torch.bool, torch.uint8) and index.device.type == "cpu":
                if self._is_fixed(self.node_of(index)[0]):
                    found += index.nonzero(as_tuple=True)
                    continue
            found.append(index)
        return found

    def _is_fixed(self, number: int) -> bool:
        return is_fixed(self.nodes, number)

    def _is_place(self, name: str, args: Any) -> bool:
        """Does PyTorch read the number of a tensor, to select with it, that another draw may change?"""
        if name != "_local_scalar_dense" or args[0].dtype in (torch.bool, torch.uint8) or args[0].is_floating_point():
            return False
        return not self._is_fixed(self.node_of(args[0])[0])

    def _known_numbers(self, results: list[torch.Tensor]) -> bool:
        """The results of an operator as constants, if they are few numbers."""
        found = [self._constant(r) if r.numel() else {"values": []} for r in results]
        if not found or not all(found):
            return False
        for tensor, numbers in zip(results, found):
            self.nodes.append(Node("constant", kwargs=numbers, parts=[tensor_part(tensor)]))
            self.mark(tensor, len(self.nodes) - 1, 0)
        return True

    def _settle_empty(self, args: Any) -> None:
        """What is read of a new vector that no operator wrote into, torch wrote there itself (lengths): a constant."""
        for tensor in args:
            if isinstance(tensor, torch.Tensor) and tensor.dim() == 1 and tensor.device.type == "cpu":
                number, _ = self.node_of(tensor)
                if self.nodes[number].op == "aten.empty.memory_format" and 1 < tensor.numel() <= TABLE:
                    self.nodes.append(Node("constant", kwargs=self._constant(tensor), parts=[tensor_part(tensor)]))
                    self.mark(tensor, len(self.nodes) - 1, 0)

    def _constant(self, tensor: torch.Tensor) -> dict[str, Any]:
        """Its number, or its numbers in the order of its shape if they are few: a kernel has them as a table."""
        if tensor.device.type == "meta" or tensor.layout != torch.strided:
            return {}
        if tensor.is_complex():
            return {"text": str(tensor.item())} if tensor.numel() == 1 else {}
        if tensor.numel() == 1:
            return self._argument(tensor.item()) if tensor.device.type == "cpu" else {}
        if not 0 < tensor.numel() <= TABLE:
            return {}
        return {"values": [self._argument(v) for v in tensor.detach().reshape(-1).tolist()]}

    def _argument(self, value: Any) -> dict[str, Any]:
        if isinstance(value, torch.Tensor):
            number, part = self.node_of(value)
            return {"node": number, "part": part} if part else {"node": number}
        if value is None:
            return {"none": True}
        if isinstance(value, (list, tuple)):
            if all(type(v) is int for v in value):
                return {"ints": list(value)}
            return {"list": [self._argument(v) for v in value]}
        if isinstance(value, (bool, int)):
            return {"value": value}
        if isinstance(value, float):
            return {"value": value} if math.isfinite(value) else {"text": repr(value)}
        if isinstance(value, torch.dtype):
            return {"dtype": DTYPES.get(value, str(value))}
        return {"text": str(value)}


def _memory(tensor: torch.Tensor) -> Any:
    """Whose memory a tensor has; None where that is not known."""
    try:
        return (tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()._storage)._cdata
    except (AttributeError, NotImplementedError, RuntimeError):
        return None


def _returns_views(func: Any) -> bool:
    """Does PyTorch say that the results are views of an argument?"""
    return any(r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns)


def _returning(packet: Any, func: Any) -> str:
    """The operator of this name that takes what `func` takes, and returns what that writes."""
    given = [str(a.type) for a in func._schema.arguments if not a.is_out]
    for overload in packet.overloads():
        schema = getattr(packet, overload)._schema
        if not schema.is_mutable and [str(a.type) for a in schema.arguments] == given:
            return str(getattr(packet, overload))
    return str(func)


def _place(tensor: torch.Tensor) -> Any:
    """Where a tensor lies; None where that is not known."""
    try:
        storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()._storage
        return storage._cdata, tensor.storage_offset(), tuple(tensor.shape), tensor.stride(), tensor.dtype
    except (AttributeError, NotImplementedError, RuntimeError):
        return None


def _refuse_big(args: Any, limit: int | None) -> None:
    """Factories name their size first: refused before the memory is asked for."""
    if (
        limit
        and args
        and isinstance(args[0], (list, tuple))
        and args[0]
        and all(type(v) is int for v in args[0])
        and math.prod(args[0]) > limit
    ):
        raise TooBig(f"a tensor of {math.prod(args[0])} elements")


class OnMeta(Mode):
    """Inside `with`, new tensors have shapes but no numbers and no memory."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        func = called(func, args)
        kwargs = dict(kwargs or {})
        if "device" in kwargs or not any(
            isinstance(a, (torch.Tensor, list, tuple)) and _holds_tensor(a) for a in args
        ):
            if any(a.name == "device" for a in func._schema.arguments):
                kwargs["device"] = torch.device("meta")
                kwargs.pop("pin_memory", None)
                kwargs.pop("generator", None)
        return func(*args, **kwargs)


class BesideMeta(Mode):
    """Inside `with`, what a forward makes itself keeps its numbers, and tensors without numbers meet it as shapes."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        func, kwargs = called(func, args), kwargs or {}
        if len({t.device.type for t in _tensors_of([*args, *kwargs.values()])}) < 2:
            return func(*args, **kwargs)
        if func._schema.is_mutable and not (isinstance(args[0], torch.Tensor) and args[0].device.type == "meta"):
            raise NotImplementedError("meta: what has no numbers is written among numbers")
        return func(*[_without_numbers(a) for a in args], **{k: _without_numbers(v) for k, v in kwargs.items()})


def _tensors_of(values: Any) -> list[torch.Tensor]:
    found = [v for v in values if isinstance(v, torch.Tensor)]
    return found + [t for v in values if isinstance(v, (list, tuple)) for t in _tensors_of(v)]


def _without_numbers(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to("meta")
    return type(value)(_without_numbers(v) for v in value) if type(value) in (list, tuple) else value


def _holds_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor) or (
        isinstance(value, (list, tuple)) and any(isinstance(v, torch.Tensor) for v in value)
    )


class Limit(Mode):
    """Inside `with`, refuses tensors with more than `limit` elements."""

    def __init__(self, limit: int | None) -> None:
        super().__init__()
        self.limit = limit

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        func = called(func, args)
        _refuse_big(args, self.limit)
        return func(*args, **(kwargs or {}))


# ---- what follows from a graph ----------------------------------------------------------------


def is_fixed(nodes: list[Node], number: int) -> bool:
    """Is it made of numbers that the forward itself has?"""
    todo, seen = [number], set()
    while todo:
        number = todo.pop()
        node = nodes[number]
        if node.op == "input" or (node.op == "constant" and not node.kwargs) or node.name.startswith("empty"):
            return False
        read = node.sources()[1:] if node.name in ("fill_", "zero_", "copy_") else node.sources()  # nothing is left of the first
        todo += [n for n in read if n not in seen]
        seen.add(number)
    return True


@dataclass
class Graph:
    nodes: list[Node]
    leaves: int
    outputs: list[tuple[int, int]]
    exact: bool
    mutated: set[int]
    gap: str = ""  # why it is not exact
    keepers: list[str] = field(default_factory=list)  # modules that keep tensors which the forward makes
    masked: bool = False  # it has what a mask leaves as all elements: masks.py

    def is_fixed(self, number: int) -> bool:
        """Is it made of numbers that the forward itself has?"""
        return is_fixed(self.nodes, number)

    def live(self) -> set[int]:
        """Nodes the outputs depend on."""
        found: set[int] = set()
        todo = [n for n, _ in self.outputs]
        while todo:
            number = todo.pop()
            if number not in found:
                found.add(number)
                todo += self.nodes[number].sources()
        return found

    def consumers(self) -> dict[int, list[int]]:
        live = self.live()
        users: dict[int, list[int]] = {}
        for number in sorted(live):
            for source in set(self.nodes[number].sources()):
                users.setdefault(source, []).append(number)
        return users

    def readers(self) -> dict[tuple[int, int], list[int]]:
        """The users of a node's result, by node and part."""
        users: dict[tuple[int, int], list[int]] = {}
        for number in sorted(self.live()):
            for source in set(self.nodes[number].reads()):
                users.setdefault(source, []).append(number)
        return users

    def operators(self) -> Iterable[tuple[int, Node]]:
        live = self.live()
        return ((i, n) for i, n in enumerate(self.nodes) if i in live and n.op not in ("input", "constant"))

    def write(self) -> list[dict[str, Any]]:
        live = self.live() | set(range(self.leaves))
        nodes = [n.write(i) for i, n in enumerate(self.nodes) if i in live]
        for k, (number, part) in enumerate(self.outputs):
            arg = {"node": number, "part": part} if part else {"node": number}
            nodes.append(
                {
                    "id": len(self.nodes) + k,
                    "op": "output",
                    "args": [arg],
                    "index": k,
                    **self.nodes[number].parts[part],
                }
            )
        return nodes


def product_sizes(nodes: list[Node], node: Node) -> tuple[int, int, int, int] | None:
    """(batch, M, N, K) of a matrix product, convolution or attention seen as one; None for other operators."""
    shapes = [nodes[s].parts[0]["shape"] for s in node.sources() if nodes[s].parts]
    name = node.name
    if name not in PRODUCTS or len(shapes) < 2:
        return None
    if name in ("addmm", "baddbmm", "addmv", "addbmm", "_addmm_activation"):
        shapes = shapes[1:]
    a, b = shapes[0], shapes[1]
    if name in ("convolution", "_convolution", "cudnn_convolution", "mkldnn_convolution"):
        transposed = len(node.args) > 6 and node.args[6].get("value") is True
        taps = math.prod(b[2:])
        if (
            transposed
        ):  # weight (Cin, Cout/groups, taps): every input element meets Cout/groups * taps weights
            return 1, a[0] * math.prod(a[2:]), b[1] * taps, a[1]
        return 1, a[0] * math.prod(node.shape[2:]), node.shape[1], b[1] * taps
    if name in ("dot", "vdot"):
        return 1, 1, 1, a[0]
    if name in ("mv", "addmv"):
        return 1, a[0], 1, a[1]
    if name in ("ger", "addr"):
        return 1, a[0], b[0], 1
    if len(a) == 3 and len(b) == 3:
        return a[0], a[1], b[2], a[2]
    if len(a) == 2 and len(b) == 2 and name != "linear":
        return 1, a[0], b[1], a[1]
    k = a[-1]
    return 1, math.prod(a) // max(k, 1), node.numel * k // max(math.prod(a), 1), k


def attention_sizes(nodes: list[Node], node: Node) -> tuple[int, int, int, int, int] | None:
    """(batch * heads, queries, keys, head, value head) of a fused attention operator."""
    first = 1 if node.name in ATTENTION_BACKWARD else 0  # behind the gradient of the result
    if node.name not in ATTENTION and not first:
        return None
    q, k, v = (nodes[s].parts[0]["shape"] for s in node.sources()[first : first + 3])
    return math.prod(q[:-2]), q[-2], k[-2], q[-1], v[-1]


def recurrent_sizes(nodes: list[Node], node: Node) -> tuple[int, int, int, int, int]:
    """(steps * directions, batch, gates * hidden, hidden, layers) of recurrent layers (recurrent.py)."""
    gates, weight = (nodes[arg["list"][0]["node"]].shape for arg in node.args[:2])
    return gates[0] * len(node.args[0]["list"]), gates[1], weight[0], weight[1], node.kwargs["layers"]["value"]


def reduction_length(nodes: list[Node], node: Node) -> int:
    """How many terms are added up for one result of this operator; 1 for elementwise ones."""
    sizes = product_sizes(nodes, node)
    if sizes:
        return max(sizes[3], 1)
    attention = attention_sizes(nodes, node)
    if attention:
        return attention[3] + attention[2]
    if node.name == "recurrent":
        return recurrent_sizes(nodes, node)[3]
    if node.name in ("scatter_add", "index_add") and node.numel:  # as many as there are for a place
        return 1 + nodes[node.sources()[-1]].numel // node.numel
    if node.name not in REDUCTIONS or not node.sources():
        return 1
    source = nodes[node.sources()[0]]
    if node.name in (
        "_softmax",
        "_safe_softmax",
        "_log_softmax",
        "softmax",
        "log_softmax",
        "cumsum",
        "cumprod",
        "logcumsumexp",
        "cummax",
        "cummin",
    ):
        dim = node.args[1].get("value", -1) if len(node.args) > 1 else -1
        return source.shape[dim] if source.shape and isinstance(dim, int) else 1
    if node.name == "native_layer_norm":
        return max(math.prod(node.args[1].get("ints", [1])), 1)
    if node.name == "native_group_norm":
        groups = node.args[6].get("value", 1) if len(node.args) > 6 else 1
        return max(source.numel // max(source.shape[0] * groups, 1), 1)
    if "batch_norm" in node.name:
        return max(source.numel // max(source.shape[1], 1), 1)
    if node.name.startswith("nll_loss"):
        return max(nodes[node.sources()[1]].numel, 1)
    return max(source.numel // max(node.numel, 1), 1)


def node_flops(nodes: list[Node], node: Node) -> float:
    """As written, one per multiplication, addition or function value; structure is ignored."""
    sizes = product_sizes(nodes, node)
    if sizes:
        return 2.0 * math.prod(sizes)
    attention = attention_sizes(nodes, node)
    if attention:
        heads, queries, keys, head, value_head = attention
        if node.name in ATTENTION_BACKWARD:  # scores, dQ, dK; dP, dV
            return 2.0 * heads * queries * keys * (3 * head + 2 * value_head)
        return 2.0 * heads * queries * keys * (head + value_head)
    if node.name == "recurrent":
        steps, batch, rows, hidden, layers = recurrent_sizes(nodes, node)
        return 2.0 * steps * batch * rows * hidden * (2 * layers - 1)
    if (
        node.name in VIEWS
        or node.name in SAME
        or node.name in FACTORIES
        or node.name in ("clone", "_to_copy", "copy_", "contiguous")
    ):
        return 0.0
    sources = [nodes[s].numel for s in node.sources()]
    return float(max([node.numel, *(sources if node.name in REDUCTIONS else [])]))
