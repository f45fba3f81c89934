# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers are few nodes of a graph (oracle/recurrent.py): of the right values, and a formula gives the same."""
import os
import pathlib
import sys
import unittest

import torch
from torch import nn

sys.path.insert(0, os.environ.get("CUTEGEN_ROOT", str(pathlib.Path(__file__).resolve().parents[2])))

from oracle import primitives, recurrent  # noqa: E402
from oracle.graph import Graph, Tracer  # noqa: E402

LAYERS = {
    "lstm": (lambda: nn.LSTM(6, 4, 2), ["y"], lambda r: [r[0]]),
    "lstm, all results": (lambda: nn.LSTM(6, 4, 2), ["all"], lambda r: [r[0], *r[1]]),
    "lstm, the last c": (lambda: nn.LSTM(6, 4), ["c"], lambda r: [r[1][1]]),
    "gru, the last h": (lambda: nn.GRU(6, 4, 2), ["h"], lambda r: [r[1]]),
    "gru, both directions": (lambda: nn.GRU(6, 4, 2, bidirectional=True, batch_first=True), ["y", "y"], lambda r: [r[0]]),
    "rnn without biases": (lambda: nn.RNN(6, 4, nonlinearity="relu", bias=False), ["y"], lambda r: [r[0]]),
    "more layers than one node takes": (lambda: nn.RNN(6, 4, 8), ["y", "y"], lambda r: [r[0]]),
}


def traced(model, x, pick):
    leaves = [x, *model.parameters()]
    with torch.no_grad(), Tracer(leaves) as tracer, recurrent.Recurrent(tracer):
        results = pick(model(x))
    graph = Graph(tracer.nodes, len(leaves), [tracer.node_of(r) for r in results], True, set())
    recurrent.finish(graph)
    return graph, leaves, results


def evaluated(graph, leaves):
    """The graph's outputs by its nodes, recurrent ones by their formula."""
    values = dict(enumerate(leaves))

    def value(arg):
        if "node" in arg:
            made = values[arg["node"]]
            return made[arg.get("part", 0)] if isinstance(made, (list, tuple)) else made
        if "list" in arg:
            return [value(a) for a in arg["list"]]
        return next((arg[k] for k in ("ints", "value", "text") if k in arg), None)

    for number, node in graph.operators():
        args = [value(a) for a in node.args]
        if node.op == recurrent.OP:
            values[number] = recurrent.formula(*args, **{k: value(v) for k, v in node.kwargs.items()})
        elif node.name == "clone":  # its memory format is a keyword
            values[number] = args[0].contiguous()
        else:
            space, name, overload = node.op.split(".")
            values[number] = getattr(getattr(getattr(torch.ops, space), name), overload)(*args)
    return [values[number] for number, _ in graph.outputs]


class Recurrent(unittest.TestCase):
    def test_layers_are_few_nodes_of_the_right_values(self):
        for name, (make, results, pick) in LAYERS.items():
            with self.subTest(name), torch.no_grad():
                torch.manual_seed(1)
                model, x = make().double(), torch.randn(5, 3, 6).double()
                graph, leaves, seen = traced(model, x, pick)
                nodes = [n for _, n in graph.operators() if n.op == recurrent.OP]
                self.assertEqual([n.kwargs["result"]["text"] for n in nodes], results)
                self.assertLess(len(list(graph.operators())), 40)
                for want, got, again in zip(pick(model(x)), seen, evaluated(graph, leaves)):
                    self.assertLess((want - got).abs().max().item(), 1e-12)
                    self.assertLess((want - again).abs().max().item(), 1e-12)

    def test_what_is_not_taken_is_traced_as_steps(self):
        for make in (lambda: nn.LSTM(6, 4, proj_size=2), lambda: nn.GRU(6, 4, 2, dropout=0.5)):
            graph, _, _ = traced(make(), torch.randn(5, 3, 6), lambda r: [r[0]])
            self.assertFalse([n for _, n in graph.operators() if n.op == recurrent.OP])

    def test_a_body_of_many_steps_is_left_out(self):
        for steps, expected in ((5, True), (recurrent.MOST_STEPS + 1, False)):
            graph, _, _ = traced(nn.RNN(2, 2), torch.randn(steps, 1, 2), lambda r: [r[0]])
            nodes = graph.write()
            primitives.expand(graph, nodes)
            self.assertEqual([n for n in nodes if n["op"] == recurrent.OP and "body" in n] != [], expected)


if __name__ == "__main__":
    unittest.main()
