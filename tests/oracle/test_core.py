"""Operators of the core ATen IR, and gradients that are operators: what their bodies compute is what PyTorch computes."""

from __future__ import annotations

import os
import pathlib
import sys
import tempfile
import unittest
from typing import Any

ROOT = pathlib.Path(os.environ.get("CUTEGEN_ROOT", pathlib.Path(__file__).resolve().parents[2]))
sys.path[:0] = [str(ROOT / "tests" / "oracle"), str(ROOT / "tests" / "expert")]

import core_operators  # noqa: E402
import test_formulas  # noqa: E402
import torch  # noqa: E402

from oracle.loaded import Loaded  # noqa: E402
from oracle.mode import Mode, called  # noqa: E402

NUMBER = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(1))

    def forward(self, x):
        return EXPRESSION


def get_inputs():
    return [torch.randn(4, 6)]


def get_init_inputs():
    return []
"""
# their bodies hold what only kernels have, or they are of a PyTorch that does it wrong on shapes alone
LEFT_OUT = {"_fft_r2c", "empty.memory_format", "empty_strided"}


def loaded(row: list[str], dtype: str) -> dict[str, Any]:
    task: dict[str, Any] = {}
    exec(compile(core_operators.module(0, dtype, [row]), "a task", "exec"), task)
    return task


def tensors(made: Any) -> list[torch.Tensor]:
    if isinstance(made, (list, tuple)):
        return [t for part in made for t in tensors(part)]
    return [] if made is None else [made]


class Core(unittest.TestCase):
    def test_bodies_compute_what_the_operators_compute(self) -> None:
        for row in core_operators.rows():
            dtype = core_operators.dtypes(row[1])[0]
            if row[0] in LEFT_OUT:
                continue
            with self.subTest(operator=row[0], call=row[2]):
                torch.manual_seed(1)
                task = loaded(row, dtype)
                inputs, model = tuple(task["get_inputs"]()), task["Model"]()

                def forward(*given: torch.Tensor, model: Any = model) -> list[torch.Tensor]:
                    return tensors(model(*given))

                wanted = forward(*[i.clone() for i in inputs])
                if not wanted:
                    continue  # of another PyTorch
                got = test_formulas.computed(test_formulas.described(forward, *[i.clone() for i in inputs]), inputs)
                for one, other in zip(got, wanted):
                    torch.testing.assert_close(one, other.contiguous(), rtol=2e-4, atol=2e-5, equal_nan=True, check_stride=False)

    def test_every_gradient_has_a_body(self) -> None:
        for row in core_operators.rows():
            if "_backward" not in row[0] or row[0] in LEFT_OUT:
                continue
            with self.subTest(operator=row[0]):
                task = loaded(row, "float32")
                model = task["Model"]()
                nodes = test_formulas.described(lambda *g, model=model: tensors(model(*g)), *task["get_inputs"]())
                self.assertTrue(all("body" in n for n in nodes if row[0] in n["op"]), row[2])


class NumbersRead(unittest.TestCase):
    """What forward reads from a tensor in Python is in no graph."""

    def description(self, expression: str) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "task.py"
            path.write_text(NUMBER.replace("EXPRESSION", expression))
            return Loaded({"task": str(path)}).description()

    def test_a_graph_of_one_draw_is_not_exact(self) -> None:
        for expression in ("x * x[0, 0].item()", "x[: int(x[0, 0] > 9) + 2] * float(x.max())", "x * self.w.item()"):
            made = self.description(expression)
            self.assertFalse(made["graph_exact"], expression)
            self.assertIn("aten._local_scalar_dense", made["graph_gap"])

    def test_a_number_that_every_draw_has_is_exact(self) -> None:
        for expression in ("x * torch.tensor(3.0).item()", "x if (x > -99).all() else x * 2", "x * 2"):
            self.assertTrue(self.description(expression)["graph_exact"], expression)


PRELU = """import torch
import torch.nn as nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.PReLU(9)
    def forward(self, x):
        return self.f(x)
def get_inputs():
    return [torch.randn(SHAPE)]
def get_init_inputs():
    return []
"""


class Overloads(unittest.TestCase):
    def test_a_weight_per_channel_stands_at_the_channels(self) -> None:
        for shape, wanted in (("4, 9, 9", [1, 9, 1]), ("2, 9, 5, 9", [1, 9, 1, 1])):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "task.py"
                path.write_text(PRELU.replace("SHAPE", shape))
                graph = Loaded({"task": str(path)}).description()["graph"]
            prelu = next(n for n in graph if "prelu" in n["op"])
            self.assertEqual(graph[prelu["args"][1]["node"]]["shape"], wanted)

    def test_a_number_is_no_tensor(self) -> None:
        seen = []

        class Watch(Mode):
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                func = called(func, args)
                seen.append(str(func))
                return func(*args, **(kwargs or {}))

        x = torch.arange(6)
        with Watch():
            made = [x | 2, x ^ 3, x & 5, (x > 2) | True, x | x]
        self.assertTrue(torch.equal(made[0], x | 2) and torch.equal(made[1], x ^ 3))
        self.assertIn("aten.bitwise_or.Scalar", seen)
        self.assertIn("aten.bitwise_or.Tensor", seen)


if __name__ == "__main__":
    unittest.main()
