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
from oracle.places import places_traced  # noqa: E402
from oracle.task import DTYPES  # noqa: E402


def value_of(arg: dict[str, Any], values: list[Any]) -> Any:
    if "node" in arg:
        found = values[arg["node"]]
        return found[arg.get("part", 0)] if isinstance(found, (list, tuple)) else found
    if "list" in arg:
        return [value_of(a, values) for a in arg["list"]]
    if "dtype" in arg:
        return next(dtype for dtype, name in DTYPES.items() if name == arg["dtype"])
    if arg.get("text") in ("inf", "-inf", "nan"):
        return float(arg["text"])
    return next((arg[key] for key in ("ints", "value") if key in arg), None)


def computed(nodes: list[Node], leaves: list[torch.Tensor], live: set[int] | None = None) -> list[Any]:
    """Every node's value, or that of those which are alive. Nothing is written in place: a node has one value."""
    values: list[Any] = []
    for number, node in enumerate(nodes):
        if live is not None and number not in live:
            values.append(None)
            continue
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
        skipped = ("device", "layout", "pin_memory", "memory_format")
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


def written_to_out(x: torch.Tensor) -> Any:
    room, total, row = torch.empty_like(x), torch.empty(0), torch.zeros(4, 6)
    torch.mul(x, 2.0, out=room)
    torch.sum(room, dim=1, out=total)
    torch.exp(x[1], out=row[2])
    return room, total, row, x + 1


def two_written_to_out(x: torch.Tensor) -> Any:
    value, place = torch.empty(4), torch.empty(4, dtype=torch.long)
    torch.max(x, dim=1, out=(value, place))
    return value * 2, place + 1, x


def lists(x: torch.Tensor) -> Any:
    both = [x.clone(), x * 2]
    torch._foreach_mul_(both, 2.0)
    torch._foreach_add_(both, [x, x], alpha=3)
    return *both, *torch._foreach_addcdiv(both, both, [x, x], 0.5), *torch._foreach_sqrt([x.abs()])


def views_in_place(x: torch.Tensor) -> Any:
    y, z = x.clone(), x.clone()
    column = y[:, 1]
    column.unsqueeze_(1)
    column.mul_(3)
    z.t_()
    z[2].zero_()
    return y, z, column.squeeze_(1) + 1


def diagonals(x: torch.Tensor) -> Any:
    y, z = x.clone(), x.clone()
    y.fill_diagonal_(7.0)
    torch.as_strided(z, (3, 2), (7, 3), 1).mul_(2)
    return y, z


def places(x: torch.Tensor) -> Any:
    i, y = x[:, 0].argmax(), x.clone()
    row = y[i]
    row += 1
    y[:, i % 6] = x[i % 4, i % 6]
    y[1, i, None] -= 2
    part = y[i, 1:3]
    part.mul_(2)
    return y, row, part, y[..., -i - 1], y[i, i]


class Aliases(unittest.TestCase):
    def traced(self, forward: Callable[[torch.Tensor], Any]) -> tuple[Tracer, list[Any], list[torch.Tensor]]:
        torch.manual_seed(5)
        x = torch.randn(4, 6)
        want = forward(x.clone())
        before = x.clone()
        tracer = Tracer([x])
        with torch.no_grad(), tracer, places_traced(tracer):
            results = forward(x)
        outputs = [tracer.node_of(r) for r in results]
        if not tracer.exact:
            return tracer, [], list(want)
        values = computed(tracer.nodes, [before])
        return tracer, [values[n][p] if isinstance(values[n], (list, tuple)) else values[n] for n, p in outputs], list(want)

    def test_a_write_through_a_view_is_seen_by_all_others(self) -> None:
        for forward in (
            rows_and_slices, halves, columns_of_nothing, turned_and_masked, its_argument, parts_of_parts, rows, circular,
            written_to_out, two_written_to_out, lists, views_in_place, diagonals, places,
        ):  # fmt: skip
            with self.subTest(forward.__name__):
                tracer, got, want = self.traced(forward)
                self.assertTrue(tracer.exact)
                for a, b in zip(got, want):
                    torch.testing.assert_close(a, b)

    def test_a_write_into_an_argument_is_told(self) -> None:
        self.assertEqual(self.traced(its_argument)[0].mutated, {0})
        self.assertEqual(self.traced(halves)[0].mutated, set())
        self.assertEqual(self.traced(lambda x: (torch.abs(x, out=x), x))[0].mutated, {0})
        self.assertEqual(self.traced(written_to_out)[0].mutated, set())

    def test_what_no_operator_says_is_told(self) -> None:
        for forward, word in (
            (lambda x: (torch.as_strided(x, (3, 2), (1, 1)).zero_(), x), "as_strided"),
            (lambda x: (x.unfold(1, 2, 2)[:, 1].fill_(3), x), "unfold"),
            (lambda x: (torch.view_as_complex(x.view(4, 3, 2)).mul_(2), x), "view_as_complex"),
            (lambda x: ((y := x.clone()), setattr(y, "data", x * 2), y + 1)[::2], "x.data"),
        ):
            tracer, _, _ = self.traced(forward)
            self.assertFalse(tracer.exact)
            self.assertIn(word, tracer.gap)

    def test_a_trace_does_not_load_a_compiler(self) -> None:
        before = "torch._dynamo" in sys.modules
        self.traced(lambda x: (x.sigmoid(), x))
        self.assertEqual("torch._dynamo" in sys.modules, before)


if __name__ == "__main__":
    unittest.main()
