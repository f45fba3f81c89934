"""What an export compares of a model beside tensors: functions that compute something else are told apart, equal ones are not."""

from __future__ import annotations

import os
import pathlib
import sys
import unittest
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(pathlib.Path(os.environ.get("CUTEGEN_ROOT", pathlib.Path(__file__).resolve().parents[2]))))

import torch  # noqa: E402

from oracle.exported.facts import plain_facts  # noqa: E402

MODULE = """
import torch

SCALE = {scale}

def helper(x):
    return {helper}

class Scaler:
    def __init__(self, factor):
        self.factor = factor

    def scale(self, x):
        return x * self.factor

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.act = {act}

    def own(self, x):
        return x
"""


def facts(file: str = "task.py", act: str = "None", scale: str = "2", helper: str = "x + 1") -> dict[str, Any]:
    """Of a model that is written in a file of its own, as the user's and the export's are."""
    names: dict[str, Any] = {"__name__": file.removesuffix(".py")}
    exec(compile(MODULE.format(act=act, scale=scale, helper=helper), file, "exec"), names)
    model = names["Model"]()
    assert isinstance(model, torch.nn.Module)
    return plain_facts(model)


class Functions(unittest.TestCase):
    def test_the_same_function_in_another_file_is_the_same(self) -> None:
        for act in ("lambda x: torch.relu(x)", "lambda x: (lambda y: y * 2)(x)", "lambda x: helper(x) * SCALE", "helper"):
            self.assertEqual(facts(act=act), facts("reference.py", act=act), act)

    def test_one_that_calls_something_else_differs(self) -> None:
        self.assertNotEqual(facts(act="lambda x: torch.relu(x)"), facts(act="lambda x: torch.tanh(x)"))

    def test_one_with_another_number_inside_differs(self) -> None:
        self.assertNotEqual(facts(act="lambda x: (lambda y: y * 2)(x)"), facts(act="lambda x: (lambda y: y * 3)(x)"))
        self.assertNotEqual(facts(act="lambda x: x * 1"), facts(act="lambda x: x * True"))
        self.assertNotEqual(facts(act="lambda x, *, k=2: k * x"), facts(act="lambda x, *, k=3: k * x"))

    def test_one_that_reads_something_else_in_its_module_differs(self) -> None:
        act = "lambda x: (lambda y: helper(y) * SCALE)(x)"
        self.assertNotEqual(facts(act=act), facts(act=act, scale="3"))
        self.assertNotEqual(facts(act=act), facts(act=act, helper="x + 2"))
        self.assertNotEqual(facts(act=act), facts(act=act, helper="torch.cos(x)"))

    def test_a_method_differs_by_its_object(self) -> None:
        self.assertEqual(facts(act="Scaler(2).scale"), facts("reference.py", act="Scaler(2).scale"))
        self.assertNotEqual(facts(act="Scaler(2).scale"), facts(act="Scaler(3).scale"))
        self.assertEqual(facts(act="self.own"), facts("reference.py", act="self.own"))

    def test_a_long_list_differs_by_any_of_its_numbers(self) -> None:
        self.assertEqual(facts(act="[0.5] * 1000"), facts("reference.py", act="[0.5] * 1000"))
        self.assertNotEqual(facts(act="[0.5] * 1000"), facts(act="[0.5] * 999 + [0.25]"))
        self.assertNotEqual(facts(act="{k: k for k in range(1000)}"), facts(act="{k: 2 * k for k in range(1000)}"))
        self.assertEqual(facts(act="set(range(1000))"), facts(act="set(reversed(range(1000)))"))


if __name__ == "__main__":
    unittest.main()
