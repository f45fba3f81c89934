"""Formulas of operators that are made of simpler ones give what PyTorch gives; complex values leave the description."""

from __future__ import annotations

import math
import os
import pathlib
import sys
import unittest
import unittest.mock
from typing import Any, Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(pathlib.Path(os.environ.get("CUTEGEN_ROOT", pathlib.Path(__file__).resolve().parents[2]))))

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

from oracle import formulas_counts as counts  # noqa: E402
from oracle import formulas_gradients as gradients  # noqa: E402
from oracle import formulas_linalg as linalg  # noqa: E402
from oracle import (
    formulas_sort,  # noqa: E402
    primitives,  # noqa: E402
    ties,  # noqa: E402
)
from oracle import formulas_special as special  # noqa: E402
from oracle.describe import Analysis  # noqa: E402
from oracle.facts import Known  # noqa: E402
from oracle.graph import Graph, Tracer  # noqa: E402


def described(call: Callable[..., Any], *inputs: torch.Tensor) -> list[dict[str, Any]]:
    """The nodes of a forward as the description has them."""
    with torch.no_grad(), Tracer(list(inputs)) as tracer:
        result = call(*inputs)
    results = result if isinstance(result, (list, tuple)) else [result]
    graph = Graph(tracer.nodes, len(inputs), [tracer.node_of(r) for r in results], tracer.exact, tracer.mutated)
    nodes = graph.write()
    primitives.expand(graph, nodes)
    return nodes


def entries(x: torch.Tensor, descending: bool, places: torch.Tensor) -> torch.Tensor:
    """What src/expert/generic/sorts.c sorts: the rank of a value in its row, then its place."""
    rank = (x.unsqueeze(-1) < x.unsqueeze(-2) if descending else x.unsqueeze(-1) > x.unsqueeze(-2)).sum(-1)
    return rank * (1 << 32) + places


def sorted_by_a_kernel(op: str, x: torch.Tensor, numbers: dict[str, Any]) -> torch.Tensor:
    form, size, width = op.split("sort_")[1], x.shape[-1], numbers.get("width", 0)
    made = x if form == "merge" else entries(x, bool(numbers["descending"]), torch.arange(size))
    if form == "tiles":
        return torch.cat([part.sort(-1)[0] for part in made.split(width, -1)], -1)
    if form == "merge":
        made = torch.cat([part.sort(-1)[0] for part in made.split(2 * width, -1)], -1)
        return made if 2 * width < size else (made & 0xFFFFFFFF).int()
    made = (made.sort(-1)[0] & 0xFFFFFFFF).int()
    count = numbers.get("count", size)
    return made[..., count - 1 : count] if form == "nth" else made[..., :count]


def scattered_by_a_kernel(op: str, x: torch.Tensor, index: torch.Tensor, y: torch.Tensor, dim: int) -> torch.Tensor:
    if op == "generic.scatter_add":
        return x.scatter_add(dim, index, y)
    reduce = "amax" if op == "generic.scatter_max" else "prod"
    if x.is_floating_point():
        return x.scatter_reduce(dim, index, y, reduce)
    return x.long().scatter_reduce(dim, index, y.long().contiguous(), reduce).to(x.dtype)


def computed(nodes: list[dict[str, Any]], inputs: tuple[torch.Tensor, ...]) -> list[Any]:
    """The results of described nodes, through their bodies."""
    values: dict[int, Any] = {}
    made: list[Any] = []

    def value(arg: dict[str, Any]) -> Any:
        if "node" in arg:
            found = values[arg["node"]]
            return found[arg.get("part", 0)] if isinstance(found, (list, tuple)) else found
        if "list" in arg:
            return [value(a) for a in arg["list"]]
        if "dtype" in arg:
            return primitives._TYPES[arg["dtype"]]
        if "text" in arg:
            return float(arg["text"]) if arg["text"] in ("inf", "-inf", "nan") else arg["text"]
        return next((arg[key] for key in ("ints", "value") if key in arg), None)

    for node in [n for entry in nodes for n in (*entry.get("body", []), entry)]:
        if node["op"] == "input":
            values[node["id"]] = inputs[node["index"]]
        elif node["op"] == "output":
            made.append(value(node["args"][0]))
        elif "made" in node:
            values[node["id"]] = [value(m) for m in node["made"]]
        elif node["op"] == "constant":
            numbers = [v["value"] for v in node["values"]] if "values" in node else node["value"]
            values[node["id"]] = torch.tensor(numbers, dtype=primitives._TYPES[node["dtype"]]).reshape(node["shape"])
        elif node["op"].startswith("generic.sort_"):
            numbers = {k: value(v) for k, v in node["kwargs"].items()}
            values[node["id"]] = sorted_by_a_kernel(node["op"], value(node["args"][0]), numbers)
        elif node["op"] == "generic.search":
            row, wanted = (value(a) for a in node["args"])
            values[node["id"]] = torch.searchsorted(row, wanted, right=bool(value(node["kwargs"]["right"])))
        elif node["op"] == "generic.special_order":
            x = value(node["args"][0])
            bits = torch.where(x == 0, 0.0, x).view(torch.int64)
            bits = torch.where(bits < 0, bits ^ 0x7FFFFFFFFFFFFFFF, bits)
            values[node["id"]] = torch.where(torch.isnan(x), 0x7FFFFFFFFFFFFFFF, bits)
        elif node["op"].startswith("generic.scatter_"):
            values[node["id"]] = scattered_by_a_kernel(node["op"], *[value(a) for a in node["args"]], value(node["kwargs"]["dim"]))
        else:
            _, name, overload = node["op"].split(".")
            if name in ("view", "_unsafe_view", "_reshape_alias"):  # strides are not the description's
                values[node["id"]] = value(node["args"][0]).reshape(value(node["args"][1]))
                continue
            kwargs = {k: value(v) for k, v in node["kwargs"].items() if k not in ("device", "layout", "pin_memory", "memory_format")}
            values[node["id"]] = getattr(getattr(torch.ops.aten, name), overload)(*[value(a) for a in node["args"]], **kwargs)
    return made


class SmallSystems(unittest.TestCase):
    def test_each_size(self) -> None:
        for n in (1, 2, 5, 33):
            torch.manual_seed(n)
            a, b = torch.randn(3, n, n) + 2 * torch.eye(n), torch.randn(3, n, 4)
            spd = a @ a.transpose(1, 2) + torch.eye(n)
            factor, lower = torch.linalg.cholesky(spd), torch.tril(a) + 3 * torch.eye(n)
            rows = [
                (linalg.inverse(spd)[0], torch.linalg.inv(spd)),
                (linalg.solve(spd, b)[0], torch.linalg.solve(spd, b)),
                (linalg.solve(spd, b[..., 0])[0], torch.linalg.solve(spd, b[..., 0])),
                (linalg.sign_and_log(a)[0], torch.linalg.slogdet(a)[0]),
                (linalg.sign_and_log(a)[1], torch.linalg.slogdet(a)[1]),
                (linalg.cholesky(spd)[0], factor),
                (linalg.cholesky(spd, upper=True)[0], factor.transpose(1, 2)),
                (linalg.solve_triangular(lower, b, upper=False), torch.linalg.solve_triangular(lower, b, upper=False)),
                (linalg.cholesky_solve(b, factor), torch.cholesky_solve(b, factor)),
            ]
            for k, (got, wanted) in enumerate(rows):
                torch.testing.assert_close(got, wanted, rtol=2e-3, atol=2e-3, msg=f"row {k}, size {n}")

    def test_a_singular_matrix_has_the_determinant_0(self) -> None:
        a = torch.tensor([[1.0, 2.0], [2.0, 4.0]])
        self.assertEqual(linalg.determinant(a)[0].item(), 0.0)
        self.assertEqual(linalg.determinant(torch.zeros(3, 3))[0].item(), 0.0)

    def test_too_large_ones_have_no_body(self) -> None:
        nodes = described(torch.linalg.inv, torch.eye(linalg.MOST + 1))
        self.assertFalse(any("body" in n for n in nodes))


class Counts(unittest.TestCase):
    def test_mode_bins_labels(self) -> None:
        x, i, w = torch.randint(0, 4, (5, 9)), torch.randint(0, 6, (50,)), torch.randn(50)
        for dim in (0, 1):
            self.assertTrue((counts.mode(x, dim)[0] == torch.mode(x, dim)[0]).all())
        self.assertTrue((computed(described(lambda i: torch.bincount(i, minlength=8), i), (i,))[0] == torch.bincount(i, minlength=8)).all())
        torch.testing.assert_close(computed(described(lambda i, w: torch.bincount(i, w, 8), i, w), (i, w))[0], torch.bincount(i, w, 8).float())
        self.assertFalse(any("body" in n for n in described(torch.bincount, i)))  # its shape depends on values
        x = torch.randn(3, 5)
        t = torch.tensor([[0, 2, -1, 1, -1], [-1, 0, 0, 0, 0], [0, 1, 2, 3, 4]])
        torch.testing.assert_close(counts.multilabel_margin(x, t, 0)[0], F.multilabel_margin_loss(x, t, reduction="none"))

    def test_alignments(self) -> None:
        for steps, batch, classes, labels in ((12, 3, 6, 4), (5, 1, 4, 1)):
            p = torch.randn(steps, batch, classes).log_softmax(2)
            t = torch.randint(1, classes, (batch, labels))
            ends, lengths = [steps - k % 2 for k in range(batch)], [max(1, labels - k % 2) for k in range(batch)]
            wanted = F.ctc_loss(p, t, ends, lengths, reduction="none")
            flat = torch.cat([t[k, : lengths[k]] for k in range(batch)])
            for targets in (t, flat):
                torch.testing.assert_close(counts.ctc_loss(p, targets, ends, lengths)[0], wanted)
            self.assertEqual(counts.ctc_loss(p[:1], t, [1] * batch, [labels] * batch)[0].isinf().any(), labels > 1)

    def test_lengths_that_torch_wrote_are_constants(self) -> None:
        p, t = torch.randn(6, 2, 4).log_softmax(2), torch.randint(1, 4, (2, 2))
        nodes = described(lambda p, t: F.ctc_loss(p, t, (6, 6), (2, 1)), p, t)
        known = [n for n in nodes if n["op"] == "constant"]
        self.assertEqual([[int(v["value"]) for v in n["values"]] for n in known], [[2, 1]])


class SortsAndScatters(unittest.TestCase):
    def check(self, call: Callable[..., Any], *inputs: torch.Tensor) -> None:
        wanted = call(*inputs)
        nodes = described(call, *inputs)
        self.assertTrue(any("body" in n for n in nodes), "no body")
        got = computed(nodes, inputs)
        for a, b in zip(got, wanted if isinstance(wanted, (list, tuple)) else [wanted]):
            torch.testing.assert_close(a, b, rtol=4e-3, atol=4e-3 if b.dtype == torch.float16 else 1e-5)  # sums in fp32

    def test_sorts(self) -> None:
        torch.manual_seed(3)
        x, few, whole = torch.randn(3, 40), torch.randint(0, 4, (30, 5)).float(), torch.randint(-9, 9, (4, 33)) * (1 << 31)
        few[3, 2] = few[7, 2] = -0.0
        self.check(lambda x: torch.sort(x, 1), x)
        for dim in (0, 1):
            for down in (False, True):
                self.check(lambda x: torch.sort(x, stable=True, dim=dim, descending=down), few)
                self.check(lambda x: torch.sort(x, stable=True, dim=dim, descending=down), whole)
                self.check(lambda x: torch.topk(x, 3, dim, largest=down)[0], few)
        self.check(lambda x: torch.topk(x, 7), x)
        self.check(lambda x: torch.topk(x, 7)[0], whole)
        self.check(lambda x: torch.kthvalue(x, 9, 1), x)
        self.check(lambda x: torch.median(x, 0), x[:, :5].contiguous())
        self.check(lambda x: torch.sort(x), torch.tensor(2.0))

    def test_rows_longer_than_a_block_sorts(self) -> None:
        x = torch.randn(1, 40)
        with unittest.mock.patch.object(formulas_sort, "ROW", 8):
            self.check(lambda x: torch.sort(x, 1), x)
        with unittest.mock.patch.object(formulas_sort, "TOP", 4):
            self.check(lambda x: torch.topk(x, 5, 1), x)

    def test_a_nan_with_a_sign_is_still_the_largest_number(self) -> None:
        """recipes/scatters.cuh compares bits as whole numbers, so memory holds no other NaN than its own."""
        i, y = torch.zeros(1, 7, dtype=torch.int64), torch.randn(1, 7)
        x = torch.tensor([0xFFC00000 - (1 << 32)], dtype=torch.int32).view(torch.float32).expand(1, 7).contiguous()
        for reduce in ("amax", "amin"):
            nodes = described(lambda x, i, y: torch.scatter_reduce(x, 0, i, y, reduce), x, i, y)
            held: list[torch.Tensor] = []

            def keep(op: str, x: torch.Tensor, *rest: Any) -> torch.Tensor:
                held.append(x)
                return x

            with unittest.mock.patch(f"{__name__}.scattered_by_a_kernel", keep):
                computed(nodes, (x, i, y))
            self.assertTrue(bool((held[0].contiguous().view(torch.int32) > 0).all()), reduce)

    def test_weight_by_direction_and_length(self) -> None:
        v, g = torch.randn(4, 3, 5), torch.rand(4, 1, 1) + 0.5
        self.check(lambda v, g: torch._weight_norm(v, g, 0), v, g)
        self.check(lambda v, g: torch._weight_norm(v, g, 2), v, torch.rand(1, 1, 5) + 0.5)

    def test_scatters(self) -> None:
        torch.manual_seed(4)
        x, i, y = torch.randn(6, 9), torch.randint(0, 6, (8, 7)), torch.randn(8, 9)
        self.check(lambda x, i, y: torch.scatter_add(x, 0, i, y), x, i, y)
        self.check(lambda x, i, y: torch.scatter(x, 0, i[:1], y), x, i, y)
        self.check(lambda x, i: torch.scatter(x, 0, i[:1], 2.5), x, i)
        for self_too in (False, True):
            self.check(lambda x, i, y: torch.scatter_reduce(x, 0, i, y, "mean", include_self=self_too), x, i, y[:, :7].contiguous())
            self.check(lambda x, i, y: torch.scatter_reduce(x, 0, i, y, "sum", include_self=self_too), x, i, y[:, :7].contiguous())
            for reduce in ("amax", "amin", "prod"):
                self.check(lambda x, i, y: torch.scatter_reduce(x, 0, i, y, reduce, include_self=self_too), x, i, y[:, :7].contiguous())
                self.check(
                    lambda x, i, y: torch.scatter_reduce(x, 0, i, y, reduce, include_self=self_too),
                    (9 * x).long(), i, (9 * y[:, :7]).long()
                )  # fmt: skip
        self.check(lambda x, i, y: torch.index_add(x, 0, i, y, alpha=2), x, i[:, 0].contiguous(), y)
        self.check(lambda x, i, y: torch.index_put(x, [i], y, accumulate=True), x, i[:, 0].contiguous(), y)
        self.check(lambda x, i, y: torch.index_copy(x, 0, i, y), x, torch.tensor([4, 0, 5]), y[:3])
        self.check(lambda x, i, y: torch.index_add(x, 0, i, y), x.half(), i[:, 0].contiguous(), y.half())
        self.check(lambda x, i, y: torch.index_add(x, 0, i, y), *[t.to(torch.uint8) for t in (x,)], i[:, 0].contiguous(), y.to(torch.uint8))
        self.check(lambda i: torch.bincount(i, minlength=6), i[:, 0].contiguous())
        self.check(lambda x: torch.histc(x, 5, -1.0, 1.5), x)

    def test_searches_and_bags(self) -> None:
        torch.manual_seed(5)
        row, rows, x = torch.randn(9).sort()[0], torch.randn(3, 9).sort(1)[0], torch.randn(3, 4)
        x[0, 0] = row[3]
        for right in (False, True):
            self.check(lambda a, x: torch.searchsorted(a, x, right=right), row, x)
            self.check(lambda a, x: torch.searchsorted(a, x, right=right, out_int32=True), rows, x)
            self.check(lambda a, x: torch.bucketize(x, a, right=right), row, x)
        weight, i = torch.randn(7, 5), torch.randint(0, 7, (11,))
        for mode in ("sum", "mean"):
            self.check(lambda w, i, at: F.embedding_bag(i, w, at, mode=mode), weight, i, torch.tensor([0, 3, 3, 8]))


class Special(unittest.TestCase):
    def test_what_needs_no_loop(self) -> None:
        x = torch.tensor([-45.0, -3.0, -0.5, 0.0, 0.5, 3.0, 45.0])
        rows = [(special.i0e, torch.special.i0e), (special.i1e, torch.special.i1e), (special.log_ndtr, torch.special.log_ndtr),
                (special.entr, torch.special.entr)]  # fmt: skip
        for mine, theirs in rows:
            torch.testing.assert_close(mine(x), theirs(x), rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(special.mvlgamma(x.abs() + 2, 3), torch.special.multigammaln(x.abs() + 2, 3), rtol=1e-5, atol=1e-5)


class Complex(unittest.TestCase):
    def check(self, call: Callable[..., Any], *inputs: torch.Tensor) -> None:
        nodes = described(call, *inputs)
        self.assertFalse(any("complex" in str(n.get("dtype")) for n in nodes), "a complex node is left")
        wanted = call(*inputs)
        for got, want in zip(computed(nodes, inputs), wanted if isinstance(wanted, tuple) else (wanted,)):
            torch.testing.assert_close(got, want, rtol=1e-4, atol=2e-4)

    def test_transforms_of_each_kind_of_length(self) -> None:
        for n in (1, 2, 31, 64, 66, 127, 1000):
            x = torch.randn(3, n)
            self.check(lambda x: (torch.fft.fft(x).real, torch.fft.rfft(x).imag), x)
            self.check(lambda x, n=n: torch.fft.irfft(torch.fft.rfft(x, norm="ortho") * 0.5, n, norm="ortho"), x)

    def test_more_dimensions(self) -> None:
        x = torch.randn(2, 6, 9)
        self.check(lambda x: torch.fft.fft2(x).abs(), x)
        self.check(lambda x: torch.fft.irfft2(torch.fft.rfft2(x), (6, 9)), x)
        self.check(lambda x: torch.fft.ifft(torch.fft.fft(x, dim=1), dim=1).real, x)

    def test_arithmetic(self) -> None:
        a, b = torch.randn(5, 8), torch.randn(5, 8)

        def call(a: torch.Tensor, b: torch.Tensor) -> Any:
            z = torch.complex(a, b)
            z = torch.cat([z * z.conj(), z / (1 + z * 2j)], 1).transpose(0, 1)
            return torch.view_as_real(z.exp()), (z * 0.5).abs(), (z @ z.transpose(0, 1)).imag

        self.check(call, a, b)

    def test_a_complex_result_stays(self) -> None:
        nodes = described(torch.fft.fft, torch.randn(2, 8))
        self.assertTrue(any("complex" in str(n.get("dtype")) for n in nodes))


class Doubles(unittest.TestCase):
    """Bodies of operators in f64 have its accuracy."""

    def check(self, call: Callable[..., Any], *inputs: torch.Tensor) -> None:
        nodes = described(call, *inputs)
        self.assertTrue(any("body" in n for n in nodes), "no body")
        wanted = call(*inputs)
        for a, b in zip(computed(nodes, inputs), wanted if isinstance(wanted, (list, tuple)) else [wanted]):
            torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)

    def test_each_family(self) -> None:
        torch.manual_seed(8)
        x, y, picture = torch.randn(9, 12).double(), torch.randn(9, 12).double(), torch.randn(2, 3, 7, 10).double()
        index, spd = torch.randint(0, 9, (9, 12)), x @ x.t() + torch.eye(9).double()
        for n in (12, 31, 66):
            line = torch.randn(3, n).double()
            self.check(lambda x: (torch.fft.fft(x).real, torch.fft.rfft(x).abs()), line)
        self.check(lambda x: torch.sort(x, 1), torch.cat([x, torch.tensor([[-0.0], [math.inf], [-math.inf]] * 3).double()], 1))
        self.check(lambda x: (torch.topk(x, 4, 1), torch.kthvalue(x, 3, 0)[0], torch.median(x))[0], x)
        for reduce in ("sum", "mean", "amax", "amin", "prod"):
            for too in (False, True):
                self.check(lambda x, i, y: torch.scatter_reduce(x, 0, i, y, reduce, include_self=too), x, index, y)
        for mode in ("bilinear", "bicubic"):
            self.check(lambda x: F.interpolate(x, (11, 6), mode=mode, align_corners=False), picture)
            self.check(lambda x, g: F.grid_sample(x, g, mode=mode, align_corners=False), picture, torch.rand(2, 5, 4, 2).double() * 2 - 1)
        self.check(lambda a, b: (torch.linalg.solve(a, b), torch.linalg.cholesky(a)), spd, x)
        self.check(lambda x: (F.layer_norm(x, (12,)), F.log_softmax(x, 1), torch.logsumexp(x, 0)), x)
        self.check(lambda x: (torch.special.i0e(x), torch.special.i1e(x)), torch.linspace(-900, 900, 41).double())
        self.check(lambda x, y: torch.cdist(x, y), x, y)
        for call, at in ((lambda x: F.interpolate(x, (11, 6), mode="bilinear"), picture), (lambda x: F.adaptive_avg_pool2d(x, (3, 4)), picture),
                         (lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), picture)):  # fmt: skip
            got = torch.autograd.functional.vjp(call, at, torch.ones_like(call(at)) / 3)[1]
            formula = {11: lambda g: gradients.linear(2)(g, [11, 6], [2, 3, 7, 10]), 3: lambda g: gradients.adaptive_avg_pool(g, at),
                       4: lambda g: gradients.avg_pool(2)(g, at, [3, 3], [2, 2], [1, 1], False, False)}[call(at).shape[2]]  # fmt: skip
            torch.testing.assert_close(formula(torch.ones_like(call(at)) / 3), got, rtol=1e-12, atol=1e-12)


class Rare(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(3)
        self.x, self.y = torch.randn(5, 6), torch.randn(5, 6)

    def same(self, call: Callable[..., Any], *inputs: torch.Tensor, near: float = 1e-5) -> None:
        nodes = described(call, *inputs)
        for entry in nodes:
            self.assertTrue("body" not in entry or entry["made"], entry["op"])
        want = call(*inputs)
        for got, right in zip(computed(nodes, inputs), want if isinstance(want, tuple) else (want,)):
            torch.testing.assert_close(got, right, rtol=near, atol=near, equal_nan=True)

    def has_body(self, call: Callable[..., Any], *inputs: torch.Tensor, near: float = 1e-5) -> None:
        self.assertTrue(any("body" in n for n in described(call, *inputs)))
        self.same(call, *inputs, near=near)

    def test_numbers(self) -> None:
        odd = torch.tensor([1.0, math.inf, -math.inf, math.nan])
        self.has_body(lambda x: (torch.isneginf(x), torch.isposinf(x)), odd)
        for kind in (torch.int32, torch.int8, torch.uint8):
            a, b = (torch.randint(-12 if kind.is_signed else 0, 12, (7, 6)).to(kind) for _ in range(2))
            self.has_body(lambda a, b: (torch.gcd(a, b), torch.lcm(a, b)), a, b)
        far = torch.tensor([4660046610375530309]), torch.tensor([7540113804746346429])  # the most steps that there are
        self.has_body(torch.gcd, *far)
        self.same(torch.ldexp, self.x, torch.arange(-2, 4))  # older releases have it in parts
        self.has_body(lambda x, y: torch.dist(x, y, 3), self.x, self.y)

    def test_fake_quantization(self) -> None:
        scale, zero, on = torch.tensor([0.05, 0.1, 0.3]), torch.tensor([0, 3, 2], dtype=torch.int32), torch.tensor([1])
        x = torch.randn(4, 3, 7) * 9
        self.has_body(lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -128, 127), x)
        self.has_body(lambda x, s, z: torch.fake_quantize_per_channel_affine(x, s, z, 1, 0, 255), x, scale, zero)
        whole = torch.ops.aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams
        for enabled in (on, on * 0):
            self.has_body(lambda x, s, z, e: whole(x, s, z, e, 0, 15)[0], x, scale[:1], zero[:1], enabled)
        self.has_body(lambda x: F.rrelu(x, 0.1, 0.3), self.x)

    def test_places(self) -> None:
        self.has_body(lambda x, y: torch.block_diag(x, y[:2, :1], y[0]), self.x, self.y)
        where = torch.tensor([0, 7, 3])
        self.has_body(lambda x, y, i: (x.put(i, y[0, :3]), x.put(i, y[0, :3], accumulate=True)), self.x, self.y, where)
        rows = torch.tensor([0, 4, 4])
        for reduce in ("prod", "mean", "amax", "amin"):
            for own in (True, False):
                self.has_body(lambda x, y, i: x.index_reduce(0, i, y[:3], reduce, include_self=own), self.x, self.y, rows)
        for reduce in ("sum", "mean", "max", "min"):
            self.has_body(lambda x, n: torch.segment_reduce(x, reduce, lengths=n), self.x, torch.tensor([2, 3]))
        self.has_body(lambda x, n: torch.segment_reduce(x, "max", lengths=n, initial=0.5), self.x, torch.tensor([2, 0, 3]))
        self.has_body(lambda x, n: torch.segment_reduce(x, "mean", lengths=n), self.x, torch.tensor([2, 0, 3]))
        self.has_body(lambda i, x: F.embedding(i, x * 1, max_norm=1.0), torch.tensor([1, 4, 1]), self.x, near=1e-4)
        self.has_body(lambda x: x.clone().fill_diagonal_(2.0), self.x)
        self.same(lambda x: (torch.diag(x[0], 1), torch.diag(x, -1)), self.x)
        self.has_body(lambda x: torch.ops.aten.unfold_backward(x.reshape(5, 2, 3), [5, 5], 1, 3, 2), self.x)
        self.has_body(lambda x, y: torch.conv_tbc(x[None], y.t()[None].contiguous(), y[0, :5]), self.x, self.y)

    def test_pictures(self) -> None:
        x = torch.randn(1, 2, 9, 7)
        for size in ((4, 5), (13, 3)):
            for mode in ("bilinear", "bicubic"):
                for align in (False, size == (13, 3)):
                    self.has_body(lambda x: F.interpolate(x, size=size, mode=mode, antialias=True, align_corners=align), x)
        self.has_body(lambda x: F.interpolate(x, scale_factor=0.6, mode="bicubic", antialias=True), x)
        volume, grid = torch.randn(2, 2, 3, 4, 5), torch.randn(2, 3, 2, 4, 3)
        for how in (("bilinear", "zeros", False), ("bilinear", "border", True), ("bilinear", "reflection", False), ("nearest", "zeros", True)):
            self.has_body(lambda x, g: F.grid_sample(x, g, *how), volume, grid, near=1e-4)

    def test_complex_values_written_in_parts(self) -> None:
        def modes(x: torch.Tensor) -> torch.Tensor:
            out = torch.zeros(5, 4, dtype=torch.cfloat)
            out[:, :2] = torch.fft.rfft(x)[:, :2] * 2j
            out[1] = 3 - 1j
            return torch.fft.irfft(out, n=6)

        self.has_body(modes, self.x)

    def test_sequences_of_known_lengths(self) -> None:
        def packed(x: torch.Tensor) -> Any:
            made = torch.nn.utils.rnn.pack_padded_sequence(x, [4, 3, 1], batch_first=True)
            return torch.nn.utils.rnn.pad_packed_sequence(made._replace(data=made.data * 2), batch_first=True, padding_value=-1.0)[0]

        self.same(packed, torch.randn(3, 4, 2))
        self.assertNotIn("_pack", " ".join(n["op"] for n in described(packed, torch.randn(3, 4, 2))))

    def test_known_numbers_are_constants(self) -> None:
        for call in (
            lambda x: torch.combinations(x[0], 3),
            lambda x: torch.masked_select(x, torch.eye(5, 6).bool()),
            lambda x: torch.repeat_interleave(x, torch.tensor([1, 0, 2, 1, 1]), dim=0),
            lambda x: torch.nonzero(torch.eye(3)) + x[0, 0],
            lambda x: torch.repeat_interleave(x, 2, dim=1),
            lambda x: torch.unique(torch.tensor([3.0, 1.0, 3.0])) + x[:, :2],
            lambda x: (torch.kaiser_window(6) * x, torch.logspace(0, 1, 6) * x, torch.fft.rfftfreq(6)[:1] * x),
        ):
            self.same(call, self.x)
            known = "nonzero masked_select repeat_interleave _unique2 kaiser_window logspace fft_rfftfreq".split()
            self.assertFalse([n["op"] for n in described(call, self.x) if n["op"].split(".")[1:2] and n["op"].split(".")[1] in known and "body" not in n])


class Nothing(unittest.TestCase):
    def test_a_batch_of_none_is_normalized(self) -> None:
        nodes = described(lambda x: torch.nn.functional.group_norm(x, 2), torch.randn(0, 6, 5))
        self.assertTrue(all("body" in n for n in nodes if "group_norm" in n["op"]))
        self.assertEqual([list(r.shape) for r in computed(nodes, (torch.randn(0, 6, 5),))], [[0, 6, 5]])


class Masks(unittest.TestCase):
    def test_a_mask_of_the_forward_reads_places(self) -> None:
        x = torch.randn(4, 6)
        for call in (
            lambda x: x[:, torch.tensor([True, False, True, True, False, False])],
            lambda x: x[torch.arange(4) % 2 == 1] * 2,
            lambda x: x[torch.eye(4, 6) > 0],
        ):
            nodes = described(call, x)
            index = next(n for n in nodes if n["op"].startswith("aten.index."))
            read = [nodes[k] for a in index["args"][1]["list"] if "node" in a for k, n in enumerate(nodes) if n["id"] == a["node"]]
            self.assertEqual({n["dtype"] for n in read}, {"i64"})
            torch.testing.assert_close(computed(nodes, (x,))[0], call(x))

    def test_a_mask_of_values_stays(self) -> None:
        nodes = described(lambda x: x[x > 0], torch.randn(4, 6))
        index = next(n for n in nodes if n["op"].startswith("aten.index."))
        self.assertEqual([n["dtype"] for n in nodes if n["id"] == index["args"][1]["list"][0]["node"]], ["bool"])


class Ties(unittest.TestCase):
    def setUp(self) -> None:
        self.x = torch.tensor([[3.0, 1.0, 3.0, 2.0], [5.0, 5.0, 5.0, 0.0]])

    def answers(self, call: Callable[..., Any], got: list[list[int]]) -> bool:
        """Are these indices as right as the reference's?"""
        reference = list(call(self.x))
        made = [reference[0], torch.tensor(got).reshape(reference[1].shape)]
        return torch.equal(ties.settle(lambda: list(call(self.x)), made, reference)[1], made[1])

    def test_top_k_may_name_any_of_equal_elements_once(self) -> None:
        def top(x: torch.Tensor) -> Any:
            return torch.topk(x, 2, 1)

        self.assertTrue(self.answers(top, [[2, 0], [1, 2]]))
        self.assertTrue(self.answers(top, [[0, 2], [2, 0]]))
        self.assertFalse(self.answers(top, [[0, 0], [0, 1]]))  # one of them twice
        self.assertFalse(self.answers(top, [[0, 3], [0, 1]]))  # a smaller one
        self.assertFalse(self.answers(top, [[0, 4], [0, 1]]))  # beyond the row

    def test_sort_median_and_mode(self) -> None:
        self.assertTrue(self.answers(lambda x: torch.sort(x, 1), [[1, 3, 2, 0], [3, 2, 0, 1]]))
        self.assertFalse(self.answers(lambda x: torch.sort(x, dim=1, stable=True), [[1, 3, 2, 0], [3, 2, 0, 1]]))
        self.assertTrue(self.answers(lambda x: torch.mode(x, 1), [[0, 1]]))
        self.assertFalse(self.answers(lambda x: torch.mode(x, 1), [[0, 3]]))
        self.assertTrue(self.answers(lambda x: torch.median(x, 1, keepdim=True), [[3, 0]]))

    def test_argmax_promises_the_first(self) -> None:
        self.assertFalse(self.answers(lambda x: torch.max(x, 1), [[2, 1]]))


class NamesTest(unittest.TestCase):
    @unittest.skipUnless(hasattr(torch.ops.aten, "_safe_softmax"), "this PyTorch has none")
    def test_a_safe_softmax_has_zeros_where_everything_is_masked(self) -> None:
        x = torch.randn(3, 5, 7)
        x[1, 2] = x[0, :4, 3] = -math.inf
        made = primitives.BODIES["_safe_softmax"](x, -1)
        self.assertTrue(torch.allclose(made, torch.ops.aten._safe_softmax.default(x, -1)))

    def test_many_small_convolutions_are_the_class_of_their_network(self) -> None:
        """Each has less than a tenth of the work, all together most of it."""
        a, w = torch.rand(2, 8, 16, 16), torch.rand(8, 8, 3, 3)
        with torch.no_grad(), Tracer([a, w]) as tracer:
            made = a
            for _ in range(12):
                made = torch.nn.functional.conv2d(made, w, padding=1).relu().softmax(1)
        graph = Graph(tracer.nodes, 2, [tracer.node_of(made)], tracer.exact, tracer.mutated)
        self.assertEqual(Analysis(graph, [Known(), Known()]).classify()[0], "convolution")

    def test_a_batch_norm_of_cudnn_is_described_as_any(self) -> None:
        """On a GPU PyTorch calls another operator; a kernel built elsewhere must be found there."""
        x, c = torch.empty(2, 4, 8, 8, device="meta"), torch.empty(4, device="meta")
        made = [
            described(lambda x, *c: op(x, *c, False, 0.1, 1e-5)[0], x, c, c.clone(), c.clone(), c.clone())
            for op in (torch.ops.aten.cudnn_batch_norm.default, torch.ops.aten.native_batch_norm.default)
        ]
        self.assertEqual(*made)


if __name__ == "__main__":
    unittest.main()
