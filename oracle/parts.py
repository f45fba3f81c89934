# SPDX-License-Identifier: Apache-2.0
"""Divide a task into parts of its batch: which inputs can be divided along their first dimension, and how large a part may be.

Hides the rules of operators. A task with independent rows gives the same rows for a part of the inputs as for all of them; its truth then
needs memory for one part only (compare_parts.py).

1. Every operator between a divided input and an output must be known to keep rows independent. With an unknown operator the task is not
   divided.
2. A forward may use a size as a number (x / x.shape[0]). So it is traced on a part as well: any number that differs between
   the two traces, other than the sizes of tensors, refutes the cut.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .graph import Graph, Node
from .operators import ATTENTION

TRIED_ROWS = 3  # of the part that is traced: neither one, which broadcasts, nor all
PART_BYTES = 1 << 30
MOST_UNITS = 1 << 16

ELEMENTWISE = frozenset("""
    add sub rsub mul div neg abs exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square pow sigmoid tanh relu gelu
    silu mish hardtanh hardswish hardsigmoid softplus elu leaky_relu clamp clamp_min clamp_max sin cos tan asin acos atan sinh
    cosh erf erfc where maximum minimum lt le gt ge eq ne logical_and logical_or logical_not logical_xor bitwise_and
    bitwise_or bitwise_not sign sgn floor ceil round trunc lerp addcmul addcdiv fmod remainder atan2 threshold
    log_sigmoid_forward softshrink hardshrink clone _to_copy contiguous isnan isinf xlogy heaviside relu6 logit sinc
    """.split())
UNIFORM = frozenset("zeros_like ones_like full_like".split())
# name -> where the dimensions stand among the arguments
ALONG = {
    **dict.fromkeys(
        """sum mean amax amin max min argmax argmin prod var std var_mean std_mean logsumexp _softmax _safe_softmax _log_softmax
        cumsum cumprod logcumsumexp cummax cummin all any""".split(),
        1,
    ),
    "norm": 2,
    "linalg_vector_norm": 2,
}
# name -> the arguments that must be whole: weights
WITH_WEIGHTS = {
    "native_group_norm": (1, 2),
    "convolution": (1, 2),
    "_convolution": (1, 2),
    "cudnn_convolution": (1,),
    "_native_batch_norm_legit_no_training": (1, 2, 3, 4),
    "_prelu_kernel": (1,),
    "prelu": (1,),
    "mm": (1,),
    "mv": (1,),
    "linear": (1, 2),
}
POOLS = frozenset("""
    max_pool1d max_pool2d max_pool3d max_pool2d_with_indices max_pool3d_with_indices avg_pool1d avg_pool2d avg_pool3d
    _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_max_pool2d mkldnn_max_pool2d
    """.split())
TRAINS = frozenset("native_batch_norm cudnn_batch_norm _native_batch_norm_legit".split())  # unless argument 5 is false
GROUP_NORM_BATCH = ("native_group_norm", 3)  # the one operator that is told the size of the batch as a number
RESHAPES = frozenset("view _unsafe_view reshape _reshape_alias flatten unflatten".split())
ONE_DIM = frozenset("unsqueeze squeeze slice select split split_with_sizes chunk unbind narrow".split())


@dataclass
class Plan:
    """How a task is cut."""

    batch: int
    cut: frozenset[int]  # inputs
    unit: int  # rows that stay together: every part begins at a multiple
    rows: int  # of a part
    row_bytes: int  # that one row needs, all of it alive at once

    def parts(self, rows: int | None = None) -> list[tuple[int, int]]:
        """(first row, one behind the last) of each; none has a single row, where there are more."""
        step = max(rows or self.rows, self.unit)
        starts = list(range(0, self.batch, step))
        if len(starts) > 1 and self.batch - starts[-1] == 1:
            starts.pop()
        return list(zip(starts, [*starts[1:], self.batch]))

    def smaller(self, rows: int) -> int | None:
        """Half as many rows, or None."""
        half = rows // 2 // self.unit * self.unit
        return half if half >= max(2, self.unit) else None

    def words(self, rows: int | None = None) -> str:
        count = len(self.parts(rows))
        return f"in {count} part{'s' * (count > 1)} of {max(rows or self.rows, self.unit)} rows"


def plan(graph: Graph, forward_inputs: int, room: int = PART_BYTES) -> Plan | None:
    """None: the task is judged as a whole."""
    shapes = [graph.nodes[n].parts[p]["shape"] for n, p in graph.outputs]
    if not graph.exact or graph.mutated or not shapes or not all(shapes):
        return None
    batch = shapes[0][0]
    if batch < 2 * TRIED_ROWS or any(s[0] != batch for s in shapes):
        return None
    fits = [k for k in range(forward_inputs) if _may_be_cut(graph.nodes[k], batch)]
    for cut in [frozenset(fits), *(frozenset([k]) for k in fits)]:
        marked = keeps_rows_apart(graph, cut, batch) if cut else None
        if marked is not None and all(place in marked for place in graph.outputs):
            row = _row_bytes(graph, marked, batch)
            unit = -(-batch // MOST_UNITS)
            rows = min(max(room // row // unit * unit, unit, 2), batch)
            return Plan(batch, cut, unit, rows, row)
    return None


def _may_be_cut(leaf: Node, batch: int) -> bool:
    part, step = leaf.parts[0], 1
    if not part["shape"] or part["shape"][0] != batch:
        return False
    for size, stride in zip(reversed(part["shape"]), reversed(part["strides"])):
        if size != 1 and stride != step:
            return False
        step *= size
    return True


def _row_bytes(graph: Graph, marked: set[tuple[int, int]], batch: int) -> int:
    """Everything in float64, and for outputs what is compared with them."""
    elements = sum(math.prod(graph.nodes[n].parts[p]["shape"]) for n, p in marked)
    results = sum(math.prod(graph.nodes[n].parts[p]["shape"]) for n, p in graph.outputs)
    return max(-(-(8 * elements + 24 * results) // batch), 1)


# ---- which operators keep rows apart -----------------------------------------------------------


def keeps_rows_apart(graph: Graph, cut: frozenset[int], batch: int) -> set[tuple[int, int]] | None:
    """The results (node, part) whose first dimension is the batch (or a multiple of it); None: rows meet somewhere."""
    marked = {(k, 0) for k in cut}
    for number, node in graph.operators():
        if not any(place in marked for place in node.reads()):
            continue
        if not _keeps(graph, node, marked):
            return None
        for part, info in enumerate(node.parts):
            if not info["shape"] or info["shape"][0] % batch:
                return None
            marked.add((number, part))
    return marked


def _keeps(graph: Graph, node: Node, marked: set[tuple[int, int]]) -> bool:
    name, args = node.name.rstrip("_"), node.args
    rows = [_is_marked(arg, marked) for arg in args]
    first = graph.nodes[args[0]["node"]].parts[args[0].get("part", 0)]["shape"] if args and "node" in args[0] else []
    if name in ELEMENTWISE or name in UNIFORM:
        return _lines_up(graph, node, marked)
    if name in ("cat", "stack"):
        return _joins(graph, node, marked)
    if name == "bmm" or name in ATTENTION:
        return all(_is_marked(arg, marked) for arg in args if "node" in arg)
    if name == "addmm":
        return rows[1] and not rows[2] and (rows[0] or _broadcasts(graph, args[0], 2))
    if name == "embedding":
        return len(rows) > 1 and rows[1] and not rows[0]
    if not rows or not rows[0] or any(rows[1:]):
        return False
    if name in ALONG:
        return _not_along_rows(args[ALONG[name]] if len(args) > ALONG[name] else {}, len(first))
    if name in ("native_layer_norm", "_fused_rms_norm"):
        return len(args[1].get("ints", first)) < len(first)
    if name in TRAINS:
        return len(args) > 5 and args[5].get("value") is False
    if name in RESHAPES:
        return True  # row-major: rows stay where they are, as long as the first size is a multiple of the batch
    if name in POOLS:
        return len(first) >= (2 if "1d" in name else 3 if "2d" in name else 4)
    return name in WITH_WEIGHTS or _moves_other_dimensions(name, node, len(first))


def _is_marked(arg: Any, marked: set[tuple[int, int]]) -> bool:
    return isinstance(arg, dict) and "node" in arg and (arg["node"], arg.get("part", 0)) in marked


def _lines_up(graph: Graph, node: Node, marked: set[tuple[int, int]]) -> bool:
    """Operands have the rows in their first dimension, or are the same for all rows."""
    rank = len(node.shape)
    for arg in [*node.args, *node.kwargs.values()]:
        if not isinstance(arg, dict) or "node" not in arg:
            continue
        shape = graph.nodes[arg["node"]].parts[arg.get("part", 0)]["shape"]
        fits = shape[:1] == node.shape[:1] and len(shape) == rank if _is_marked(arg, marked) else _broadcasts(graph, arg, rank)
        if not fits:
            return False
    return True


def _broadcasts(graph: Graph, arg: Any, rank: int) -> bool:
    shape = graph.nodes[arg["node"]].parts[arg.get("part", 0)]["shape"] if "node" in arg else []
    return len(shape) < rank or shape[0] == 1


def _joins(graph: Graph, node: Node, marked: set[tuple[int, int]]) -> bool:
    items = node.args[0].get("list", [])
    dim = node.args[1].get("value", 0) if len(node.args) > 1 else 0
    return all(_is_marked(item, marked) for item in items) and _other_dimension(dim, len(node.shape))


def _other_dimension(dim: Any, rank: int) -> bool:
    return type(dim) is int and dim % max(rank, 1) != 0


def _not_along_rows(arg: Any, rank: int) -> bool:
    dims = arg.get("ints", [arg["value"]] if type(arg.get("value")) is int else [])
    return bool(dims) and all(_other_dimension(d, rank) for d in dims)


def _moves_other_dimensions(name: str, node: Node, rank: int) -> bool:
    args = node.args
    if name == "expand":
        return len(args[1].get("ints", [])) == rank
    if name == "permute":
        return args[1].get("ints", [1])[0] % max(rank, 1) == 0
    if name == "transpose":
        return all(_other_dimension(a.get("value"), rank) for a in args[1:3])
    if name == "constant_pad_nd":
        return len(args[1].get("ints", [])) // 2 < rank
    if name in ONE_DIM:
        place = 2 if name in ("split", "split_with_sizes", "chunk") else 1
        dim = args[place].get("value") if len(args) > place else 0
        return _other_dimension(dim, rank + (name == "unsqueeze"))
    return False


# ---- the same on a part ------------------------------------------------------------------------


def same_but_for_rows(whole: Graph, part: Graph, batch: int, rows: int) -> bool:
    """Do two traces, of all rows and of some, differ only in sizes of tensors?"""
    one, other = ([graph.nodes[i] for i in sorted(graph.live())] for graph in (whole, part))
    if len(one) != len(other) or whole.outputs != part.outputs:
        return False
    return all(
        a.op == b.op
        and all(_alike(x, y, batch, rows) for x, y in _pairs(a, b))
        and [_shrunk(p["shape"], batch, rows, p["shape"] != q["shape"]) for p, q in zip(a.parts, b.parts)]
        == [q["shape"] for q in b.parts]
        for a, b in zip(one, other)
    )


def _pairs(a: Node, b: Node) -> Iterator[tuple[Any, Any]]:
    if len(a.args) != len(b.args) or a.kwargs.keys() != b.kwargs.keys():
        yield 0, 1
    yield from ((x, y) for k, (x, y) in enumerate(zip(a.args, b.args)) if (a.name, k) != GROUP_NORM_BATCH)
    yield from ((a.kwargs[k], b.kwargs.get(k)) for k in a.kwargs)


def _shrunk(shape: list[int], batch: int, rows: int, differs: bool) -> list[int]:
    return [shape[0] // batch * rows, *shape[1:]] if differs and shape and shape[0] % batch == 0 else shape


def _alike(x: Any, y: Any, batch: int, rows: int) -> bool:
    if x == y:
        return True
    if isinstance(x, dict) and isinstance(y, dict) and "ints" in x and "ints" in y:
        return _shrunk(x["ints"], batch, rows, True) == y["ints"]
    return False
