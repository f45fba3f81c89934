# SPDX-License-Identifier: Apache-2.0
"""groups.py - parts of an FX graph that may become one kernel.

A group is an anchor (a product, a convolution, attention, a norm, a softmax) and the chain of elementwise operators
after it, each the only user of the one before. So nothing outside reads a value inside, and no path leaves a group and returns: the group
can take the place of its last operator. No operator between its first and its last writes into a tensor or turns autograd or autocast on or off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import getitem
from typing import Any

import torch

from cutegen.trace import Task, Untraceable, make_task

ANCHORS = frozenset(
    """linear matmul bmm mm addmm baddbmm conv1d conv2d conv3d scaled_dot_product_attention layer_norm rms_norm group_norm
    batch_norm softmax log_softmax einsum cumsum""".split()
)
FOLLOWERS = frozenset(
    """gelu relu relu_ silu silu_ sigmoid tanh add mul sub truediv div neg exp leaky_relu elu softplus mish hardswish hardtanh
    hardsigmoid clamp square pow sqrt rsqrt iadd imul dropout""".split()
)
WHOLE_LIMIT = 48  # operators of a graph that is tried whole


@dataclass
class Group:
    """Nodes of one graph, in order; `inputs` are those outside that they read."""

    nodes: list[torch.fx.Node]
    inputs: list[torch.fx.Node]
    samples: list[torch.Tensor]  # like the inputs: real where known, fake otherwise
    weights: int  # the last of the inputs: parameters
    results: list[torch.fx.Node]
    text: str

    def task(self) -> Task:
        """Its task; Untraceable where it cannot be one."""
        graph = torch.fx.Graph()
        known = {node: graph.placeholder(f"a{i}") for i, node in enumerate(self.inputs)}
        for node in self.nodes:
            known[node] = graph.node_copy(node, lambda n: known[n])
        graph.output([known[r] for r in self.results])
        owner = self.nodes[0].graph.owning_module
        module = torch.fx.GraphModule(owner if owner is not None else torch.nn.Module(), graph)
        fakes = [_fake(node, sample) for node, sample in zip(self.inputs, self.samples)]
        seen: list[Any] = []

        def function(*tensors: torch.Tensor) -> Any:
            made = module(*tensors)
            seen[:] = [(t.shape, t.dtype) for t in made]
            return made

        task = make_task("_".join(self.text.split()[:4]), function, fakes, self.weights, self.samples)
        values = [_value(r) for r in self.results]
        if seen != [(v.shape, v.dtype) for v in values if v is not None]:
            raise Untraceable("by itself it gives another shape or type than in the graph (autocast inside it)")
        return task


def _fake(node: torch.fx.Node, sample: torch.Tensor) -> torch.Tensor:
    held = node.meta.get("example_value")
    return held if isinstance(held, torch.Tensor) else sample


def _name(node: torch.fx.Node) -> str:
    if node.op == "call_method":
        return str(node.target)
    return getattr(node.target, "__name__", str(node.target)) if node.op == "call_function" else node.op


def _value(node: torch.fx.Node) -> torch.Tensor | None:
    value = node.meta.get("example_value")
    return value if isinstance(value, torch.Tensor) else None


def _is_weight(node: torch.fx.Node, value: Any) -> bool:
    return node.op == "placeholder" and (isinstance(value, torch.nn.Parameter) or "_parameters_" in node.name or "_buffers_" in node.name)


def _given(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> dict[torch.fx.Node, Any]:
    holders = [n for n in graph.graph.nodes if n.op == "placeholder"]
    return dict(zip(holders, inputs))


def _group(nodes: list[torch.fx.Node], results: list[torch.fx.Node], given: dict[torch.fx.Node, Any]) -> Group | None:
    """The group of these nodes, or None where it reads something that is not a tensor."""
    inside = set(nodes)
    outside: list[torch.fx.Node] = []
    for node in nodes:
        for read in node.all_input_nodes:
            if read not in inside and read not in outside:
                outside.append(read)
    samples = {n: given.get(n) if isinstance(given.get(n), torch.Tensor) else _value(n) for n in outside}
    if any(not isinstance(s, torch.Tensor) for s in samples.values()) or not outside:
        return None
    if any(node.op not in ("call_function", "call_method") for node in nodes):
        return None
    ordered = [n for n in outside if not _is_weight(n, samples[n])] + [n for n in outside if _is_weight(n, samples[n])]
    weights = sum(_is_weight(n, samples[n]) for n in outside)
    return Group(nodes, ordered, [samples[n] for n in ordered], weights, results, " ".join(_name(n) for n in nodes))


WRITERS = frozenset("iadd isub imul imatmul itruediv ifloordiv imod ipow iand ior ixor ilshift irshift setitem batch_norm instance_norm".split())


def _sets_mode(node: torch.fx.Node) -> bool:
    """It turns autograd, autocast or the like on or off for what comes after it."""
    return node.op == "call_function" and _name(node).startswith(("_enter", "_exit", "_set", "set_grad", "_saved_tensors"))


def _may_write(node: torch.fx.Node) -> bool:
    """It may write into a tensor that others read, or does something that is not known here."""
    if node.op not in ("call_function", "call_method"):
        return node.op == "call_module"
    target, name = node.target, _name(node)
    if isinstance(target, torch._ops.HigherOrderOperator):
        return True
    if isinstance(target, torch._ops.OpOverload):
        return target._schema.is_mutable
    in_place = "out" in node.kwargs or node.kwargs.get("inplace") or any(a is True for a in node.args[1:])
    return bool(in_place) or name in WRITERS or name.endswith("_") and not name.endswith("__")


def whole_of(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Group | None:
    """The whole graph as one group, if it is small and made of tensors."""
    nodes = [n for n in graph.graph.nodes if n.op not in ("placeholder", "output")]
    ends = [n for n in graph.graph.nodes if n.op == "output"][0]
    results = list(dict.fromkeys(ends.all_input_nodes))
    if not 0 < len(nodes) <= WHOLE_LIMIT or any(map(_sets_mode, nodes)) or any(r not in nodes or _value(r) is None for r in results):
        return None
    return _group(nodes, results, _given(graph, inputs))


def _extends(last: torch.fx.Node, after: torch.fx.Node) -> bool:
    """`after` computes element by element on what `last` gives, in the same shape and type."""
    a, b = _value(last), _value(after)
    if a is None or b is None or _name(after) not in FOLLOWERS or a.shape != b.shape or a.dtype != b.dtype:
        return False
    return not (_name(after) == "dropout" and True in (after.args[2:3] or (after.kwargs.get("training", True),)))


def groups_of(graph: torch.fx.GraphModule, inputs: Sequence[Any], anchors: Sequence[str] | None = None) -> list[Group]:
    """Every anchor (of these names, if given) with what follows it."""
    wanted = ANCHORS if anchors is None else frozenset(anchors)
    given, found, taken = _given(graph, inputs), [], set()
    order = {node: i for i, node in enumerate(graph.graph.nodes)}
    barriers = [node for node in order if _sets_mode(node) or _may_write(node)]
    for node in graph.graph.nodes:
        if node.op not in ("call_function", "call_method") or _name(node) not in wanted or node in taken or _value(node) is None:
            continue
        chain = [node]
        while len(chain[-1].users) == 1:
            after = next(iter(chain[-1].users))
            if after in taken or not _extends(chain[-1], after):
                break
            if any(order[chain[0]] < order[b] < order[after] and b not in chain for b in barriers):
                break  # the group is computed where its last operator stands: what it reads must be the same there
            chain.append(after)
        group = _group(chain, [chain[-1]], given)
        if group is not None:
            taken.update(chain)
            found.append(group)
    return found


def replaced(copy: torch.fx.GraphModule, graph: torch.fx.GraphModule, parts: Sequence[tuple[Group, Task, Any]]) -> torch.fx.GraphModule:
    """`copy`, a copy of `graph`, with each part's kernel in its place."""
    twins = dict(zip(graph.graph.nodes, copy.graph.nodes))
    for group, task, operator in parts:
        last = twins[group.nodes[-1]]
        arguments = tuple(twins[group.inputs[i]] for i in task.inputs)
        with copy.graph.inserting_after(last):
            made = copy.graph.call_function(operator, arguments)
        results = [made]
        made.meta = dict(last.meta)
        if len(group.results) > 1:
            made.meta = {}
            results = []
            for i in range(len(group.results)):
                with copy.graph.inserting_after(results[-1] if results else made):
                    results.append(copy.graph.call_function(getitem, (made, i)))
        for old, new in zip(group.results, results):
            twins[old].replace_all_uses_with(new)
        gone = [twins[node] for node in reversed(group.nodes)]
        twins.update(zip(group.results, results))  # a later part may read them
        for node in gone:
            copy.graph.erase_node(node)
    copy.graph.lint()
    copy.recompile()
    return copy

