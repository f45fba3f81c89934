"""What the oracle says of a result beside the truth: right, wrong, imprecise.

A test's name is the sentence it proves. Candidates are played by writing into the buffer files.
"""

from __future__ import annotations

import array
import math
import os
import shutil
import struct
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Callable

from client import COPY, ROOT, Oracle, OracleTest, model


def tf32(value: float) -> float:
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return struct.unpack("<f", struct.pack("<I", (bits + 0x1000) & 0xFFFFE000))[0]


def rounded(value: float) -> float:
    return struct.unpack("<f", struct.pack("<f", value))[0]


def product(a: Any, b: Any, n: int, factor: Callable[[float], float], add: Callable[[float], float]) -> list[float]:
    """C = A B with the given rounding of factors and of every sum."""
    a, b = [factor(v) for v in a], [factor(v) for v in b]
    out = []
    for i in range(n):
        for j in range(n):
            total = 0.0
            for k in range(n):
                total = add(total + a[i * n + k] * b[k * n + j])
            out.append(total)
    return out


class Comparing(OracleTest):
    MATRIX = model("x): return x * 1.5", "[torch.rand(64, 96)]")
    SQUARE = model("a, b): return a @ b", "[torch.randn(48, 48), torch.randn(48, 48)]")

    def test_the_reference_passes_on_every_distribution(self) -> None:
        self.loaded(self.SQUARE)
        for distribution in ("task", "normal", "wide", "small", "zeros"):
            one = self.judged(distribution)
            self.assertEqual((one["wrong"], one["imprecise"], one["pattern"]), (0, False, ""))
            self.assertEqual(one["rms_rel"], one["reference_rms_rel"])

    ERRORS = [
        ("one element", lambda v: v.__setitem__(500, v[500] + 1), 1, "row 5 of 64 only, column 20 of 96 only"),
        (
            "the last rows",
            lambda v: v.__setitem__(slice(60 * 96, None), array.array("f", [0.0] * (4 * 96))),
            4 * 96,
            "the last 4 rows of 64 (tail, from 60)",
        ),
        (
            "a tile",
            lambda v: [v.__setitem__(i * 96 + j, 99.0) for i in range(16, 32) for j in range(32, 64)],
            512,
            "rows 16..31 of 64, one whole tile of 16, columns 32..63 of 96, one whole tile of 32",
        ),
        (
            "every other lane",
            lambda v: [v.__setitem__(i, 99.0) for i in range(1, len(v), 2)],
            32 * 96,
            "columns 1, 3, 5, ... (every other one)",
        ),
        (
            "half of every period",
            lambda v: [v.__setitem__(i * 96 + j, 99.0) for i in range(64) for j in range(96) if i % 16 >= 8],
            32 * 96,
            "rows 8..15 of every 16",
        ),
        (
            "checkered tiles",
            lambda v: [v.__setitem__(i * 96 + j, 99.0) for i in range(64) for j in range(96) if (i // 16 + j // 16) % 2],
            32 * 96,
            "whole tiles of 16 x 16",
        ),
        ("a factor", lambda v: [v.__setitem__(i, v[i] * 2) for i in range(len(v))], 64 * 96, "2 times the right value"),
        ("an offset", lambda v: [v.__setitem__(i, v[i] + 3) for i in range(len(v))], 64 * 96, "the right value plus 3"),
        ("zeros", lambda v: [v.__setitem__(i, 0.0) for i in range(len(v))], 64 * 96, "all of them are zero"),
        (
            "shifted by a row",
            lambda v: v.__setitem__(slice(0, 63 * 96), v[96:]),
            63 * 96,
            "off by one: holds what belongs one further along rows",
        ),
        (
            "column-major",
            lambda v: v.__setitem__(slice(0, None), array.array("f", [v[i * 96 + j] for j in range(96) for i in range(64)])),
            None,
            "column-major",
        ),
    ]

    RELATIONS = {
        "a factor": "factor",
        "an offset": "offset",
        "zeros": "zeros",
        "shifted by a row": "shifted",
        "column-major": "transposed",
    }

    def test_wrong_values_are_counted_and_described(self) -> None:
        self.loaded(self.MATRIX)
        for name, edit, count, words in self.ERRORS:
            with self.subTest(name):
                one = self.judged("normal", edit)
                if count is not None:
                    self.assertAlmostEqual(one["wrong"], count, delta=max(count // 100, 0))
                self.assertIn(words, one["pattern"])
                self.assertEqual(one["relation"], self.RELATIONS.get(name, ""))
                self.assertTrue(one["worst"])

    def test_a_transposed_square_is_called_transposed(self) -> None:
        self.loaded(self.SQUARE)
        one = self.judged(
            "normal",
            lambda v: v.__setitem__(slice(0, None), array.array("f", [v[j * 48 + i] for i in range(48) for j in range(48)])),
        )
        self.assertIn("transposed", one["pattern"])
        self.assertEqual(one["relation"], "transposed")

    def test_the_worst_elements_come_with_index_and_both_values(self) -> None:
        self.loaded(self.MATRIX)
        one = self.judged("task", lambda v: v.__setitem__(5 * 96 + 7, 77.0))
        self.assertEqual(one["worst"][0]["index"], [5, 7])
        self.assertEqual(one["worst"][0]["got"], 77.0)
        self.assertAlmostEqual(one["worst"][0]["expected"], self.oracle.read("in0")[5 * 96 + 7] * 1.5, 5)

    def test_unwritten_elements_are_counted_apart_from_nan_and_infinity(self) -> None:
        self.loaded(self.MATRIX)
        one = self.judged("task", lambda v: [v.__setitem__(i, math.nan if i < 3 else math.inf) for i in range(5)])
        self.assertEqual((one["wrong"], one["nan"], one["inf"], one["unwritten"]), (5, 3, 2, 0))
        self.oracle.draw(distribution="task")
        one = self.oracle.judge()["outputs"][0]
        self.assertEqual((one["wrong"], one["nan"], one["unwritten"]), (64 * 96, 0, 64 * 96))
        self.oracle.write("out0", [x * 1.5 for x in self.oracle.read("in0")[: 32 * 96]])
        one = self.oracle.judge()["outputs"][0]
        self.assertEqual((one["unwritten"], one["pattern"]), (32 * 96, "never written: the last 32 rows of 64 (tail, from 32)"))

    def test_nan_and_infinity_of_the_truth_must_be_met(self) -> None:
        self.loaded(model("x): return torch.log(x)", "[torch.tensor([-1.0, 0.0, 1.0, 2.0])]"))
        one = self.judged("task")
        self.assertEqual((one["wrong"], one["nan"], one["inf"]), (0, 0, 0))
        one = self.judged("task", lambda v: v.__setitem__(slice(0, 2), array.array("f", [0.0, 0.0])))
        self.assertEqual(one["wrong"], 2)
        one = self.judged("task", lambda v: v.__setitem__(1, math.inf))
        self.assertEqual((one["wrong"], one["inf"]), (1, 1))

    def test_inputs_and_guards_are_watched(self) -> None:
        self.loaded(COPY)
        self.oracle.draw()
        self.oracle.ask(do="reference")
        self.assertEqual((self.oracle.judge()["inputs_modified"], self.oracle.judge()["guards_hit"]), ([], []))
        self.oracle.write("out0", [1.0, 2.0], at=64 * 96 + 5)
        self.oracle.write("out0", [1.0], at=-1)
        self.oracle.write("in0", [0.25], at=17)
        answer = self.oracle.judge()
        self.assertEqual(answer["inputs_modified"], ["in0"])
        self.assertEqual(
            answer["guards_hit"],
            [
                {"buffer": "out0", "side": "before", "bytes": 4, "distance": 0},
                {"buffer": "out0", "side": "after", "bytes": 8, "distance": 20},
            ],
        )
        self.assertEqual(answer["outputs"][0]["wrong"], 0)

    def test_integer_results_must_be_equal(self) -> None:
        self.loaded(model("x): return x.argmax(1)", "[torch.rand(32, 64)]"))
        self.assertEqual(self.judged()["wrong"], 0)
        self.assertEqual(self.judged(edit=lambda v: v.__setitem__(3, v[3] + 1))["wrong"], 1)

    def products(self, factor: Callable[[float], float], add: Callable[[float], float]) -> dict[str, Any]:
        self.oracle.draw("p", distribution="normal")
        self.oracle.write("out0", product(self.oracle.read("in0"), self.oracle.read("in1"), 48, factor, add))
        return self.oracle.judge()["outputs"][0]

    def test_plain_fp32_sums_one_after_the_other_are_precise_enough(self) -> None:
        self.loaded(self.SQUARE)
        one = self.products(lambda v: v, rounded)
        self.assertEqual((one["wrong"], one["imprecise"]), (0, False))

    def test_an_answer_better_than_the_reference_passes(self) -> None:
        self.loaded(self.SQUARE)
        one = self.products(lambda v: v, lambda v: v)
        self.assertEqual((one["wrong"], one["imprecise"]), (0, False))
        self.assertLess(one["rms_rel"], one["reference_rms_rel"])

    def test_tf32_factors_are_imprecise_not_wrong(self) -> None:
        self.loaded(self.SQUARE)
        one = self.products(tf32, rounded)
        self.assertEqual((one["wrong"], one["imprecise"]), (0, True))
        self.assertGreater(one["rms_rel"], 10 * one["tolerance"]["rms"])

    def test_tf32_factors_pass_where_they_are_allowed(self) -> None:
        self.assertFalse(self.loaded(self.SQUARE)["tf32"])
        task_allows = self.SQUARE.replace("import torch\n", "import torch\ntorch.backends.cuda.matmul.allow_tf32 = True\n", 1)
        for text, more in ((self.SQUARE, {"baseline": "tf32"}), (task_allows, {})):
            self.assertTrue(self.loaded(text, **more)["tf32"])
            one = self.products(tf32, rounded)
            self.assertEqual((one["wrong"], one["imprecise"], one["class"]), (0, False, "TF32-class"))
            one = self.products(lambda v: v, rounded)
            self.assertEqual((one["wrong"], one["imprecise"], one["class"]), (0, False, "fp32"))
        self.assertFalse(self.loaded(self.SQUARE)["tf32"])
        self.assertEqual(self.products(lambda v: v, rounded)["class"], "fp32")

    def test_the_baselines_setting_decides_where_tf32_is_allowed(self) -> None:
        convolution = """
import torch

class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.conv2d(x, w)

def get_inputs():
    return [torch.randn(2, 8, 12, 12), torch.randn(8, 8, 3, 3)]

def get_init_inputs():
    return []
"""
        allowed = {
            (name, kind): self.loaded(text, baseline=name)
            for name in ("defaults", "strict", "tf32")
            for kind, text in (("product", self.SQUARE), ("convolution", convolution))
        }
        self.assertEqual(
            sorted(key for key, task in allowed.items() if task["tf32"]),
            [("defaults", "convolution"), ("tf32", "convolution"), ("tf32", "product")],
        )
        self.assertEqual({(key[0], task["baseline"]) for key, task in allowed.items()}, {(n, n) for n in ("defaults", "strict", "tf32")})
        self.assertEqual(self.loaded(convolution)["baseline"], "defaults")
        self.assertTrue(allowed["strict", "product"]["settings_differ"])

    def test_half_precision_sums_are_caught(self) -> None:
        self.loaded(self.SQUARE)
        one = self.products(lambda v: v, lambda v: struct.unpack("<e", struct.pack("<e", v))[0])
        self.assertTrue(one["imprecise"] or one["wrong"])

    def test_half_precision_sums_of_a_half_task_are_imprecise(self) -> None:
        self.loaded(model("a, b): return a @ b", "[torch.randn(16, 512).half(), torch.randn(512, 16).half()]"))
        self.assertEqual(self.judged()["wrong"], 0)
        half = lambda v: struct.unpack("<e", struct.pack("<e", v))[0]
        for add, fine in ((lambda v: v, True), (half, False)):
            a, b = ([struct.unpack("<e", struct.pack("<H", h))[0] for h in self.oracle.read(f"in{k}")] for k in range(2))
            out = []
            for i in range(16):
                for j in range(16):
                    total = 0.0
                    for k in range(512):
                        total = add(total + a[i * 512 + k] * b[k * 16 + j])
                    out.append(struct.unpack("<H", struct.pack("<e", total))[0])
            self.oracle.write("out0", out)
            one = self.oracle.judge()["outputs"][0]
            self.assertEqual(one["wrong"] == 0 and not one["imprecise"], fine, one)

    def test_a_small_error_in_one_place_is_wrong_not_imprecise(self) -> None:
        self.loaded(self.SQUARE)
        one = self.judged("normal", lambda v: [v.__setitem__(i, v[i] + 0.005) for i in range(96)])
        self.assertEqual((one["wrong"], one["imprecise"]), (96, False))


class Trivial(OracleTest):
    def standing(self, text: str) -> list[str]:
        """What is left after the draws of a test."""
        self.loaded(text)
        for distribution in ("task", "normal", "wide", "mixed", "zeros"):
            self.oracle.draw(distribution, distribution=distribution)
            self.oracle.ask(do="reference")
            answer = self.oracle.judge()
        return answer["trivial"]

    def test_a_result_that_is_zero_whatever_the_inputs_is_told(self) -> None:
        largest = "x): return torch.relu(x.amax(1, keepdim=True) - x.amax(1, keepdim=True).mean(1, keepdim=True))"
        for forward in ("x): return x - x", largest, "x): return torch.isnan(x)"):
            self.assertEqual(self.standing(model(forward, "[torch.rand(16, 300)]")), ["zeros"], forward)

    def test_other_answers_without_any_work_are_told_too(self) -> None:
        self.assertEqual(self.standing(model("x): return torch.softmax(x[:, :1], 1)", "[torch.rand(16, 30)]")), ["ones"])
        self.assertEqual(
            self.standing(model("x): return torch.clamp(x, -1e30, 1e30)", "[torch.rand(16, 300)]")), ["copy of in0"]
        )

    def test_a_task_that_takes_work_has_none(self) -> None:
        for forward in (
            "x): return torch.relu(x)",
            "x): return x.clone()",
            "x): return 2 * x",
            "x): return x.t().contiguous()",
            "x): return x.sum()",
            "x): return torch.cumprod(x, 1)",
        ):
            self.assertEqual(self.standing(model(forward, "[torch.rand(16, 300)]")), [], forward)

    def test_one_draw_does_not_make_a_task_trivial(self) -> None:
        self.loaded(model("x): return x - x", "[torch.rand(16, 300)]"))
        self.oracle.draw("one", distribution="task")
        self.assertEqual(self.oracle.judge()["trivial"], [])


class Products(OracleTest):
    def test_the_end_of_a_running_product_tells_as_much_as_its_beginning(self) -> None:
        """The first 128 columns right and the rest zero."""
        self.loaded(model("x): return torch.cumprod(x, 1)", "[torch.rand(16, 512)]"))
        for distribution in ("normal", "wide", "small"):
            self.oracle.draw("tail", distribution=distribution)
            self.oracle.ask(do="reference")
            self.assertEqual(self.oracle.judge()["outputs"][0]["wrong"], 0, distribution)
            self.oracle.draw("tail", distribution=distribution)
            self.oracle.ask(do="reference")
            self.oracle.change("out0", zero_tails)
            one = self.oracle.judge()["outputs"][0]
            self.assertGreater(one["wrong"], 16 * 384 * 9 // 10, (distribution, one))

    def test_one_product_of_a_long_row_is_not_zero(self) -> None:
        self.loaded(model("x): return torch.prod(x, 1)", "[torch.rand(16, 2048)]"))
        for distribution in ("normal", "wide", "small"):
            self.oracle.draw("all", distribution=distribution)
            self.oracle.ask(do="reference")
            self.assertTrue(all(1e-6 < abs(v) < 1e6 for v in self.oracle.read("out0")), distribution)


def zero_tails(values: Any) -> None:
    for row in range(16):
        for column in range(128, 512):
            values[row * 512 + column] = 0.0


class Canary(OracleTest):
    def test_every_judgement_flags_a_planted_error(self) -> None:
        for forward, inputs in (
            ("x): return torch.relu(x)", "[torch.rand(16, 300)]"),
            ("x): return (x > 0.5, x.argmax(1))", "[torch.rand(16, 300)]"),
            ("x): return x.half() * 60000", "[torch.rand(16, 300)]"),
            ("x): return x.double() * 1e300", "[torch.rand(16, 300)]"),
            ("x): return x.sum()", "[torch.rand(16, 300)]"),
        ):
            self.loaded(model(forward, inputs))
            for seed in range(8):
                self.oracle.draw(str(seed), distribution="task")
                self.oracle.ask(do="reference")
                answer = self.oracle.judge()
                self.assertGreaterEqual((answer["canary"] or {}).get("wrong", 0), 1, (forward, answer))
                self.assertEqual([o["wrong"] for o in answer["outputs"]], [0] * len(answer["outputs"]), forward)

    def test_nothing_is_planted_where_nothing_is_finite(self) -> None:
        self.loaded(model("x): return torch.log(-1 - x)", "[torch.rand(16, 30)]"))
        self.oracle.draw("1", distribution="task")
        self.assertIsNone(self.oracle.judge()["canary"])


class Infinities(OracleTest):
    """A few infinite inputs in a `zeros` draw, where rows do not meet."""

    def drawn(self, forward: str, inputs: str = "[torch.rand(16, 300)]") -> tuple[list[int], list[float]]:
        """(places of the infinities of the first input, the reference)"""
        self.loaded(model(forward, inputs))
        self.oracle.draw("infinite", distribution="zeros")
        self.oracle.ask(do="reference")
        return [k for k, v in enumerate(self.oracle.read("in0")) if math.isinf(v)], list(self.oracle.read("out0"))

    def judged(self, change: Callable[[Any], None]) -> dict[str, Any]:
        self.oracle.ask(do="reference")
        self.oracle.change("out0", change)
        return self.oracle.judge()["outputs"][0]

    def test_they_are_few_and_in_few_rows(self) -> None:
        places, _ = self.drawn("x): return torch.relu(x)")
        self.assertTrue(4 <= len(places) <= 16, places)
        self.assertLessEqual(len({p // 300 for p in places}), 2)
        self.assertEqual(self.oracle.judge()["outputs"][0]["wrong"], 0)
        for name in ("task", "normal", "wide", "small", "mixed"):
            self.oracle.draw("finite", distribution=name)
            self.assertTrue(all(map(math.isfinite, self.oracle.read("in0"))), name)

    def test_there_are_none_where_rows_meet(self) -> None:
        for forward in ("x): return x.sum()", "x): return x.cumsum(0)", "x): return x.argmax(1)", "x): return torch.softmax(x, 0)"):
            self.assertEqual(self.drawn(forward)[0], [], forward)

    def test_where_the_reference_is_finite_an_answer_is_too(self) -> None:
        places, made = self.drawn("x): return torch.tanh(x)")
        self.assertTrue(all(abs(made[p]) == 1.0 for p in places))
        self.assertEqual(self.judged(lambda v: v.__setitem__(places[0], math.nan))["wrong"], 1)
        self.assertEqual(self.judged(lambda v: v.__setitem__(places[0], 0.5))["wrong"], 1)
        self.assertIn("infinite", self.judged(lambda v: v.__setitem__(places[0], math.inf))["pattern"])

    def test_where_it_is_infinite_an_answer_may_be_nan_and_nothing_else(self) -> None:
        places, made = self.drawn("x): return 2 * x")
        one = places[0]
        for value, wrong in ((math.nan, 0), (made[one], 0), (-made[one], 1), (0.0, 1), (3e38, 1)):
            self.assertEqual(self.judged(lambda v, value=value: v.__setitem__(one, value))["wrong"], wrong, value)

    def test_where_it_is_nan_any_answer_will_do_that_was_written(self) -> None:
        places, made = self.drawn("x): return x - x")
        self.assertTrue(all(math.isnan(made[p]) for p in places))
        for value in (0.0, math.inf, 7.0):
            self.assertEqual(self.judged(lambda v, value=value: v.__setitem__(places[0], value))["wrong"], 0, value)
        other = next(k for k in range(len(made)) if k not in places and k // 300 == places[0] // 300)
        self.assertEqual(self.judged(lambda v: v.__setitem__(other, 1.0))["wrong"], 1, "beside them zero is zero")
        self.oracle.draw("infinite", distribution="zeros")  # nothing is written
        self.assertEqual(self.oracle.judge()["outputs"][0]["unwritten"], len(made))


ROWS, COLUMNS = 24, 301


def rows(values: Any) -> list[Any]:
    return [values[k : k + COLUMNS] for k in range(0, ROWS * COLUMNS, COLUMNS)]


def unit_length(values: Any) -> list[float]:
    lengths = [math.sqrt(sum(v * v for v in row)) for row in rows(values)]
    return [v / length if length else math.nan for row, length in zip(rows(values), lengths) for v in row]


def last_of_equals(row: Any) -> int:
    return max(range(len(row)), key=lambda k: (row[k], k))


class Unlucky(OracleTest):
    """Answers that are wrong for a few inputs only, such as random numbers seldom are: one of the usual draws has them."""

    WRONG: dict[str, tuple[str, Callable[[Any], list[float]]]] = {
        "the last of a row is missed": ("x.amax(1)", lambda x: [max(row[:-1]) for row in rows(x)]),
        "the first of a row is missed": ("x.amin(1)", lambda x: [min(row[1:]) for row in rows(x)]),
        "the last of all is missed": ("x.max()", lambda x: [max(x[:-1])]),
        "the first of all is missed": ("x.max()", lambda x: [max(x[1:])]),
        "the last of a sum of squares is missed": ("(x * x).sum()", lambda x: [sum(v * v for v in x[:-1])]),
        "of equal elements the last is named": ("x.argmax(1)", lambda x: [last_of_equals(row) for row in rows(x)]),
        "halves are rounded up": ("torch.round(x)", lambda x: [math.floor(v + 0.5) if math.isfinite(v) else v for v in x]),
        "one half counts as above one half": ("(x > 0.5).float()", lambda x: [float(v >= 0.5) for v in x]),
        "a row of zeros has no length": ("nn.functional.normalize(x)", unit_length),
    }

    def test_a_draw_has_what_they_are_wrong_for(self) -> None:
        for name, (forward, answer) in self.WRONG.items():
            many = 64 if "sum" in name else 1  # among so many that one counts less than rounding
            self.loaded(model(f"x): return {forward}", f"[torch.randn({many * ROWS}, {COLUMNS})]"))
            off = []
            for distribution in ("task", "normal", "wide", "mixed", "zeros"):
                self.oracle.draw("1", distribution=distribution)
                self.oracle.ask(do="reference")
                right = self.oracle.judge()["outputs"][0]
                self.assertEqual((right["wrong"], right["imprecise"]), (0, False), (name, distribution))
                integers = self.oracle.info("out0")["dtype"] == "i64"
                made = [int(v) if integers else rounded(v) for v in answer(self.oracle.read("in0"))]
                self.oracle.write("out0", made)
                found = self.oracle.judge()["outputs"][0]
                off += [distribution] if found["wrong"] or found["imprecise"] else []
            self.assertTrue(off, name)
            self.assertNotIn("task", off, f"{name}: this test proves something only where the task's own inputs do not tell")

    def test_factors_of_a_parameter_are_not_rounded_unseen(self) -> None:
        """All positive, as in a softmax of weights: errors of the rounded factors average out, unless they lean one way."""
        self.loaded(model("x): return x @ self.w", "[torch.rand(2, 8192)]", "self.w = nn.Parameter(torch.rand(8192, 4))"))
        self.oracle.draw("1", distribution="mixed")
        x, w = self.oracle.read("in0"), [tf32(v) for v in self.oracle.read("in1")]
        self.oracle.write("out0", [math.fsum(x[8192 * i + k] * w[4 * k + j] for k in range(8192)) for i in range(2) for j in range(4)])
        self.assertTrue(self.oracle.judge()["outputs"][0]["imprecise"])


class Limits(unittest.TestCase):
    def test_an_error_over_no_number_is_beyond(self) -> None:
        sys.path.insert(0, os.environ.get("CUTEGEN_ROOT") or str(Path(__file__).resolve().parents[2]))
        import torch

        from oracle.compare import Limits as Allowed
        from oracle.compare import measure

        truth = torch.ones(64, dtype=torch.float64)
        got = truth.float() * 2
        self.assertEqual(measure(got, truth.float(), truth, Allowed(1e-6, 1e-6, 1e-30)).beyond, 64)
        self.assertEqual(measure(got, truth.float(), truth, Allowed(float("nan"), 1e-6, 1e-30)).beyond, 64)


class OnePass(unittest.TestCase):
    """src/eval/errors.c beside torch's own sums."""

    def setUp(self) -> None:
        sys.path.insert(0, os.environ.get("CUTEGEN_ROOT") or str(Path(__file__).resolve().parents[2]))
        from oracle import compare, fused

        fused.load_host(os.environ.get("CUTEGEN_ERRORS", ""), compare.measure)
        self.assertIsNotNone(fused._host, "set CUTEGEN_ERRORS to cutegen-errors.so of the build")

    def test_it_says_what_torch_says(self) -> None:
        import torch

        from oracle import fused
        from oracle.compare import Limits as Allowed
        from oracle.compare import measure

        torch.manual_seed(5)
        shapes = [(1,), (3,), (255,), (256,), (257,), (7, 701), (65, 3), (2, 3, 5, 7), (33, 512), (4, 1000)]
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            for shape in shapes:
                for scale, zeros, off in ((1.0, 0.0, 1e-6), (1e-20, 0.5, 1e-2), (1e4, 1.0, 0.0), (3.0, 0.9, 10.0)):
                    truth = torch.randn(shape, dtype=torch.float64) * scale * (torch.rand(shape) >= zeros)
                    got, reference = ((truth * (1 + off * torch.randn(shape))).to(dtype) for _ in range(2))
                    limits = Allowed(1e-5, 1e-6, 1e-38)
                    made, sums = fused.measure(got, reference, truth, limits, measure), measure(got, reference, truth, limits)
                    for name in fused.FIGURES:
                        one, other = getattr(made, name), getattr(sums, name)
                        self.assertTrue(math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-300), (dtype, shape, name, one, other))
                    for name in ("beyond", "off", "off_blocks", "blocks"):
                        self.assertLessEqual(abs(getattr(made, name) - getattr(sums, name)), 1, (dtype, shape, name))
                    self.assertTrue(torch.allclose(made.excess, sums.excess, rtol=1e-5, atol=0.0))

    def test_what_is_not_finite_is_judged_as_torch_judges_it(self) -> None:
        """Random arrays with NaN, infinities, numbers too large for the type and unwritten elements anywhere."""
        import torch

        from oracle import fused
        from oracle.buffers import pattern_bits
        from oracle.compare import Limits as Allowed
        from oracle.compare import Sums, figures, judge, measure

        torch.manual_seed(11)
        limits = Allowed(1e-5, 1e-6, 1e-38)
        pool = torch.tensor([0.0, 1.0, -2.0, math.inf, -math.inf, math.nan, 7e4, 1e39, -1e39], dtype=torch.float64)
        shapes = [(1,), (17,), (256,), (7, 701), (65, 3), (2, 3, 5, 7), (300, 512)]
        for number in range(84):
            dtype, shape = list(fused.ENTRIES)[number % 3], shapes[number % len(shapes)]
            share = (0.0005, 0.02, 0.3, 1.0)[number % 4]
            truth = torch.randn(shape, dtype=torch.float64)
            got, reference = ((truth * (1 + 1e-4 * torch.randn(shape))).to(dtype) for _ in range(2))
            for tensor in (truth, got, reference)[number % 2 :]:
                odd = pool[torch.randint(len(pool), shape)].to(tensor.dtype)
                tensor.copy_(torch.where(torch.rand(shape) < share, odd, tensor))
            kind, mark = pattern_bits(dtype)
            got.view(kind)[torch.rand(shape) < share / 8] = mark
            made, sums = fused.measure(got, reference, truth, limits, measure), measure(got, reference, truth, limits)
            self.assertIsNotNone(made, (number, "left to torch"))
            for name in fused.FIGURES:
                one, other = getattr(made, name), getattr(sums, name)
                self.assertTrue(math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-300), (number, name, one, other))
            for name in ("beyond", "off", "off_blocks", "blocks", *fused.ODD):
                self.assertEqual(getattr(made, name), getattr(sums, name), (number, name))
            self.assertTrue(torch.allclose(made.excess, sums.excess, rtol=1e-5, atol=0.0), number)
            fast, slow = (judge(got.numel(), dtype, one, limits) for one in (made, sums))
            for name in ("wrong", "imprecise", "beyond"):
                self.assertEqual(fast[name], slow[name], (number, name))
            self.assertEqual(figures(made).keys(), figures(Sums(made.excess)).keys())

    def test_what_is_0_in_32_bits_is_no_scale(self) -> None:
        """Of a softmax, say: most of a block is 1e-300 in float64, and 0 in the output."""
        import torch

        from oracle import fused
        from oracle.compare import Limits as Allowed
        from oracle.compare import measure

        torch.manual_seed(7)
        limits = Allowed(1e-3, 1e-4, 1e-38)
        for dtype in fused.ENTRIES:
            truth = torch.where(torch.rand(40, 300) < 0.6, 1e-300, torch.randn(40, 300, dtype=torch.float64))
            got, reference = ((truth * (1 + off * torch.randn(40, 300))).to(dtype) for off in (1e-3, 1e-7))
            made, sums = fused.measure(got, reference, truth, limits, measure), measure(got, reference, truth, limits)
            for name in ("beyond", "off", "off_blocks"):
                self.assertEqual(getattr(made, name), getattr(sums, name), (dtype, name))
            self.assertTrue(math.isclose(made.max_rel, sums.max_rel, rel_tol=1e-6), (dtype, made.max_rel, sums.max_rel))

    def test_what_has_no_scale_is_left_to_torch(self) -> None:
        import torch

        from oracle import fused
        from oracle.compare import Limits as Allowed
        from oracle.compare import measure

        truth = torch.ones(600, dtype=torch.float64)
        limits = Allowed(1e-5, 1e-6, 1e-38)
        self.assertIsNotNone(fused.measure(truth.float(), truth.float(), truth, limits, measure))
        self.assertIsNone(fused.measure(truth.float(), truth.float(), truth, Allowed(math.nan, 1e-6, 1e-38), measure))
        for value in (1e39, 1e200):  # the reference's usual error is beyond 32 bits; so is the square of the truth beyond 64
            self.assertIsNone(fused.measure(truth.float(), truth.float(), truth * value, limits, measure))

    def test_low_bits_are_moved_as_torch_moves_them(self) -> None:
        import torch

        from oracle import draw, fused
        from oracle.facts import Known

        numbers = torch.cat([torch.randn(5000), torch.tensor([0.0, -0.0, math.inf, math.nan, 1e-42, 3.0])])
        for up in (False, True):
            fast = draw.lean(numbers, Known(), up)
            held, fused._host = fused._host, None
            slow = draw.lean(numbers, Known(), up)
            fused._host = held
            self.assertTrue(torch.equal(fast.view(torch.int32), slow.view(torch.int32)))


class Sources(OracleTest):
    def test_an_oracle_whose_files_change_judges_nothing(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix="oracle-copy-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        shutil.copytree(ROOT / "oracle", folder / "oracle", ignore=shutil.ignore_patterns("__pycache__"))
        other = Oracle(folder)
        try:
            text = model("x): return torch.relu(x)", "[torch.rand(16, 30)]")
            self.assertTrue(other.load_text(text)["ok"])
            with open(folder / "oracle" / "noise.py", "a", encoding="utf-8") as file:
                file.write("# newer\n")
            said = other.load_text(text)
            self.assertEqual((said["ok"], said["kind"]), (False, "machine"), said)
            self.assertIn("files have changed since it was started", said["text"])
        finally:
            other.close()


class Mixed(OracleTest):
    def test_a_few_rows_are_of_another_distribution(self) -> None:
        self.loaded(model("x): return x * 1.5", "[torch.rand(256, 96)]"))
        self.oracle.draw("rows", distribution="mixed")
        values = self.oracle.read("in0")
        signed = [any(v < 0 for v in values[k * 96 : (k + 1) * 96]) for k in range(256)]
        self.assertTrue(8 < sum(signed) < 80, sum(signed))

    def test_inputs_that_must_be_positive_stay_positive(self) -> None:
        self.loaded(model("x): return torch.log(x)", "[torch.rand(256, 96) + 0.1]"))
        self.oracle.draw("rows", distribution="mixed")
        self.assertGreater(min(self.oracle.read("in0")), 0.0)

    def test_tf32_of_a_long_positive_sum_is_imprecise(self) -> None:
        self.loaded(model("a, b): return torch.sqrt(a @ b)", "[torch.rand(4, 4096), torch.rand(4096, 4)]"))
        for narrow in (False, True):
            self.oracle.draw("long", distribution="mixed")
            a, b = (list(self.oracle.read(name)) for name in ("in0", "in1"))
            if narrow:
                a, b = [tf32(v) for v in a], [tf32(v) for v in b]
            out = [math.sqrt(sum(a[i * 4096 + k] * b[k * 4 + j] for k in range(4096))) for i in range(4) for j in range(4)]
            self.oracle.write("out0", out)
            one = self.oracle.judge()["outputs"][0]
            self.assertEqual((one["wrong"], one["imprecise"]), (0, narrow), one)


class Explaining(unittest.TestCase):
    def test_what_was_written_since_it_was_counted_as_missing_is_wrong_all_the_same(self) -> None:
        sys.path.insert(0, os.environ.get("CUTEGEN_ROOT") or str(Path(__file__).resolve().parents[2]))
        import torch

        from oracle.compare import explained

        bad = torch.zeros(8, 8, dtype=torch.bool)
        bad[3] = True
        self.assertEqual(explained(bad, torch.zeros(8, 8), torch.ones(8, 8), 5).text, "row 3 of 8 only")


if __name__ == "__main__":
    unittest.main(verbosity=1)
