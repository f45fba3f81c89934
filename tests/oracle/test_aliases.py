"""Writes through views: the traced graph, computed again, gives what the forward gave."""

from __future__ import annotations

import os
import pathlib
import sys
import unittest
from typing import Any, Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(pathlib.Path(os.environ.get("CUTEGEN_ROOT", pathlib.Path(__file__).resolve().parents[2]))))

import torch  # noqa: E402

from oracle.graph import Node, Tracer  # noqa: E402


def value_of(arg: dict[str, Any], values: list[Any]) -> Any:
    if "node" in arg:
        found = values[arg["node"]]
        return found[arg.get("part", 0)] if isinstance(found, (list, tuple)) else found
    if "list" in arg:
        return [value_of(a, values) for a in arg["list"]]
    return next((arg[key] for key in ("ints", "value") if key in arg), None)


def computed(nodes: list[Node], leaves: list[torch.Tensor]) -> list[Any]:
    """Every node's value. Nothing is written in place: a node has one value."""
    values: list[Any] = []
    for node in nodes:
        if node.op == "input":
            values.append(leaves[node.index].clone())
            continue
        if node.op == "constant":
            values.append(torch.tensor(node.kwargs["value"]))
            continue
        _, name, overload = node.op.split(".")
        args = [value_of(a, values) for a in node.args]
        if args and isinstance(args[0], torch.Tensor):
            args[0] = args[0].clone(memory_format=torch.contiguous_format)
        if name == "_reshape_alias":
            values.append(args[0].reshape(args[1]))
            continue
        skipped = ("device", "layout", "pin_memory", "memory_format", "dtype")
        kwargs = {k: value_of(v, values) for k, v in node.kwargs.items() if k not in skipped}
        values.append(getattr(getattr(torch.ops.aten, name), overload)(*args, **kwargs))
    return values


def rows_and_slices(x: torch.Tensor) -> Any:
    y = x * 2
    y[:, 1:3] = x[:, :2]
    flat = y.view(-1)
    flat[3] = 7.0
    y[0] += 1
    return y, flat * 2


def halves(x: torch.Tensor) -> Any:
    y = x.clone()
    left, right = y.chunk(2, 1)
    turned = y.t()
    right.mul_(3)
    left += right
    return turned.relu(), y


def columns_of_nothing(x: torch.Tensor) -> Any:
    out = torch.zeros(4, 3, 4)
    for k in range(3):
        out[:, k] = x[:, k : k + 4] * (k + 1)
    return out, out[:, -1]


def turned_and_masked(x: torch.Tensor) -> Any:
    y = x.clone()
    z = y.unsqueeze(1).permute(2, 0, 1)
    z[-1].fill_(5.0)
    z[::2] *= 2
    y.masked_fill_(y > 1, 0.0)
    return y, z


def its_argument(x: torch.Tensor) -> Any:
    x[:, 0] = 0
    twin = x.detach()
    x.view(6, 4).transpose(0, 1)[1] = 9
    return twin + 1, x


def parts_of_parts(x: torch.Tensor) -> Any:
    y = x.clone()
    part = y[1:, 2:]
    inner = part[:, :3]
    inner[:, 0] = x[1:, 0]
    part.sub_(1)
    y.view(-1)[::5] = 0
    y.diagonal().add_(2)
    return inner, y, part


def rows(x: torch.Tensor) -> Any:
    y = x + 1
    a, b, c, d = y.unbind(0)
    b.add_(a)
    y.clamp_(min=0)
    return a + b, y.sum(0), c, d


def circular(x: torch.Tensor) -> Any:
    return (torch.nn.functional.pad(x[None, None], (1, 1, 2, 2), mode="circular"),)


class Aliases(unittest.TestCase):
    def traced(self, forward: Callable[[torch.Tensor], Any]) -> tuple[Tracer, list[Any], list[torch.Tensor]]:
        torch.manual_seed(5)
        x = torch.randn(4, 6)
        want = forward(x.clone())
        before = x.clone()
        tracer = Tracer([x])
        with torch.no_grad(), tracer:
            results = forward(x)
        outputs = [tracer.node_of(r) for r in results]
        if not tracer.exact:
            return tracer, [], list(want)
        values = computed(tracer.nodes, [before])
        return tracer, [values[n][p] if isinstance(values[n], (list, tuple)) else values[n] for n, p in outputs], list(want)

    def test_a_write_through_a_view_is_seen_by_all_others(self) -> None:
        for forward in (rows_and_slices, halves, columns_of_nothing, turned_and_masked, its_argument, parts_of_parts, rows, circular):
            with self.subTest(forward.__name__):
                tracer, got, want = self.traced(forward)
                self.assertTrue(tracer.exact)
                for a, b in zip(got, want):
                    torch.testing.assert_close(a, b)

    def test_a_write_into_an_argument_is_told(self) -> None:
        self.assertEqual(self.traced(its_argument)[0].mutated, {0})
        self.assertEqual(self.traced(halves)[0].mutated, set())

    def test_what_no_operator_says_is_told(self) -> None:
        tracer, _, _ = self.traced(lambda x: (torch.as_strided(x, (2, 2), (6, 1)).zero_(), x))
        self.assertFalse(tracer.exact)

    def test_a_trace_does_not_load_a_compiler(self) -> None:
        before = "torch._dynamo" in sys.modules
        self.traced(lambda x: (x.sigmoid(), x))
        self.assertEqual("torch._dynamo" in sys.modules, before)


if __name__ == "__main__":
    unittest.main()
