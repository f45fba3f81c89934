"""Masks that are read: the traced graph, computed for other masks than that of its draw, gives what the forward gives."""

from __future__ import annotations

import math
import os
import pathlib
import sys
import unittest
from typing import Any, Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")
HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(pathlib.Path(os.environ.get("CUTEGEN_ROOT", HERE.parents[2]))), str(HERE.parent)]

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from test_aliases import computed  # noqa: E402

from oracle import masks  # noqa: E402
from oracle.graph import Graph, Tracer  # noqa: E402
from oracle.places import places_traced  # noqa: E402

# All of x (4, 6, 5), y (4, 6), its mask m (4, 6), labels (4, 6): -1 where the mask is false.
Forward = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], Any]


def written(x: torch.Tensor, y: torch.Tensor, m: torch.Tensor, n: torch.Tensor) -> Any:
    y[m] += 1
    x[m] = x[m] * 2 - x[m].mean(1, keepdim=True)
    z = y.t()
    z[m.t()] = z[m.t()].sin()
    y[m & (y > 0)] -= y[(y > 0) & m].sum()
    return x, y, z + 1


def of_what_a_mask_leaves(x: torch.Tensor, y: torch.Tensor, m: torch.Tensor, n: torch.Tensor) -> Any:
    d = y[m].abs()
    small = d < 1
    d[small] = 0.5 * d[small] ** 2
    d[~small] = d[~small] - 0.5
    return d.mean(), d[d > 0.1].sum(), x[m][x[m] > 0].sum()


def trailing(x: torch.Tensor, y: torch.Tensor, m: torch.Tensor, n: torch.Tensor) -> Any:
    x[m] = y[0, :5]
    x[:, m[0]] = x[:, m[0]].exp()
    return x


def pooled(x: torch.Tensor, y: torch.Tensor, m: torch.Tensor, n: torch.Tensor) -> Any:
    kept = F.normalize(x[m], dim=-1)
    weights = torch.softmax(y[m], 0)
    return kept.mean(0), (weights.unsqueeze(1) * x[m]).sum(0), x[:, m[1]].mean(1), F.layer_norm(x[m], (5,)).view(-1).sum()


ALL: dict[str, Forward] = {
    "sums": lambda x, y, m, n: (y[m].sum(), x[m].sum(0), n[m].sum(), m[m].sum(), x[m].sum(-1).pow(2).mean(), y[m].mean()),
    "moments": lambda x, y, m, n: (y[m].var(), y[m].std(), x[m].std(0, unbiased=False), x[m].var(1).mean(), x[m].mean((0, 1))),
    "others": lambda x, y, m, n: (y[m].prod(), y[m].norm(), x[m].norm(dim=0), (y[m] > 0).any(), (y[m] > 0).all(), y[m].logsumexp(0)),
    "selected": lambda x, y, m, n: (torch.masked_select(y, m).mean(), torch.masked_select(x, m.unsqueeze(-1)).sum()),
    "regression": lambda x, y, m, n: (
        F.mse_loss(y[m], y.flip(0)[m]), F.l1_loss(x[m], x[m] * 2), F.smooth_l1_loss(y[m], y.flip(1)[m], reduction="sum"),
        F.huber_loss(y[m], y.flip(1)[m], reduction="none").sum(), F.mse_loss(y[y > 0], y.flip(0)[y > 0]),
    ),
    "labels": lambda x, y, m, n: (
        F.cross_entropy(x[m], n[m]), F.cross_entropy(x[n >= 0], n[n >= 0], weight=y[0, :5].exp(), reduction="sum"),
        F.cross_entropy(x.view(-1, 5)[m.view(-1)], n.view(-1)[m.view(-1)], label_smoothing=0.1),
        x.log_softmax(-1)[m].gather(1, n[m].unsqueeze(1)).squeeze(1).sum(), F.nll_loss(x[m], n[m], reduction="none").sum(),
        F.embedding(n[m], x[0]).sum(0),
    ),
    "binary": lambda x, y, m, n: (
        F.binary_cross_entropy_with_logits(y[m], (n[m] > 2).to(y.dtype), pos_weight=torch.tensor(2.0)),
        F.binary_cross_entropy(torch.sigmoid(y[m]), (n[m] > 2).to(y.dtype)), F.soft_margin_loss(y[m], y[m].sign()), F.logsigmoid(y[m]).mean(),
    ),
    "layers": lambda x, y, m, n: (F.linear(x[m], x[0], x[0, :, 0]).relu().sum(), (x[m] @ x[0].t()).amax(1).sum(), x[m][:, 1:3].sum()),
    "turned": lambda x, y, m, n: (x[m].t().sum(1), x[m].unsqueeze(1).permute(1, 2, 0).mean(-1), x[m].reshape(-1).mean(), x[m][:, 0].sum()),
    "cumulated": lambda x, y, m, n: (y[m].cumsum(0).sum(), x[m].log_softmax(0).sum(0), (y[m] / y[m].sum()).square().sum()),
    "scattered": lambda x, y, m, n: (y.masked_scatter(m, y.flip(0)[m] * 3), y.index_put((m,), torch.tensor(2.0), accumulate=True)),
    **{f.__name__: f for f in (written, of_what_a_mask_leaves, trailing, pooled)},
}  # fmt: skip
EXTREMES: Forward = lambda x, y, m, n: (y[m].max(), y[m].min(), x[m].amax(0), n[m].max(), y[m].norm(p=math.inf), x[m].max())  # noqa: E731


def inputs(seed: int, kind: str = "random") -> list[torch.Tensor]:
    torch.manual_seed(seed)
    x, y, m = torch.randn(4, 6, 5), torch.randn(4, 6), torch.rand(4, 6) < 0.6
    m = {"all": torch.ones_like(m), "none": torch.zeros_like(m)}.get(kind, m)
    n = torch.where(m, torch.randint(0, 4, (4, 6)), torch.tensor(-1))
    if kind == "not finite":
        x[~m], y[~m] = math.nan, math.inf
    return [x, y, m, n]


def traced(forward: Forward) -> Graph:
    leaves = inputs(1)
    with torch.no_grad(), Tracer(leaves) as tracer, places_traced(tracer):
        results = forward(*leaves)
    outputs = [tracer.node_of(r) for r in (results if isinstance(results, tuple) else [results])]
    graph = Graph(tracer.nodes, len(leaves), outputs, tracer.exact, tracer.mutated, tracer.gap)
    masks.finish(graph)
    return graph


class Masks(unittest.TestCase):
    def compare(self, forward: Forward, kinds: tuple[str, ...]) -> None:
        graph = traced(forward)
        self.assertTrue(graph.exact)
        self.assertTrue(graph.masked, [n.op for _, n in graph.operators()])
        for seed, kind in enumerate(kinds, 2):
            given = inputs(seed, kind)
            want = forward(*(t.clone() for t in given))
            values = computed(graph.nodes, given, graph.live())
            for k, ((number, part), b) in enumerate(zip(graph.outputs, want if isinstance(want, tuple) else [want])):
                a = values[number][part] if isinstance(values[number], (list, tuple)) else values[number]
                torch.testing.assert_close(a, b, equal_nan=True, rtol=1e-5, atol=1e-5, msg=lambda m: f"{kind}, result {k}: {m}")  # noqa: B023

    def test_what_a_mask_leaves_is_computed_of_all_elements(self) -> None:
        for name, forward in ALL.items():
            with self.subTest(name):
                self.compare(forward, ("random", "all", "none", "random"))

    def test_what_a_mask_leaves_out_may_be_anything(self) -> None:
        for name, forward in ALL.items():
            with self.subTest(name):
                if name not in ("labels", "trailing", "pooled", "of_what_a_mask_leaves", "regression", "layers"):  # they read it elsewhere
                    self.compare(forward, ("not finite",))

    def test_extremes_of_some(self) -> None:
        self.compare(EXTREMES, ("random", "all", "not finite"))

    def test_what_differs_stays_as_it_was(self) -> None:
        for forward in (
            lambda x, y, m, n: y[m],
            lambda x, y, m, n: y[m].argmax(),
            lambda x, y, m, n: y[m].sort()[0].sum(),
            lambda x, y, m, n: (y[m] * torch.arange(int(m.sum()))).sum(),
            lambda x, y, m, n: (y[m] * y.reshape(-1)[: int(m.sum())]).sum(),
            lambda x, y, m, n: x[m][:3].sum(),
            lambda x, y, m, n: torch.cat([y[m], y[m]]).sum(),
            lambda x, y, m, n: (y[m] * y.flip(0)[m.flip(0)]).sum(),  # as many, elsewhere
        ):
            graph = traced(forward)
            self.assertFalse(graph.masked)
            self.assertTrue(any(node.name == "index" for _, node in graph.operators()))


if __name__ == "__main__":
    unittest.main()
