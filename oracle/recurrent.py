# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers (torch's lstm, gru, rnn_tanh, rnn_relu) as few nodes: a product for all steps, then one node for the steps.

Hides torch's function mode. Without it a graph has a dozen nodes for each step of each layer.

1. What the first layer of a node gets is multiplied beforehand, for all steps at once: `gates` = x W_ih' + b_ih, an ordinary product.
2. Layers that run one way only stand in one node, STACK of them at most: a kernel can let them follow each other step by
   step. Of both directions, each layer is a node of its own.
3. The node's result is one row of numbers: the last layer's h of each step, then the last h of every layer, then c.
   `finish` leaves of it what the task uses, where that is one of the three.
4. What is not taken (packed sequences, projections, dropout in training, gradients) is traced as the steps it is.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from .graph import Graph, Node, TooBig, Tracer, tensor_part

STACK = 6
MOST_STEPS = 600  # that a body has
KINDS = {"lstm": "lstm", "gru": "gru", "rnn_tanh": "tanh", "rnn_relu": "relu"}
GATES = {"lstm": 4, "gru": 3, "tanh": 1, "relu": 1}
OP = "cutegen.recurrent.default"
RESULTS = ("y", "h", "c")


class Recurrent(TorchFunctionMode):
    """Inside `with`, beside a tracer."""

    def __init__(self, tracer: Tracer) -> None:
        super().__init__()
        self.tracer = tracer

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kind = KINDS.get(getattr(func, "__name__", ""))
        if kind is None or kwargs or self.tracer.following or not _takes(kind, args):
            return func(*args, **(kwargs or {}))
        return _Call(self.tracer, func, kind, args).run()


def _takes(kind: str, args: Any) -> bool:
    """Padded input, every layer with two weights and their biases or none; see torch's schema of lstm."""
    if len(args) != 9 or not isinstance(args[0], torch.Tensor) or args[0].dim() != 3:
        return False
    x, _, weights, biases, layers, dropout, train, both, _ = args
    if not isinstance(biases, bool) or (dropout and train):
        return False
    each = 4 if biases else 2
    return len(weights) == layers * (2 if both else 1) * each and min(x.shape) > 0


class _Call:
    def __init__(self, tracer: Tracer, func: Any, kind: str, args: Any) -> None:
        self.tracer, self.func, self.kind = tracer, func, kind
        self.x, hx, self.weights, self.biases, self.layers, _, _, both, self.batch_first = args
        self.h: Any = hx[0] if kind == "lstm" else hx
        self.c: Any = hx[1] if kind == "lstm" else None
        self.ways = 2 if both else 1
        self.each = 4 if self.biases else 2

    def run(self) -> Any:
        x = (self.x.transpose(0, 1) if self.batch_first else self.x).contiguous()  # one copy for both directions
        size = 1 if self.ways == 2 else min(STACK, self.layers)
        last_h, last_c = [], []
        for first in range(0, self.layers, size):
            count = min(size, self.layers - first)
            x, h, c = self._stack(x, first, count)
            last_h.append(h)
            last_c.append(c)
        y = x.transpose(0, 1) if self.batch_first else x
        h = last_h[0] if len(last_h) == 1 else torch.cat(last_h)
        if self.kind != "lstm":
            return y, h
        return y, h, last_c[0] if len(last_c) == 1 else torch.cat(last_c)

    def _weight(self, layer: int, way: int) -> list[torch.Tensor]:
        at = (layer * self.ways + way) * self.each
        return list(self.weights[at : at + self.each])

    def _state(self, state: Any, first: int, count: int) -> Any:
        """Of these layers; None where it is known to be zero."""
        if state is None or self.tracer.nodes[self.tracer.node_of(state)[0]].name in ("zeros", "zeros_like", "new_zeros"):
            return None
        return state if count == self.layers else state.narrow(0, first * self.ways, count * self.ways)

    def _stack(self, x: torch.Tensor, first: int, count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        steps, batch = x.shape[0], x.shape[1]
        below = [self._weight(first, way) for way in range(self.ways)]
        gates = [torch.nn.functional.linear(x, w[0], w[2] if self.biases else None) for w in below]
        rest = [self._weight(layer, 0) for layer in range(first + 1, first + count)]
        h, c = self._state(self.h, first, count), self._state(self.c, first, count)
        made = self._real(x, first, count)
        arguments = [
            gates,
            [w[1] for w in below + rest],
            [w[3] for w in below + rest] if self.biases else [],
            [w[0] for w in rest],
            [w[2] for w in rest] if self.biases else [],
            h,
            c,
        ]
        flat = self._node(arguments, made, {"kind": {"text": self.kind}, "layers": {"value": count}})
        hidden = below[0][1].shape[1]
        sizes = [[steps, batch, self.ways * hidden]] + [[count * self.ways, batch, hidden]] * (len(made) - 1)
        results, at = [], 0
        for size, tensor in zip(sizes, made):
            results.append(flat.narrow(0, at, tensor.numel()).view(size))
            at += tensor.numel()
        return results[0], results[1], results[-1]

    def _real(self, x: torch.Tensor, first: int, count: int) -> list[torch.Tensor]:
        """y, h (and c) as torch makes them, not traced."""
        hidden = self._weight(first, 0)[1].shape[1]
        if x.device.type == "meta":
            last = x.new_empty(count * self.ways, x.shape[1], hidden)
            return [x.new_empty(x.shape[0], x.shape[1], self.ways * hidden), last, last][: 3 if self.kind == "lstm" else 2]
        self.tracer.paused = True
        try:
            states = [s.narrow(0, first * self.ways, count * self.ways).contiguous() for s in (self.h, self.c) if s is not None]
            weights = [w for layer in range(first, first + count) for way in range(self.ways) for w in self._weight(layer, way)]
            hx = tuple(states) if self.kind == "lstm" else states[0]
            return list(self.func(x, hx, weights, self.biases, count, 0.0, False, self.ways == 2, False))
        finally:
            self.tracer.paused = False

    def _node(self, arguments: list[Any], made: list[torch.Tensor], kwargs: dict[str, Any]) -> torch.Tensor:
        tracer = self.tracer
        node = Node(OP, [tracer._argument(a) if a != [] else {"list": []} for a in arguments], {**kwargs, "result": {"text": "all"}})
        tracer.paused = True
        try:
            flat = torch.cat([m.reshape(-1) for m in made])
        finally:
            tracer.paused = False
        if tracer.limit and flat.numel() > tracer.limit:
            raise TooBig(f"a recurrent layer makes {flat.numel()} elements")
        node.parts = [tensor_part(flat)]
        tracer.nodes.append(node)
        tracer.mark(flat, len(tracer.nodes) - 1, 0)
        return flat


def finish(graph: Graph) -> None:
    """A node of whose results one is used makes that one alone, and what took it from the row becomes a view."""
    users = graph.consumers()
    for number, node in enumerate(graph.nodes):
        taken = users.get(number, [])
        if node.op != OP or len(taken) != 1 or graph.nodes[taken[0]].name != "slice":
            continue
        part = graph.nodes[taken[0]]
        shapes = {tuple(graph.nodes[u].shape) for u in users.get(taken[0], [])}
        if len(shapes) != 1 or any(graph.nodes[u].name != "view" for u in users[taken[0]]):
            continue
        shape = list(shapes.pop())
        start = part.args[2].get("value", 0) if len(part.args) > 2 else 0
        which = 0 if start == 0 else 1 if start + part.numel < node.numel or node.kwargs["kind"]["text"] != "lstm" else 2
        strides = [1] * len(shape)
        for d in range(len(shape) - 2, -1, -1):
            strides[d] = strides[d + 1] * shape[d + 1]
        node.kwargs["result"] = {"text": RESULTS[which]}
        node.parts = [{**node.parts[0], "shape": shape, "strides": strides}]
        graph.nodes[taken[0]] = Node("aten.view.default", [{"node": number}, {"ints": shape}], parts=[dict(node.parts[0])])


def formula(
    gates: list[Any], w_hh: list[Any], b_hh: list[Any], w_ih: list[Any], b_ih: list[Any], h: Any, c: Any, kind: str = "",
    layers: int = 1, result: str = "all",
) -> Any:
    """The node as the steps it is."""
    ways = len(gates)
    if gates[0].shape[0] * ways * layers > MOST_STEPS:
        raise NotImplementedError("a body of so many steps")
    last_h: list[Any] = []
    last_c: list[Any] = []
    made: list[Any] = []
    for layer in range(layers):
        below, made = made, []
        for way in range(ways):
            k = layer * ways + way
            given = gates[way] if layer == 0 else torch.matmul(below[0], w_ih[layer - 1].t()) + (b_ih[layer - 1] if b_ih else 0)
            hidden = w_hh[k].shape[1]
            zero = given.new_zeros(given.shape[1], hidden)
            one = _steps(given, w_hh[k], b_hh[k] if b_hh else None, zero if h is None else h[k], zero if c is None else c[k], kind, way == 1)
            made.append(one[0])
            last_h.append(one[1])
            last_c.append(one[2])
    parts = {"y": made[0] if ways == 1 else torch.cat(made, 2), "h": torch.stack(last_h)}
    if kind == "lstm":
        parts["c"] = torch.stack(last_c)
    return torch.cat([p.reshape(-1) for p in parts.values()]) if result == "all" else parts[result]


def _steps(gates: Any, w: Any, b: Any, h: Any, c: Any, kind: str, reverse: bool) -> Any:
    count = gates.shape[0]
    made: list[Any] = [None] * count
    for t in range(count - 1, -1, -1) if reverse else range(count):
        inner = torch.mm(h, w.t())
        inner = inner if b is None else inner + b
        h, c = _cell(kind, gates[t], inner, h, c)
        made[t] = h
    return torch.stack(made), h, c


def _cell(kind: str, given: Any, inner: Any, h: Any, c: Any) -> tuple[Any, Any]:
    if kind == "tanh":
        return torch.tanh(given + inner), c
    if kind == "relu":
        return torch.relu(given + inner), c
    if kind == "gru":
        (r, z, n), (hr, hz, hn) = given.chunk(3, 1), inner.chunk(3, 1)
        z = torch.sigmoid(z + hz)
        n = torch.tanh(n + torch.sigmoid(r + hr) * hn)
        return (1 - z) * n + z * h, c
    i, f, g, o = (given + inner).chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c
