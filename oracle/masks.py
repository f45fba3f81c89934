# SPDX-License-Identifier: Apache-2.0
"""Masks that are read: `loss[mask].mean()` and `x[mask] += 1` as operators on all elements, of which some do not count.

How many elements a mask leaves depends on values, so a kernel cannot have `x[mask]`. Where a fixed shape comes out of it in the
end, it need not: the whole tensor is carried on beside its mask, until a reduction or a write through the same mask ends it.

1. The forward is traced as it runs. Then its graph is read in order, and what can be said of all elements is added to it; the
   operators on those that the mask leaves stay beside it, and are dead where nothing else reads them.
2. What a mask leaves out is never multiplied away: `where` drops it, NaN or not. An index or an integer divisor is replaced
   before it is used.
3. A dimension that the mask makes meets only itself, of the same mask, or dimensions of one. Anything else stays as it was.
4. A number that forward takes from a shape (len(x[mask])) is that of one draw. loaded.py compares two draws; where they differ,
   it asks for operands that are as many as a mask leaves to be counted, and compares again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from .graph import Graph, Node, Tracer
from .parts import ALONG, ELEMENTWISE, UNIFORM
from .primitives import BODIES, MEAN, NONE, arguments, element_type

POINTWISE = ELEMENTWISE | UNIFORM | frozenset("masked_fill fmin fmax nan_to_num logaddexp hypot bitwise_xor lgamma copysign".split())
RESHAPES = frozenset("view _unsafe_view reshape _reshape_alias unsqueeze squeeze flatten unflatten".split())
TURNS = frozenset("t transpose permute".split())
# what stands for an element that the mask leaves out, so that it does not count
NEUTRAL = {
    **dict.fromkeys("sum norm linalg_vector_norm cumsum any".split(), 0),
    **dict.fromkeys("prod cumprod all".split(), 1),
    **dict.fromkeys("max amax logsumexp _softmax _log_softmax logcumsumexp".split(), -math.inf),
    **dict.fromkeys("min amin".split(), math.inf),
}
SCANS = frozenset("cumsum cumprod logcumsumexp _softmax _log_softmax".split())  # as many results as elements
# where the reduction stands among the arguments
LOSSES = {
    **dict.fromkeys("mse_loss l1_loss smooth_l1_loss huber_loss soft_margin_loss".split(), 2),
    "binary_cross_entropy": 3,
    "binary_cross_entropy_with_logits": 4,
}
COUNTED = frozenset("add sub mul div add_ sub_ mul_ div_".split())  # their second operand may be a count
END = 1 << 62  # of a slice without an end


class Unknown(Exception):
    """Not the same on all elements."""


@dataclass
class Masked:
    """The elements of a tensor that a mask leaves, in one dimension; here all of them."""

    value: torch.Tensor  # (..., N, ...)
    mask: torch.Tensor  # (N)
    key: Any  # the same for masks that are equal
    at: int  # the dimension
    count: int  # that the mask leaves in the traced draw

    @property
    def behind(self) -> int:
        """The dimension, counted from the end."""
        return self.value.dim() - self.at

    def beside(self) -> torch.Tensor:
        """The mask, over the value."""
        return self.mask.reshape([-1] + [1] * (self.behind - 1))

    def filled(self, number: float) -> torch.Tensor:
        return torch.where(self.beside(), self.value, torch.full_like(self.value, _of_type(number, self.value.dtype)))

    def size(self, shape: Any) -> list[int]:
        """A shape of all elements as that of those which the mask leaves."""
        return [self.count if d == self.at else s for d, s in enumerate(shape)]


def finish(graph: Graph, counting: bool = False) -> None:
    """Adds to a traced graph what its reads of masks are on all elements. `counting`: and counts them where an operand is their
    number."""
    if not any(_is_read(graph, node) for node in graph.nodes):
        return
    rewriter = _Rewriter(graph, counting)
    for number, node in enumerate(graph.nodes):
        rewriter.add(number, node)
    if not rewriter.ended or not rewriter.new.exact:
        return
    graph.nodes = rewriter.new.nodes
    graph.outputs = [rewriter.place(*output) for output in graph.outputs]
    graph.masked = not graph.live() & {rewriter.copies[number] for number, _ in rewriter.masked}


def _is_read(graph: Graph, node: Node) -> bool:
    return node.name == "masked_select" or (node.name == "index" and _mask_of(graph, node) is not None)


def _mask_of(graph: Graph, node: Node) -> dict[str, Any] | None:
    """The one index of a node, if it is a mask."""
    given = [arg for arg in node.args[1].get("list", []) if "node" in arg]
    masks = [arg for arg in given if graph.nodes[arg["node"]].parts[arg.get("part", 0)]["dtype"] == "bool"]
    return masks[0] if len(masks) == len(given) == 1 else None


def _of_type(number: float, dtype: torch.dtype) -> float:
    if math.isfinite(number) or dtype.is_floating_point:
        return number
    if dtype == torch.bool:
        return number > 0
    return torch.iinfo(dtype).max if number > 0 else torch.iinfo(dtype).min


def _dims(given: Any, rank: int) -> list[int]:
    if given is None or given == []:
        return list(range(rank))
    return [d % max(rank, 1) for d in (given if isinstance(given, (list, tuple)) else [given])]


class _Rewriter:
    def __init__(self, graph: Graph, counting: bool) -> None:
        self.old, self.new, self.counting = graph, Tracer([]), counting
        self.counts: dict[int, dict[Any, tuple[Masked, int]]] = {}  # by their number
        self.copies: list[int] = []  # of each node: its number in the new graph
        self.ended: dict[tuple[int, int], tuple[int, int]] = {}  # results of a fixed shape, made of all elements
        self.masked: dict[tuple[int, int], Masked] = {}
        self.keys: list[int] = []  # of each node of the new graph
        self.known: dict[Any, int] = {}

    def add(self, number: int, node: Node) -> None:
        made: list[Any] = []
        node = self._counted(node) if self.counting and node.name in COUNTED else node
        if _is_read(self.old, node) or any(read in self.masked for read in node.reads()):
            try:
                args, kwargs = arguments(node, self._operand)
                with torch.no_grad(), self.new:
                    made = self._rewritten(node, args, kwargs)
            except Exception:  # Unknown, or this torch has no such kernel for shapes
                made = []
        self.new.nodes.append(replace(node, args=[self._turned(a) for a in node.args], kwargs={k: self._turned(v) for k, v in node.kwargs.items()}))
        self.copies.append(len(self.new.nodes) - 1)
        for part, value in enumerate(made):
            if isinstance(value, Masked):
                self.masked[number, part] = value
            else:
                self.ended[number, part] = self.new.node_of(value)

    def place(self, number: int, part: int) -> tuple[int, int]:
        """Where a result of the traced graph is now."""
        return self.ended.get((number, part), (self.copies[number], part))

    def _turned(self, arg: Any) -> Any:
        if not isinstance(arg, dict):
            return arg
        if "list" in arg:
            return {**arg, "list": [self._turned(a) for a in arg["list"]]}
        if "node" not in arg:
            return arg
        number, part = self.place(arg["node"], arg.get("part", 0))
        return {"node": number, "part": part} if part else {"node": number}

    def _operand(self, arg: dict[str, Any]) -> Any:
        read = arg["node"], arg.get("part", 0)
        if read in self.masked:
            return self.masked[read]
        number, part = self.place(*read)
        info = self.new.nodes[number].parts[part]
        tensor = torch.empty_strided(info["shape"], info["strides"], dtype=element_type(info["dtype"]), device="meta")
        self.new.mark(tensor, number, part)
        return tensor

    def _key(self, place: tuple[int, int]) -> Any:
        """The same for results that are computed alike."""
        for k in range(len(self.keys), len(self.new.nodes)):
            node = self.new.nodes[k]
            words: Any = k  # an input, or a constant that is not known
            if node.op != "input" and (node.op != "constant" or node.kwargs):
                reads = [(self.keys[n], part) for n, part in node.reads()]
                words = node.op, *reads, json.dumps([node.shape, _without_reads(node.args), _without_reads([node.kwargs])])
            self.keys.append(self.known.setdefault(words, k))
        return self.keys[place[0]], place[1]

    # ---- one operator ----

    def _rewritten(self, node: Node, args: Any, kwargs: Any) -> list[Any]:
        """Its results on all elements: Masked, or tensors of a fixed shape."""
        name = node.name[:-1] if node.name.endswith("_") else node.name
        if name == "index":
            made = self._read(node, args[0], args[1])
        elif name == "masked_select" and isinstance(args[0], Masked) and args[0].value.shape == args[1].value.shape:
            made = self._read(node, args[0], [None] * args[0].at + [args[1]])
        elif name == "masked_select":
            shape = torch.broadcast_shapes(*(a.shape for a in args))
            made = self._read(node, args[0].expand(shape), [args[1].expand(shape)])
        elif name in ("index_put", "_index_put_impl"):
            made = self._written(args[0], args[1], args[2], bool(args[3] if len(args) > 3 else kwargs.get("accumulate")))
        elif name == "masked_scatter" and args[0].shape == args[1].shape:
            made = self._written(args[0], [args[1]], args[2], False)
        else:
            self._one_mask(args, kwargs)
            made = self._applied(node, name, args, kwargs)
        results = list(made) if isinstance(made, (list, tuple)) else [made]
        return [self._checked(result, part) for result, part in zip(results, node.parts)]

    def _checked(self, result: Any, part: dict[str, Any]) -> Any:
        """What the traced operator gave, but for the elements that the mask leaves out."""
        masked = isinstance(result, Masked)
        tensor = result.value if masked else result
        if (result.size(tensor.shape) if masked else list(tensor.shape)) != list(part["shape"]):
            raise Unknown
        kind = element_type(part["dtype"])
        if tensor.dtype != kind:
            tensor = tensor.to(kind)
        if masked:
            return replace(result, value=tensor)
        number, index = self.new.node_of(tensor)
        self.new.nodes[number].parts[index] = dict(part)  # views of it were made of these strides
        return tensor

    @staticmethod
    def _one_mask(args: Any, kwargs: Any) -> Masked:
        found = [a for a in [*args, *kwargs.values()] if isinstance(a, Masked)]
        if not found or any(a.key != found[0].key or a.count != found[0].count for a in found):
            raise Unknown
        return found[0]

    def _applied(self, node: Node, name: str, args: Any, kwargs: Any) -> Any:
        if name in POINTWISE:
            return self._pointwise(getattr(torch.ops.aten, name), name, args, kwargs)
        if name in RESHAPES:
            return self._reshaped(args[0], node.shape)
        if name in LOSSES:
            return self._loss(name, args, kwargs)
        if name == "nll_loss_forward":
            return self._nll(*args)
        if not isinstance(args[0], Masked) and name not in ROWS:
            raise Unknown
        if name in ALONG:
            return self._along(name, args, kwargs)
        if name in TURNS:
            return self._turned_around(name, *args)
        if name in ROWS:
            return ROWS[name](*args, **kwargs)
        raise Unknown

    # ---- where a mask begins and ends ----

    def _flat(self, x: Any, indices: list[Any]) -> tuple[torch.Tensor, torch.Tensor, Any, int]:
        """x with the dimensions of a mask as one, the mask, its key, and the dimension."""
        at = len(indices) - 1
        mask = indices[at]
        if any(i is not None for i in indices[:at]) or isinstance(mask, Masked) != isinstance(x, Masked):
            raise Unknown
        if isinstance(x, Masked):  # a mask of what a mask leaves
            self._one_mask([x, mask], {})
            if mask.at or x.at != at:
                raise Unknown
            own = self._key(self.new.node_of(mask.value))
            chosen, key, value = torch.logical_and(mask.value, mask.beside()), ("and", x.key, own), x.value
        else:
            chosen, key, value = mask, self._key(self.new.node_of(mask)), x
        if chosen.dtype != torch.bool or not chosen.dim():
            raise Unknown
        shape = list(value.shape)
        return value.reshape(shape[:at] + [chosen.numel()] + shape[at + chosen.dim() :]), chosen.reshape(-1), key, at

    def _read(self, node: Node, x: Any, indices: list[Any]) -> Masked:
        value, mask, key, at = self._flat(x, indices)
        made = Masked(value, mask, key, at, node.shape[at])
        for others in {1, math.prod(made.value.shape) // max(mask.numel(), 1)}:
            self.counts.setdefault(made.count * others, {})[key, others] = made, others
        return made

    def _counted(self, node: Node) -> Node:
        """With a count in the place of its second operand, if that is the number of one."""
        found = list(self.counts.get(node.args[1].get("value"), {}).values())
        if len(found) != 1:
            return node
        kind = element_type(node.parts[0]["dtype"])
        with torch.no_grad(), self.new:
            count = _count(*found[0], _wide(kind) if kind.is_floating_point else torch.int64)
        number = -1 - len(self.ended)  # of a node that was not traced
        self.ended[number, 0] = self.new.node_of(count)
        return replace(node, op=f"aten.{node.name}.Tensor", args=[node.args[0], {"node": number}, *node.args[2:]])

    def _written(self, x: Any, indices: list[Any], values: Any, accumulate: bool) -> Any:
        old, mask, key, at = self._flat(x, indices)
        behind = old.dim() - at
        if isinstance(values, Masked):
            if values.key != key or values.behind != behind:
                raise Unknown
            new = values.value
        elif values.dim() < behind or values.shape[-behind] == 1:
            new = values
        else:
            raise Unknown
        new = old + new if accumulate else new
        made = torch.where(Masked(old, mask, key, at, 0).beside(), new.to(old.dtype), old)
        if isinstance(x, Masked):
            return replace(x, value=made.reshape(x.value.shape))
        return made.reshape(x.shape)

    # ---- between ----

    def _pointwise(self, call: Callable[..., Any], name: str, args: Any, kwargs: Any) -> Masked:
        first = self._one_mask(args, kwargs)
        for a in [*args, *kwargs.values()]:
            if isinstance(a, Masked) and a.behind != first.behind:
                raise Unknown
            if isinstance(a, torch.Tensor) and a.dim() >= first.behind and a.shape[-first.behind] != 1:
                raise Unknown
        args = list(args)
        if name in ("div", "remainder", "fmod") and isinstance(args[1], Masked) and not args[1].value.is_floating_point():
            args[1] = replace(args[1], value=args[1].filled(1))
        made = call(*map(_all, args), **{k: _all(v) for k, v in kwargs.items()})
        made = made[0] if isinstance(made, tuple) else made  # what a gradient needs is behind it
        return replace(first, value=made, at=made.dim() - first.behind)

    @staticmethod
    def _turned_around(name: str, x: Masked, *args: Any) -> Masked:
        order = list(range(x.value.dim()))
        if name == "permute":
            order = [order[d] for d in args[0]]
        elif len(order) > 1:
            a, b = args or (0, 1)
            order[a], order[b] = order[b], order[a]
        return replace(x, value=x.value.permute(order), at=order.index(x.at))

    @staticmethod
    def _reshaped(x: Masked, shape: list[int]) -> Masked:
        before = x.size(x.value.shape)
        front, tail = math.prod(before[: x.at]), before[x.at + 1 :]
        if not x.count:
            raise Unknown
        places = [k for k, s in enumerate(shape) if s == x.count and math.prod(shape[:k]) == front]
        size, mask, key = x.mask.numel(), x.mask, x.key
        if not places and front == 1:  # dimensions behind it become one with it
            joined = next((math.prod(tail[:j]) for j in range(1, len(tail) + 1) if math.prod(tail[:j]) * x.count in shape), 0)
            places = [k for k, s in enumerate(shape) if joined and s == x.count * joined and math.prod(shape[:k]) == 1]
            mask, key = mask.reshape(-1, 1).expand(size, joined).reshape(-1), (key, "joined", joined)
            size *= joined
        if len(places) != 1:
            raise Unknown
        k = places[0]
        made = x.value.reshape([*shape[:k], size, *shape[k + 1 :]])
        return Masked(made, mask, key, k, shape[k])

    def _along(self, name: str, args: Any, kwargs: Any) -> Any:
        """A reduction or a scan."""
        x, place = args[0], ALONG[name]
        given = args[place] if len(args) > place else kwargs.get("dim")
        dims = _dims(None if isinstance(given, bool) else given, x.value.dim())
        if x.at not in dims:
            made = getattr(torch.ops.aten, name)(x.value, *args[1:], **kwargs)
            results = made if isinstance(made, (list, tuple)) else [made]
            left = x.at - (0 if results[0].dim() == x.value.dim() else sum(d < x.at for d in dims))
            return [replace(x, value=r, at=left) for r in results]
        if name in MOMENTS:
            return MOMENTS[name](x, *args[1:], **kwargs)
        if name not in NEUTRAL or (name in ("max", "min") and given is not None):
            raise Unknown
        if "norm" in name and len(args) > 1 and args[1] is not None and not 0 <= args[1]:
            raise Unknown
        made = getattr(torch.ops.aten, name)(x.filled(NEUTRAL[name]), *args[1:], **kwargs)
        return replace(x, value=made) if name in SCANS else made

    def _loss(self, name: str, args: Any, kwargs: Any) -> Any:
        args = list(args) + [None] * (LOSSES[name] - len(args))
        reduction = args.pop(LOSSES[name]) if len(args) > LOSSES[name] else kwargs.pop("reduction", MEAN)
        each = self._pointwise(lambda *a: BODIES[name](*a, **kwargs), name, [*args[: LOSSES[name]], NONE, *args[LOSSES[name] :]], {})
        if reduction == NONE:
            return each
        return _mean(each) if reduction == MEAN else each.filled(0).sum()

    @staticmethod
    def _nll(x: Any, target: Any, weight: Any, reduction: int, ignored: int) -> Any:
        if not isinstance(x, Masked) or not isinstance(target, Masked) or x.at or target.at or x.value.dim() != 2:
            raise Unknown
        total, weights = torch.ops.aten.nll_loss_forward(x.value, target.filled(ignored), weight, reduction, ignored)
        return [replace(target, value=total) if reduction == NONE else total, weights]


def _without_reads(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_reads(v) for k, v in value.items() if k not in ("node", "part")}
    return [_without_reads(v) for v in value] if isinstance(value, list) else value


def _all(value: Any) -> Any:
    return value.value if isinstance(value, Masked) else value


# ---- moments --------------------------------------------------------------------------------


def _sum_and_count(x: Masked, value: torch.Tensor, dims: list[int], keepdim: bool, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    total = replace(x, value=value).filled(0).sum(dims, keepdim=keepdim, dtype=dtype)
    others = math.prod(s for d, s in enumerate(value.shape) if d in dims and d != x.at)
    return total, _count(x, others, dtype)


def _count(x: Masked, others: int, dtype: torch.dtype) -> torch.Tensor:
    """How many elements the mask leaves, times the size of other dimensions."""
    count = x.mask.sum()
    return (count if others == 1 else count * others).to(dtype)


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def _mean(x: Masked, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> torch.Tensor:
    kind = dtype or x.value.dtype
    total, count = _sum_and_count(x, x.value, _dims(dim, x.value.dim()), keepdim, _wide(kind))
    return (total / count).to(kind)


def _var(x: Masked, dim: Any = None, correction: Any = 1, keepdim: bool = False, unbiased: Any = None) -> torch.Tensor:
    if isinstance(dim, bool):  # var(x, unbiased)
        dim, correction = None, int(dim)
    correction = 1 if correction is None else correction
    dims, kind = _dims(dim, x.value.dim()), _wide(x.value.dtype)
    total, count = _sum_and_count(x, x.value, dims, True, kind)
    centred = x.value.to(kind) - total / count
    squares, _ = _sum_and_count(x, centred * centred, dims, keepdim, kind)
    return (squares / torch.clamp(count - correction, min=0)).to(x.value.dtype)


def _std(x: Masked, *args: Any, **kwargs: Any) -> torch.Tensor:
    return torch.sqrt(_var(x, *args, **kwargs))


MOMENTS: dict[str, Callable[..., Any]] = {"mean": _mean, "var": _var, "std": _std}


# ---- operators that treat each element of the dimension alike ---------------------------------


def _rows(x: Any, *fixed: Any) -> Masked:
    """x, where it is the first dimension, and nothing else is masked."""
    if not isinstance(x, Masked) or x.at or any(isinstance(f, Masked) for f in fixed):
        raise Unknown
    return x


def _mm(x: Any, w: Any) -> Masked:
    return replace(_rows(x, w), value=torch.mm(x.value, w))


def _addmm(bias: Any, x: Any, w: Any, **kwargs: Any) -> Masked:
    if isinstance(bias, Masked) or (bias.dim() > 1 and bias.shape[0] != 1):
        raise Unknown
    return replace(_rows(x, w), value=torch.addmm(bias, x.value, w, **kwargs))


def _mv(x: Any, v: Any) -> Masked:
    return replace(_rows(x, v), value=torch.mv(x.value, v))


def _embedding(w: Any, index: Any, *args: Any) -> Masked:
    if not isinstance(index, Masked) or isinstance(w, Masked):
        raise Unknown
    return replace(index, value=torch.ops.aten.embedding(w, index.filled(0), *args))


def _gather(x: Any, dim: int, index: Any, **kwargs: Any) -> Masked:
    if not isinstance(x, Masked) or not isinstance(index, Masked) or x.at != index.at or dim % x.value.dim() == x.at:
        raise Unknown
    return replace(x, value=torch.gather(x.value, dim, index.filled(0)))


def _select(x: Masked, dim: int, index: int) -> Masked:
    dim %= x.value.dim()
    if dim == x.at:
        raise Unknown
    return replace(x, value=x.value.select(dim, index), at=x.at - (dim < x.at))


def _slice(x: Masked, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Masked:
    if dim % x.value.dim() != x.at:
        return replace(x, value=torch.ops.aten.slice(x.value, dim, start, end, step))
    if start or step != 1 or (end is not None and end < END):
        raise Unknown
    return x


def _expand(x: Masked, sizes: list[int], **kwargs: Any) -> Masked:
    at = len(sizes) - x.behind
    if sizes[at] not in (x.count, -1):
        raise Unknown
    return replace(x, value=x.value.expand([-1 if d == at else s for d, s in enumerate(sizes)]), at=at)


def _layer_norm(x: Any, shape: list[int], *rest: Any) -> list[Masked]:
    if not isinstance(x, Masked) or x.behind <= len(shape) or any(isinstance(r, Masked) for r in rest):
        raise Unknown
    return [replace(x, value=made) for made in torch.ops.aten.native_layer_norm(x.value, shape, *rest)]


ROWS: dict[str, Callable[..., Any]] = {
    "mm": _mm,
    "addmm": _addmm,
    "mv": _mv,
    "embedding": _embedding,
    "gather": _gather,
    "select": _select,
    "slice": _slice,
    "expand": _expand,
    "native_layer_norm": _layer_norm,
}
