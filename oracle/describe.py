# SPDX-License-Identifier: Apache-2.0
"""Derive a task's description from its graph: kernel class with evidence, unavoidable bytes and flops, rules for the comparison.

1. bytes_min and flops_min are lower bounds: they exclude work saved by known structure of the inputs, and every product that algebra
   could avoid (one whose result is only summed or multiplied again).
2. flops and bytes "as written" are not bounds, only information for people.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from .compare import Rules
from .facts import Known
from .graph import Graph, Node, attention_sizes, node_flops, product_sizes, reduction_length
from .operators import (
    ADDERS,
    ATTENTION,
    ATTENTION_BACKWARD,
    CONVOLUTIONS,
    FACTORIES,
    GATHERS,
    JOINS,
    LINEAR_KEEPERS,
    OTHER,
    PRODUCTS,
    REDUCTIONS,
    SAME,
    VIEWS,
)

SIZES = {
    "f64": 8,
    "f32": 4,
    "f16": 2,
    "bf16": 2,
    "i64": 8,
    "i32": 4,
    "i16": 2,
    "i8": 1,
    "u8": 1,
    "bool": 1,
    "complex64": 8,
    "complex128": 16,
}
COPIES = {"clone", "_to_copy", "contiguous", "copy_", "copy"}
SUMS, MAX_OPERATORS = 4, 64  # what a rule made of counts allows for; see Analysis.rules()
SOFTMAXES = {"_softmax", "softmax", "_safe_softmax"}
MOVES = VIEWS | SAME | COPIES | FACTORIES | OTHER | {"triu", "tril"}  # no arithmetic


@dataclass
class Structure:
    """Zeros known to be in a matrix."""

    upper: bool = False
    lower: bool = False

    @property
    def diagonal(self) -> bool:
        return self.upper and self.lower


class Analysis:
    """Everything derived from one graph; `known` has the facts of each leaf."""

    def __init__(self, graph: Graph, known: list[Known]) -> None:
        self.graph, self.known = graph, known
        self.nodes = graph.nodes
        self.users, self.readers = graph.consumers(), graph.readers()

    # ---- structure ----------------------------------------------------------------------------

    def structure(self, number: int, depth: int = 0) -> Structure:
        node = self.nodes[number]
        if node.op == "input":
            known = self.known[node.index] if node.index < len(self.known) else Known()
            return Structure(known.upper, known.lower)
        if depth > 16 or not node.sources():
            return Structure()
        inner = self.structure(node.sources()[0], depth + 1)
        if node.name == "triu":
            return Structure(True, inner.lower)
        if node.name == "tril":
            return Structure(inner.upper, True)
        if node.name in ("diag_embed", "diag") and len(node.shape) == 2:
            return Structure(True, True)
        if node.name in ("t", "transpose", "numpy_T"):
            return Structure(inner.lower, inner.upper)
        if (
            node.name in COPIES | SAME | {"expand", "view", "_unsafe_view"}
            and self.nodes[node.sources()[0]].shape == node.shape
        ):
            return inner
        return Structure()

    def product_macs(self, number: int) -> float:
        """Multiplications a product needs when zeros are skipped."""
        node = self.nodes[number]
        batch, m, n, k = product_sizes(self.nodes, node) or (0, 0, 0, 0)
        full = float(batch) * m * n * k
        sources = node.sources()[1:] if node.name in ("addmm", "baddbmm") else node.sources()
        a, b = self.structure(sources[0]), self.structure(sources[1])
        if a.diagonal or b.diagonal:
            return float(batch) * m * n / 2  # one multiplication for a result, nothing to add
        if m == n == k and ((a.upper and b.upper) or (a.lower and b.lower)):
            return float(batch) * n * (n + 1) * (n + 2) / 6
        if a.upper or a.lower or b.upper or b.lower:
            return full / 2
        users = [self.nodes[u] for u in self.users.get(number, [])]
        if (
            m == n
            and users
            and all(u.name in ("triu", "tril") for u in users)
            and all(number != o for o, _ in self.graph.outputs)
        ):
            return full / 2
        return full

    # ---- bounds -------------------------------------------------------------------------------

    def bytes_min(self) -> float:
        """Every input that matters read once, every output written once."""
        total = 0.0
        for number in range(self.graph.leaves):
            node = self.nodes[number]
            known = self.known[node.index] if node.index < len(self.known) else Known()
            read = min(
                self._elements_read(number, 0),
                node.numel,
                math.prod(s for s, t in zip(node.shape, node.parts[0]["strides"]) if t),
            )
            total += read * known.triangle_share() * SIZES.get(node.parts[0]["dtype"], 4)
        for number, part in self.graph.outputs:
            info = self.nodes[number].parts[part]
            total += math.prod(info["shape"]) * SIZES.get(info["dtype"], 4)
        return total

    def _elements_read(self, number: int, depth: int) -> int:
        """Elements of this node's results (a split has several) that anything reads."""
        return sum(self._part_read(number, part, depth) for part in range(len(self.nodes[number].parts)))

    def _part_read(self, number: int, part: int, depth: int) -> int:
        whole = math.prod(self.nodes[number].parts[part]["shape"])
        if (number, part) in self.graph.outputs or depth > 16:
            return whole
        total = 0
        for user in self.readers.get((number, part), []):
            reader = self.nodes[user]
            if reader.name in VIEWS:
                total += self._elements_read(user, depth + 1)
            elif reader.name in GATHERS and reader.sources()[0] == number:
                total += reader.numel
            else:
                return whole
        return min(total, whole)

    def flops_written(self) -> float:
        return sum(node_flops(self.nodes, node) for _, node in self.graph.operators())

    def flops_min(self) -> float:
        total = 0.0
        for number, node in self.graph.operators():
            if node.name in PRODUCTS:
                total += 0.0 if self._can_be_avoided(number) else 2.0 * self.product_macs(number)
            elif node.name == "recurrent":
                total += node_flops(self.nodes, node)
            elif node.name in ATTENTION | ATTENTION_BACKWARD:
                total += node_flops(self.nodes, node) * (
                    0.5 if any(a.get("value") is True for a in [*node.args, *node.kwargs.values()]) else 1.0
                )
            elif node.name not in MOVES and any(number == o for o, _ in self.graph.outputs):
                reads = (
                    self.nodes[node.sources()[0]].numel if node.name in REDUCTIONS and node.sources() else 0
                )
                total += max(node.numel, reads)
        return total

    def _can_be_avoided(self, number: int) -> bool:
        """The product's result is only added up or multiplied again: another order of work may not need it."""
        todo, seen = [number], set()
        while todo:
            current = todo.pop()
            for user in self.users.get(current, []):
                if self.nodes[user].name in ADDERS:
                    return True
                if self.nodes[user].name in LINEAR_KEEPERS and user not in seen:
                    seen.add(user)
                    todo.append(user)
        return False

    # ---- class --------------------------------------------------------------------------------

    def has_convolution(self) -> bool:
        return any(node.name in CONVOLUTIONS for _, node in self.graph.operators())

    def has_product(self) -> bool:
        return any(node.name in PRODUCTS | ATTENTION | ATTENTION_BACKWARD and node.name not in CONVOLUTIONS for _, node in self.graph.operators())

    def classify(self) -> tuple[str, str]:
        """(class, evidence)."""
        if not self.graph.exact:
            return "other", "forward writes into views of tensors, which the graph does not show exactly"
        total = max(self.flops_written(), 1.0)
        thin = ""
        smaller: dict[str, list[tuple[float, str]]] = {}  # products of less than a tenth, by class
        for number, node in self.graph.operators():
            attention = attention_sizes(self.nodes, node)
            if attention:
                return (
                    "attention",
                    f"{node.op}: {attention[0]} heads, {attention[1]} queries x {attention[2]} keys of {attention[3]}",
                )
            sizes = product_sizes(self.nodes, node)
            if not sizes:
                continue
            batch, m, n, k = sizes
            text = f"{node.op}: {f'{batch} x ' if batch > 1 else ''}({m} x {k}) by ({k} x {n})"
            flops = 2.0 * math.prod(sizes)
            if flops < 0.1 * total:
                if min(m, n) > 1 and self.product_macs(number) > batch * m * n:
                    smaller.setdefault("convolution" if node.name in CONVOLUTIONS else "gemm", []).append((flops, text))
                continue
            if self._is_attention(number):
                return "attention", f"{text}, a softmax, and a product of it"
            if self.product_macs(number) <= batch * m * n and k > 1:
                return "pointwise", f"{text}, but one factor is diagonal: rows or columns are scaled"
            if min(m, n) > 1:
                return "convolution" if node.name in CONVOLUTIONS else "gemm", text
            thin = f"{text}: one row or column, so every result is a dot product"
        for kind, found in smaller.items():
            if sum(flops for flops, _ in found) >= 0.5 * total:
                return kind, f"{len(found)} of them, the largest {max(found)[1]}"
        if thin:
            return "reduction", thin
        return self._light_class()

    def _reached(self, number: int, names: set[str]) -> int | None:
        """The first of these operators that needs the node's result, with nothing but small operators in between."""
        todo, seen = [number], {number}
        while todo:
            for user in self.users.get(todo.pop(0), []):
                if self.nodes[user].name in names:
                    return user
                if user not in seen and self.nodes[user].name not in PRODUCTS | SOFTMAXES:
                    seen.add(user)
                    todo.append(user)
        return None

    def _is_attention(self, number: int) -> bool:
        """A batched product whose softmax is multiplied again."""
        weights = self._reached(number, SOFTMAXES) if self.nodes[number].name == "bmm" else None
        return weights is not None and self._reached(weights, {"bmm"}) is not None

    def _light_class(self) -> tuple[str, str]:
        operators = [
            node for _, node in self.graph.operators() if node.name not in VIEWS | SAME | COPIES | FACTORIES
        ]
        reductions = [n for n in operators if n.name in REDUCTIONS]
        if reductions:
            node = max(reductions, key=lambda n: reduction_length(self.nodes, n))
            return "reduction", f"{node.op} over {reduction_length(self.nodes, node)} elements"
        others = [n for n in operators if n.name in OTHER or not self._elementwise(n)]
        if others and all(n.name in JOINS for n in others) and len(others) < len(operators):
            names = sorted({n.name for n in operators})
            return "pointwise", f"elementwise operators, and their results side by side: {', '.join(names[:6])}"
        if others:
            return "other", f"{others[0].op} is neither elementwise nor a reduction nor a product"
        names = sorted({n.name for n in operators})
        return "pointwise", (
            f"only elementwise operators: {', '.join(names[:6])}{', ...' if len(names) > 6 else ''}"
            if names
            else "only copies"
        )

    def _elementwise(self, node: Node) -> bool:
        shapes = [self.nodes[s].shape for s in node.sources()]
        return (
            any(shape == node.shape for shape in shapes)
            or all(math.prod(s) == 1 for s in shapes)
            or math.prod(node.shape)
            == math.prod([max(d, default=1) for d in zip(*[([1] * (8 - len(s)) + s) for s in shapes])])
        )

    # ---- rules --------------------------------------------------------------------------------

    def rules(self) -> Rules:
        """Of the longest sum there is, and three more like it: what a long way of operators makes of its rounding is
        measured (noise.py), not assumed."""
        terms, longest, count = 0, 0, 0
        for _, node in self.graph.operators():
            if node.name in VIEWS | SAME | FACTORIES:
                continue
            length = reduction_length(self.nodes, node)
            terms += length if length > 1 else 0
            longest = max(longest, length)
            count += MAX_OPERATORS if node.name == "recurrent" else 1  # of each step
        computes = self._computes()
        compute = torch.float64 if set(computes) == {torch.float64} else torch.float32
        return Rules(max(min(terms, SUMS * longest), 1), min(max(count, 1), MAX_OPERATORS), compute, computes=computes)

    def _computes(self) -> tuple[torch.dtype, ...]:
        """For each output: f64 if all arithmetic on the way to it is; 16 bits are computed in f32. A narrower type counts once
        something is computed with it: as the type of a result it does not."""
        kinds: list[set[str]] = []
        narrowed: list[set[str]] = []
        for node in self.nodes:
            sources = [s for s in node.sources() if s < len(kinds)]
            found, short = (set[str]().union(*(of[s] for s in sources)) for of in (kinds, narrowed))
            own = {part["dtype"] for part in node.parts} if node.op not in ("input", "constant") else set()
            if node.name not in MOVES:
                found, short = found | short | own, set()
            elif any(part["dtype"] == "f64" for s in sources for part in self.nodes[s].parts):
                short |= own
            kinds.append(found)
            narrowed.append(short)
        return tuple(
            torch.float64 if "f64" in kinds[n] and not kinds[n] & {"f32", "f16", "bf16"} else torch.float32
            for n, _ in self.graph.outputs
        )

    def factors(self) -> dict[int, int]:
        """Inputs whose elements are multiplied with each other, as they are, and how many of them make one result."""
        found: dict[int, int] = {}
        for _, node in self.graph.operators():
            if node.name not in ("prod", "cumprod") or not node.sources():
                continue
            source = self.nodes[node.sources()[0]]
            while source.op != "input" and source.sources() and source.name in VIEWS | SAME | {"clone", "_to_copy", "contiguous"}:
                source = self.nodes[source.sources()[0]]
            if source.op == "input":
                found[source.index] = max(found.get(source.index, 0), reduction_length(self.nodes, node))
        return found

    def float_index(self) -> bool:
        """Is an index computed from floating point values? Then these must stay as the task makes them."""
        for _, node in self.graph.operators():
            if node.name in GATHERS | {
                "scatter",
                "scatter_add",
                "index_add",
                "index_put",
                "nll_loss_forward",
                "one_hot",
            }:
                todo = node.sources()[1:]
                while todo:
                    inner = self.nodes[todo.pop()]
                    if (
                        inner.op == "input"
                        and inner.parts[0]["dtype"] in ("f64", "f32", "f16", "bf16")
                        and node.name != "nll_loss_forward"
                    ):
                        if node.name in ("embedding", "index", "index_select", "gather"):
                            return True
                    todo += inner.sources()
        return False


def tensor_entry(name: str, role: str, info: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "role": role, **info}
