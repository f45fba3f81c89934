"""The oracle, driven over its protocol as the orchestrator drives it. Standard library only.

A test's name is the sentence it proves. Candidates are played by writing into the buffer files.
"""

from __future__ import annotations

import json
import os
import struct
import tempfile
import unittest
from pathlib import Path
from typing import Any

from client import COPY, HEAD, ROOT, Oracle, OracleTest, model


class Faults(OracleTest):
    CASES = [
        ("a syntax error is reported with its line", HEAD + "def broken(:\n", ":4: SyntaxError"),
        ("an exception at load is reported with its line", HEAD + "\nraise ValueError('no luck')\n", ":5: ValueError: no luck"),
        ("a task without Model is refused", HEAD + "def get_inputs(): return []\n", "no class Model"),
        ("a task without get_inputs is refused", HEAD + "class Model(nn.Module): pass\n", "no function get_inputs"),
        (
            "a forward that raises is reported with its line",
            model("x): return x @ x", "[torch.rand(2, 3)]"),
            "task.py:6: RuntimeError",
        ),
        ("a forward without a tensor is refused", model("x): return 3", "[torch.rand(2)]"), "returns no tensor"),
        ("a random forward is refused", model("x): return x + torch.rand(2)", "[torch.rand(2)]"), "forward is random (aten.rand"),
        ("dropout is refused", model("x): return F.dropout(x)", "[torch.rand(99)]"), "forward is random"),
        (
            "a forward that counts its calls is refused",
            model("x):\n        self.n += 1\n        return x + self.n", "[torch.rand(2)]", "self.n = 0"),
            "keeps state",
        ),
        ("arguments that do not fit are reported", model("x, y): return x", "[torch.rand(2)]"), "does not fit Model.forward"),
        ("exit in a task ends the task only", model("x): raise SystemExit(3)", "[torch.rand(2)]"), "SystemExit"),
        ("what is no Exception ends the task only", model("x): raise KeyboardInterrupt('key')", "[torch.rand(2)]"), "KeyboardInterrupt: key"),
        ("an error whose text is no Unicode is shown", model("x): raise ValueError('\\udcff \\x00')", "[torch.rand(2)]"), "\\udcff \\x00"),
        ("too many tensors are refused", model("*x): return x[0]", "[torch.rand(2) for _ in range(513)]"), "512 of each at most"),
        ("a tensor beyond the memory is refused", model("x): return x", "[torch.rand(1 << 21, 1 << 21)]"), "needs more memory"),
        ("a result of no elements is refused", model("x): return x * 2", "[torch.rand(0, 16)]"), "nothing is computed: out is [0, 16]"),
        ("a shape made of values is refused", model("x): return torch.nonzero(x > 0.5)", "[torch.rand(64, 64)]"), "depends on the values"),
        ("an unknown type is refused", model("x): return x", "[torch.rand(2, dtype=torch.complex64)]"), "complex64"),
        ("a complex result is refused", model("x): return x * 1j", "[torch.rand(8)]"), "complex64"),
        ("a sparse result is refused", model("x): return x.to_sparse()", "[torch.rand(8, 8)]"), "sparse"),
    ]

    def test_every_fault_of_a_task_is_named(self) -> None:
        for name, text, wanted in self.CASES:
            with self.subTest(name):
                answer = self.oracle.load_text(text)
                self.assertFalse(answer["ok"], answer)
                self.assertEqual(answer["kind"], "memory" if wanted == "needs more memory" else "use")
                self.assertIn(wanted, answer["text"])
                self.assertTrue(answer["hint"] and answer["text"].encode())

    def test_a_child_that_a_task_forks_answers_nothing(self) -> None:
        self.loaded("import os\nos.fork()\n" + model("x): return x + 1", "[torch.rand(2)]"))
        for seed in range(3):
            self.assertIn("buffers", self.oracle.draw(str(seed)))
            self.assertIn("outputs", self.oracle.ask(do="compare"))

    @unittest.skipIf(os.path.exists("/dev/nvidiactl"), "there is a GPU")
    def test_a_task_that_needs_a_gpu_to_be_made_is_told_that_it_does_not(self) -> None:
        answer = self.oracle.load_text(model("x): return x", "[torch.rand(2).cuda()]"))
        self.assertIn("leave out .cuda()", answer["hint"])

    def test_a_missing_module_comes_with_how_to_install_it(self) -> None:
        answer = self.oracle.load_text("import no_such_module.part\n" + model("x): return x", "[torch.rand(2)]"))
        self.assertIn("No module named 'no_such_module'", answer["text"])
        self.assertTrue(answer["hint"].endswith("-m pip install no_such_module"), answer["hint"])

    def test_a_mask_whose_result_is_summed_is_no_moving_shape(self) -> None:
        task = self.loaded(model("x): return x[x > 0.5].sum()", "[torch.rand(64, 64)]"))
        self.assertIsNone(task["graph_gap"])

    def test_a_number_of_what_a_mask_leaves_is_that_of_one_draw(self) -> None:
        for forward, is_counted in (
            ("x[x > 0.5].sum() / len(x[x > 0.5])", True),
            ("x[x[:, 0] > 0.5].sum() / max(1, x[x[:, 0] > 0.5].numel())", True),
            ("x[x > 0.5].sum() * (1.0 / len(x[x > 0.5]))", False),
        ):
            gap = self.loaded(model(f"x): return {forward}", "[torch.rand(64, 64)]"))["graph_gap"]
            self.assertIn("" if is_counted else "how many elements a mask leaves", gap or "")
            self.assertEqual(gap is None, is_counted)

    def test_what_an_old_torch_lacks_comes_with_how_to_get_a_newer_one(self) -> None:
        """The task itself says which torch this is, so that it holds with any; in an oracle of its own."""
        oracle = Oracle()
        self.addCleanup(oracle.close)
        for version, line, wanted in (
            ("1.13.1", "torch.nn.functional.not_there_yet", True),
            ("2.3.0", "from torch.nn.functional import not_there_yet", True),
            ("2.3.0", "import torch.not_there_yet", True),
            ("2.3.0", "torch.zeros(1).not_there_yet", True),
            ("2.4.0", "torch.nn.functional.not_there_yet", False),
            ("1.13.1", "[].not_there_yet", False),
        ):
            answer = oracle.load_text(f"import torch\ntorch.__version__ = '{version}'\n{line}\n")
            self.assertIn("not_there_yet", answer["text"])
            self.assertEqual("make torch" in answer["hint"], wanted, answer["hint"])

    def test_a_device_can_be_opened_before_a_task_is_loaded(self) -> None:
        self.assertEqual(self.oracle.ask(do="ready", device="cpu"), {"ok": True})
        self.assertIn("no device", self.oracle.ask(do="ready", device="abacus")["text"])

    def test_a_missing_file_is_named(self) -> None:
        answer = self.oracle.load("/nowhere/task.py")
        self.assertIn("/nowhere/task.py", answer["text"])

    def test_requests_out_of_order_are_refused(self) -> None:
        oracle = Oracle()
        self.assertIn("no task is loaded", oracle.ask(do="draw", seed="1")["text"])
        self.assertIn("no request", oracle.ask(do="dance")["text"])
        oracle.load_text(COPY)
        self.assertIn("nothing was drawn", oracle.ask(do="compare")["text"])
        self.assertIn("no distribution", oracle.draw(distribution="odd")["text"])
        self.assertIn("CUDA", oracle.ask(do="baseline", name="eager")["text"])
        self.assertEqual(oracle.close(), 0)

    def test_a_line_that_is_not_json_gets_an_answer(self) -> None:
        self.oracle.process.stdin.write("{]\n")
        self.oracle.process.stdin.flush()
        self.assertFalse(json.loads(self.oracle.process.stdout.readline())["ok"])

    def test_an_unknown_constant_is_refused_with_the_known_ones(self) -> None:
        answer = self.oracle.load(ROOT / "examples" / "swish.py", set={"WIDTH": 3})
        self.assertIn("BATCH=4096", answer["hint"])

    def test_prints_and_reads_of_a_task_do_not_disturb_the_answers(self) -> None:
        self.loaded(
            model(
                "x):\n        import os, sys\n        print('{\"ok\": false}')\n        os.write(1, b'noise\\n')\n        assert sys.stdin.read() == ''\n        return x + 0",
                "[torch.rand(8)]",
            )
        )
        self.assertEqual(self.judged()["wrong"], 0)


class Loading(OracleTest):
    def test_inputs_are_arguments_then_state_dict_then_other_tensors(self) -> None:
        task = self.loaded(
            model(
                "x, k=3): return self.l(x) * self.t + self.b + k",
                "[torch.rand(4, 8)]",
                "self.l = nn.Linear(8, 8); self.t = torch.rand(8); self.register_buffer('b', torch.rand(8), persistent=False)",
            )
        )
        self.assertEqual(
            [(i["name"], i["role"]) for i in task["inputs"]],
            [("x", "input"), ("l.weight", "parameter"), ("l.bias", "parameter"), ("b", "buffer"), ("t", "buffer")],
        )
        self.assertEqual(task["scalars"], [{"name": "k", "type": "int", "value": 3, "default": True}])
        self.assertEqual(self.judged()["wrong"], 0)

    def test_nested_arguments_and_results_are_flattened_in_order(self) -> None:
        task = self.loaded(
            model(
                "xs, s, *, scale): return {'sum': xs[0] + xs[1]['a'], 'more': (s.sum(), s.argmax())}",
                "{'s': torch.rand(5), 'xs': [torch.rand(3), {'a': torch.rand(3)}], 'scale': 2.5}",
            )
        )
        self.assertEqual([i["name"] for i in task["inputs"]], ["xs.0", "xs.1.a", "s"])
        self.assertEqual(
            [(o["name"], o["dtype"], o["shape"]) for o in task["outputs"]],
            [("sum", "f32", [3]), ("more.0", "f32", []), ("more.1", "i64", [])],
        )
        self.assertEqual(task["scalars"], [{"name": "scale", "type": "float", "value": 2.5}])

    def test_every_dtype_travels(self) -> None:
        for dtype, name in (
            ("float64", "f64"),
            ("float32", "f32"),
            ("float16", "f16"),
            ("bfloat16", "bf16"),
            ("int64", "i64"),
            ("int32", "i32"),
            ("int16", "i16"),
            ("int8", "i8"),
            ("uint8", "u8"),
            ("bool", "bool"),
        ):
            with self.subTest(name):
                make = (
                    f"torch.rand(99).to(torch.{dtype})" if "float" in dtype else f"torch.randint(0, 2, (99,)).to(torch.{dtype})"
                )
                task = self.loaded(model("x): return x.clone()", f"[{make}]"))
                self.assertEqual(task["outputs"][0]["dtype"], name)
                self.oracle.draw()
                self.assertEqual(self.oracle.judge()["outputs"][0]["unwritten"], 99)
                self.oracle.ask(do="reference")
                self.assertEqual(self.oracle.judge()["outputs"][0]["wrong"], 0)

    def test_half_products_work_on_any_cpu(self) -> None:
        for dtype in ("float16", "bfloat16"):
            task = self.loaded(
                model("a, b): return torch.relu(a @ b)", f"[torch.randn(64, 64).to(torch.{dtype}) for _ in range(2)]")
            )
            self.assertEqual(task["outputs"][0]["dtype"], "f16" if dtype == "float16" else "bf16")
            self.assertEqual(self.judged()["wrong"], 0)

    def test_a_number_raised_to_a_tensor_is_described(self) -> None:
        task = self.loaded(model("x): return 2.0 ** x", "[torch.rand(64, 96)]"))
        self.assertIn("pow", " ".join(node["op"] for node in task["graph"]))

    def test_strided_and_expanded_inputs_keep_their_strides(self) -> None:
        task = self.loaded(model("x, y): return x * y", "[torch.randn(6, 8).t(), torch.randn(8, 1).expand(8, 6)]"))
        self.assertEqual([i["strides"] for i in task["inputs"]], [[1, 8], [1, 0]])
        for distribution in ("task", "normal"):
            self.assertEqual(self.judged(distribution)["wrong"], 0)
            x, y, out = self.oracle.read("in0"), self.oracle.read("in1"), self.oracle.read("out0")
            for i in range(8):
                for j in range(6):
                    self.assertAlmostEqual(out[i * 6 + j], x[i + 8 * j] * y[i], 6)

    def test_a_model_may_hold_expanded_buffers_and_tensors_by_the_old_constructor(self) -> None:
        init = """self.register_buffer("table", torch.rand(1, 3).expand(4, 3))
        self.weight, self.sizes = nn.Parameter(torch.Tensor(4, 3).fill_(2.0)), torch.Tensor([1, 2.5, 3])"""
        task = self.loaded(model("x): return x * self.table * self.weight + self.sizes", "[torch.rand(4, 3)]", init))
        self.assertEqual([i["strides"] for i in task["inputs"][2:]], [[0, 1], [1]])
        self.assertEqual(self.judged()["wrong"], 0)

    def test_a_place_that_a_tensor_holds_is_an_index_of_the_graph(self) -> None:
        task = self.loaded(model("x, i):\n        x[i] = 7\n        return x", "[torch.rand(5, 3), torch.tensor(2)]"))
        self.assertTrue(any("index_put" in node["op"] for node in task["graph"]))
        task = self.loaded(model("x): return x[x.argmax()]", "[torch.rand(64)]"))
        self.assertTrue(task["graph_exact"])
        self.assertEqual(sum(node["op"] == "aten.index.Tensor" for node in task["graph"]), 1)
        task = self.loaded(model("x): return x[int(x.argmax())]", "[torch.rand(64)]"))  # the number itself is seen
        self.assertFalse(task["graph_exact"])

    def test_an_infinite_constant_is_no_number(self) -> None:
        task = self.loaded(model('x):\n        y = x * 2\n        y[x > 0.5] = float("-inf")\n        return y', "[torch.rand(64)]"))
        self.assertEqual([node["text"] for node in task["graph"] if node["op"] == "constant"], ["-inf"])

    def test_a_result_keeps_channels_last_where_the_task_says_so(self) -> None:
        given = "[torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)]"
        for text, strides in (("KEEP_STRIDES = True\n", [60, 1, 15, 3]), ("KEEP_STRIDES = False\n", [60, 20, 5, 1])):
            task = self.loaded(text + model("x): return x * 2", given))
            self.assertEqual(task["outputs"][0]["strides"], strides)
            self.assertEqual(self.judged()["wrong"], 0)
            twice = [2 * v for v in self.oracle.read("in0")]
            self.assertEqual(list(self.oracle.read("out0")) == twice, "True" in text)
        task = self.loaded("KEEP_STRIDES = True\n" + model("x): return x.transpose(2, 3) * 2", given))
        self.assertEqual(task["outputs"][0]["strides"], [60, 20, 4, 1])  # of other orders nothing is kept

    def test_a_forward_that_writes_into_its_arguments_is_still_judged(self) -> None:
        task = self.loaded(model("x):\n        x += 1\n        return x * 2", "[torch.rand(16)]"))
        self.assertTrue(any("writes into it" in fact for fact in task["facts"]))
        self.assertEqual(task["written"], ["x"])
        self.assertEqual(self.judged()["wrong"], 0)
        self.assertEqual(self.oracle.judge()["inputs_modified"], [])

    def test_batch_norm_in_training_mode_is_judged_and_its_statistics_stay(self) -> None:
        self.loaded(model("x): return self.n(x)", "[torch.randn(8, 4, 5, 5)]", "self.n = nn.BatchNorm2d(4)"))
        self.assertEqual(self.judged()["wrong"], 0)
        self.assertEqual(self.oracle.judge()["inputs_modified"], [])

    def test_nothing_is_left_behind(self) -> None:
        oracle = Oracle()
        oracle.load_text(COPY)
        oracle.draw()
        self.assertTrue((oracle.work / "in0").exists())
        self.assertTrue(oracle.ask(do="end")["ok"])
        self.assertEqual([p.name for p in oracle.work.iterdir()], ["task.py"])
        oracle.close()


class Scaling(OracleTest):
    LIMIT = 1 << 16

    def scaled(
        self, constants: str, inputs: str, forward: str = "*x): return x[0] + 1", init: str = "", **more: Any
    ) -> dict[str, Any]:
        return self.loaded(model(forward, inputs, init, constants), max_elements=self.LIMIT, **more)

    def test_sizes_shrink_until_they_fit_and_the_change_is_told(self) -> None:
        task = self.scaled("ROWS = 4096\nCOLUMNS = 1 << 17\n", "[torch.rand(ROWS, COLUMNS)]")
        rows, columns = task["inputs"][0]["shape"]
        self.assertLessEqual(rows * columns, self.LIMIT)
        self.assertGreater(rows * columns, self.LIMIT // 8)
        self.assertGreater(columns, rows)
        self.assertEqual(task["scaled"], {"ROWS": [4096, rows], "COLUMNS": [131072, columns]})

    def test_a_task_that_fits_is_left_alone(self) -> None:
        self.assertIsNone(self.scaled("N = 64\n", "[torch.rand(N, N)]")["scaled"])
        self.assertIsNone(self.scaled("N = 4\n", "[torch.rand(N, 3, N)]")["scaled"])
        self.assertIsNone(self.scaled("", "[torch.rand(4, 3, 4)]")["scaled"])

    def test_powers_of_two_odd_sizes_and_small_factors_keep_their_nature(self) -> None:
        task = self.scaled("A, B, C = 4096, 3001, 768\n", "[torch.rand(A, B), torch.rand(C)]")
        a, b = task["inputs"][0]["shape"]
        c = task["inputs"][1]["shape"][0]
        self.assertEqual((a & (a - 1), b % 2, c % 3), (0, 1, 0))

    def test_small_constants_and_what_divides_stay(self) -> None:
        task = self.scaled("HEADS = 12\nDIM = 768\n", "[torch.rand(512, HEADS, DIM // HEADS)]")
        self.assertNotIn("HEADS", task["scaled"])
        self.assertEqual(task["scaled"]["DIM"][1] % 12, 0)

    def test_what_is_computed_from_a_constant_follows(self) -> None:
        task = self.scaled("N = 4096\nM = N // 2\nshape = (N, 8)\n", "[torch.rand(N, M)]")
        self.assertEqual(task["inputs"][0]["shape"][0], 2 * task["inputs"][0]["shape"][1])
        self.assertEqual(task["source_constants"], {"N": 4096, "shape[1]": 8})

    def test_the_text_that_was_judged_has_the_other_sizes_and_every_other_line(self) -> None:
        constants = "N: int = 1 << 12  # größer\nA, B = (4096,\n        7)\nshape = (N, 8)\n"
        task = self.scaled(constants, "[torch.rand(N, A, 1), torch.rand(3, 64)]")
        text, (n, a) = task["judged_source"], task["inputs"][0]["shape"][:2]
        self.assertIn(f"N: int = {n}  # größer\nA, B = ({a},\n        7)\nshape = (N, 8)\n", text)
        self.assertEqual(text.count("\n"), model("*x): return x[0] + 1", "[torch.rand(N, A, 1), torch.rand(3, 64)]", "", constants).count("\n"))
        again = self.loaded(text)
        self.assertEqual((again["inputs"], again["scaled"], again["judged_source"]), (task["inputs"], None, None))

    def test_the_call_is_told_with_its_tensors_by_number(self) -> None:
        task = self.loaded(model("p, k=2): return p[0] * k + p[1]", "[[torch.rand(4), torch.rand(4)]]"))
        self.assertEqual(task["call"], {"list": [{"list": [{"list": [{"tensor": 0}, {"tensor": 1}]}, {"int": "2"}]}, {"dict": {}}]})
        self.assertTrue(task["training"])

    def test_sizes_in_a_tuple_are_scaled_too(self) -> None:
        self.assertIn("shape[0]", self.scaled("shape = (1 << 20,)\n", "[torch.rand(4, *shape)]")["scaled"])

    def test_a_size_written_out_in_the_model_holds_its_constant_back(self) -> None:
        task = self.scaled("N = 4096\nK = 256\n", "[torch.rand(N, K)]", "x): return self.l(x)", "self.l = nn.Linear(256, 64)")
        self.assertEqual(list(task["scaled"]), ["N"])

    def test_products_are_limited_by_their_work(self) -> None:
        task = self.loaded(
            model("a, b): return a @ b", "[torch.rand(N, N), torch.rand(N, N)]", "", "N = 4096\n"),
            max_elements=1 << 22,
            max_flops=1e6,
        )
        self.assertLessEqual(task["flops"], 1e6)

    def test_a_set_constant_is_exact_and_the_rest_still_shrinks(self) -> None:
        task = self.scaled("ROWS = 4096\nCOLUMNS = 4096\n", "[torch.rand(ROWS, COLUMNS)]", set={"ROWS": 77})
        self.assertEqual(task["inputs"][0]["shape"][0], 77)
        self.assertLess(task["inputs"][0]["shape"][1], 4096)

    def test_sizes_written_out_shrink_together_where_there_are_no_names(self) -> None:
        task = self.scaled("", "[torch.rand(512, 4096)]", "x): return self.l(x)", "self.l = nn.Linear(4096, 1024)")
        rows, columns = task["inputs"][0]["shape"]
        self.assertLessEqual(rows * columns, self.LIMIT)
        self.assertEqual(task["scaled"]["4096"], [4096, columns])
        self.assertEqual(task["inputs"][1]["shape"], [task["outputs"][0]["shape"][1], columns])

    def test_a_number_written_out_can_be_set(self) -> None:
        task = self.loaded(model("x): return x + 1", "[torch.rand(300, 4096)]"), set={"4096": 48})
        self.assertEqual(task["inputs"][0]["shape"], [300, 48])
        self.assertEqual(task["scaled"], {"4096": [4096, 48]})

    def test_names_are_enough_where_they_are_there(self) -> None:
        task = self.scaled("N = 4096\n", "[torch.rand(N, 64)]")
        self.assertEqual(list(task["scaled"]), ["N"])

    def test_a_window_that_needs_more_than_the_limits_is_taken_at_its_smallest_size(self) -> None:
        task = self.scaled("", "[torch.rand(8, 200, 200)]", "x): return F.max_pool2d(x, 99, stride=50)")
        rows = task["inputs"][0]["shape"][1]
        self.assertGreaterEqual(rows, 99)
        self.assertLess(rows, 200)
        self.assertGreater(8 * rows * rows, self.LIMIT)

    def test_what_fails_only_when_it_runs_is_scaled_less(self) -> None:
        task = self.scaled("", "[torch.rand(4, 16, 33, 65)]", "x): return F.pad(x, (31, 30, 15, 14), mode='reflect')")
        self.assertGreater(task["inputs"][0]["shape"][3], 31)

    def test_a_model_with_hooks_and_16_bit_weights_beside_others_is_scaled(self) -> None:
        """Shapes alone and float64 need a copy of the model: its hooks must not write into the first one."""
        hooks = "self.seen = {}; self.a = nn.ReLU(); self.a.register_forward_hook(lambda m, i, o: self.seen.update(a=o)); self.f = lambda x: self.w.float() + x"
        weights = "; self.w = nn.Parameter(torch.rand(8, 8).half())"
        forward = "x): y = self.a(x); return self.f(self.seen.pop('a')) * 2, x.half() @ self.w"
        task = self.scaled("", "[torch.rand(8, 8)]", forward, hooks + weights)
        self.assertIsNone(task["scaled"])
        answer = self.oracle.draw("1", distribution="normal")
        self.assertTrue(answer["ok"], answer)
        self.assertEqual(answer.get("truth", "float64"), "float64")

    def test_a_task_whose_sizes_hang_together_is_taken_as_it_is(self) -> None:
        kernel = "self.c = nn.Conv2d(64, 64, 3, dilation=20)"
        task = self.scaled("", "[torch.rand(1, 64, 64, 64)]", "x): return self.c(x)", kernel)
        self.assertIsNone(task["scaled"])

    def test_a_task_that_cannot_be_made_to_fit_is_refused_with_advice(self) -> None:
        answer = self.oracle.load_text(
            model("x): return x", "[torch.rand(*[2 ** k for k in (12, 12)])]"), max_elements=self.LIMIT
        )
        self.assertIn("does not fit", answer["text"])
        self.assertIn("top of the file", answer["hint"])


class Describing(OracleTest):
    def test_tensors_that_a_forward_keeps_are_no_inputs(self) -> None:
        """Tables made at the first call, states set anew in each; lazy modules."""
        table = "x):\n        if self.t is None or self.n < x.shape[1]:\n            self.n = x.shape[1]; self.t = torch.arange(self.n).float().cos()"
        table += "\n            self.register_buffer('b', self.t * 2, persistent=False)\n        self.state = x * self.t\n        return self.state + self.b"
        task = self.loaded(model(table, "[torch.rand(8, 8)]", "self.t = None; self.n = 0; self.state = None"), max_elements=1 << 16)
        self.assertEqual([i["name"] for i in task["inputs"]], ["x"])
        self.assertEqual(self.judged()["wrong"], 0)
        lazy = self.loaded(model("x): return self.f(x)", "[torch.rand(8, 5)]", "self.f = nn.Sequential(nn.LazyLinear(7), nn.ReLU(), nn.LazyLinear(3))"))
        self.assertEqual([i["shape"] for i in lazy["inputs"]], [[8, 5], [7, 5], [7], [3, 7], [3]])
        keeping = "x): self.s = x if self.s is None else self.s + x; return self.s"
        self.assertIn("keeps state", self.oracle.load_text(model(keeping, "[torch.rand(8, 8)]", "self.s = None"))["text"])

    def test_records_are_inputs_and_results(self) -> None:
        """Instances of dataclasses, as models of many repositories take and return them."""
        record = "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass Batch:\n    x: torch.Tensor\n    n: object\n    mask: object = None\n"
        text = model("b): return Batch(b.x * b.mask[0], n=None, mask={'y': b.x + 1})", "[Batch(torch.rand(8, 8), 3, [torch.rand(8)])]", constants=record)
        task = self.loaded(text)
        self.assertEqual([i["name"] for i in task["inputs"]], ["b.x", "b.mask.0"])
        self.assertEqual([o["name"] for o in task["outputs"]], ["x", "mask.y"])
        self.assertEqual(self.judged()["wrong"], 0)

    def test_what_is_random_in_training_alone_is_not_refused_outside_of_it(self) -> None:
        slope = "x): return F.rrelu(x, 0.1, 0.3, training={})"
        self.loaded(model(slope.format(False), "[torch.rand(8, 8)]"))
        self.assertIn("random", self.oracle.load_text(model(slope.format(True), "[torch.rand(8, 8)]"))["text"])

    CLASSES = [
        ("x): return torch.tanh(x) * 2", "[torch.rand(64, 64)]", "pointwise"),
        ("x): return x.softmax(-1)", "[torch.rand(64, 64)]", "reduction"),
        ("x): return x.mean()", "[torch.rand(64, 64)]", "reduction"),
        ("x): return F.layer_norm(x, (64,))", "[torch.rand(64, 64)]", "reduction"),
        ("a, b): return a @ b", "[torch.rand(64, 64), torch.rand(64, 64)]", "gemm"),
        ("a, b): return a @ b", "[torch.rand(64, 64), torch.rand(64, 1)]", "reduction"),
        (
            "q, k, v): return ((q @ k.transpose(1, 2)) * 0.1).softmax(-1) @ v",
            "[torch.rand(2, 8, 16), torch.rand(2, 32, 16), torch.rand(2, 32, 16)]",
            "attention",
        ),
        ("a, b): return torch.diag(a) @ b", "[torch.rand(64), torch.rand(64, 64)]", "pointwise"),
        ("a, w): return F.conv2d(a, w)", "[torch.rand(2, 8, 16, 16), torch.rand(8, 8, 3, 3)]", "convolution"),
        ("i, w): return F.embedding(i, w)", "[torch.randint(0, 9, (64,)), torch.rand(9, 64)]", "other"),
        ("x): return x.sort(-1)[0]", "[torch.rand(64, 64)]", "other"),
        ("x): return torch.cat([x, x], 1)", "[torch.rand(64, 64)]", "other"),
        ("x): return torch.cat([x.sin(), x.cos()], 1)", "[torch.rand(64, 64)]", "pointwise"),
    ]

    def test_the_class_follows_from_the_graph(self) -> None:
        for forward, inputs, wanted in self.CLASSES:
            with self.subTest(forward):
                task = self.loaded(model(forward, inputs))
                self.assertEqual(task["class"], wanted, task["evidence"])
                self.assertTrue(task["evidence"])

    def test_the_graph_names_operators_with_their_arguments(self) -> None:
        graph = self.loaded(model("x): return self.l(x).relu() * 0.5", "[torch.rand(4, 8)]", "self.l = nn.Linear(8, 16)"))[
            "graph"
        ]
        self.assertEqual(
            [n["op"] for n in graph],
            ["input"] * 3 + ["aten.t.default", "aten.addmm.default", "aten.relu.default", "aten.mul.Tensor", "output"],
        )
        self.assertEqual(graph[4]["args"], [{"node": 2}, {"node": 0}, {"node": 3}])
        self.assertEqual(graph[6]["args"][1], {"value": 0.5})
        self.assertEqual(graph[4]["shape"], [4, 16])
        self.assertEqual(graph[7]["args"], [{"node": 6}])

    def test_results_of_an_operator_with_several_are_parts(self) -> None:
        graph = self.loaded(model("x): return torch.max(x, 1)[1]", "[torch.rand(4, 8)]"))["graph"]
        self.assertEqual(graph[-1]["args"], [{"node": 1, "part": 1}])
        self.assertEqual([p["dtype"] for p in graph[1]["parts"]], ["f32", "i64"])

    BOUNDS = [
        (
            "a product",
            "a, b): return a @ b",
            "[torch.rand(32, 64), torch.rand(64, 16)]",
            4 * (32 * 64 + 64 * 16 + 32 * 16),
            2 * 32 * 64 * 16,
        ),
        (
            "triangles take off half of the bytes and five sixths of the work",
            "a, b): return a @ b",
            "[torch.rand(64, 64).triu(), torch.rand(64, 64).triu()]",
            4 * (2 * 64 * 65 // 2 + 64 * 64),
            2 * 64 * 65 * 66 // 6,
        ),
        ("a slice reads only itself", "x): return x[:, :8] * 2", "[torch.rand(64, 64)]", 4 * (64 * 8 * 2), 64 * 8),
        (
            "both halves of a split are read, and of four parts the two that are used",
            "x, y): a, b = x.chunk(2, -1); c = y.chunk(4, -1); return torch.cat([a * c[0], b + c[3]], -1)",
            "[torch.rand(64, 8), torch.rand(64, 16)]",
            4 * 64 * (8 + 8 + 8),
            0,
        ),
        (
            "an embedding reads only its rows",
            "i, w): return F.embedding(i, w)",
            "[torch.zeros(4, dtype=torch.int64), torch.rand(99, 8)]",
            4 * 8 + 4 * (32 + 32),
            0,
        ),
        (
            "a product that is only summed can be avoided",
            "a, b): return (a @ b).sum(1)",
            "[torch.rand(8, 8), torch.rand(8, 8)]",
            4 * (64 + 64 + 8),
            64,
        ),
    ]

    def test_bytes_and_flops_are_lower_bounds(self) -> None:
        for name, forward, inputs, nbytes, flops in self.BOUNDS:
            with self.subTest(name):
                task = self.loaded(model(forward, inputs))
                self.assertEqual((task["bytes_min"], task["flops_min"]), (nbytes, flops))

    FACTS = [
        ("torch.rand(64, 64)", "in0 is uniform in [0, 1)"),
        ("torch.randn(64, 64) * 2", "in0 is normal with mean 0 and standard deviation 2"),
        ("torch.rand(64, 64).tril()", "in0 is lower triangular"),
        ("torch.diag(torch.rand(64))", "in0 is diagonal"),
        ("(lambda a: a + a.t())(torch.rand(64, 64))", "in0 is symmetric"),
        ("torch.rand(64, 64).softmax(1)", "every row is non-negative and sums to 1"),
        ("torch.randint(3, 9, (64, 64))", "in0 is an integer in [3, 8]"),
        ("torch.ones(64, 64)", "in0 is 1 everywhere"),
        ("torch.randint(0, 2, (64, 64)).float()", "few different values"),
    ]

    def test_facts_about_inputs_are_seen(self) -> None:
        for make, wanted in self.FACTS:
            with self.subTest(make):
                facts = self.loaded(model("x): return x * 2", f"[{make}]"))["facts"]
                self.assertTrue(any(wanted in fact for fact in facts), facts)

    def test_a_domain_is_found_by_trying(self) -> None:
        for forward, domain in (
            ("x): return torch.log(x)", "positive"),
            ("x): return torch.acos(x)", "range"),
            ("x): return x * 2", "any"),
        ):
            task = self.loaded(model(forward, "[torch.rand(64, 64)]"))
            self.assertEqual(task["structure"]["in0"]["domain"], domain)
            self.assertEqual(task["beyond"], domain != "any")

    def test_nothing_is_drawn_beyond_a_domain_where_the_reference_would_fail(self) -> None:
        for forward, inputs in (
            ("p): return F.binary_cross_entropy(p, torch.ones_like(p))", "[torch.rand(64, 64)]"),
            ("x): return torch.log(x)", "[torch.rand(64, 64).softmax(1)]"),
        ):
            self.assertFalse(self.loaded(model(forward, inputs))["beyond"])


class Drawing(OracleTest):
    def test_the_seed_decides_and_another_seed_gives_other_values(self) -> None:
        self.loaded(model("x): return self.l(x)", "[torch.rand(8, 8)]", "self.l = nn.Linear(8, 8)"))
        for distribution in ("task", "normal", "wide", "small", "zeros"):
            drawn = []
            for seed in ("a", "a", "b"):
                self.oracle.draw(seed, distribution=distribution)
                drawn.append([list(self.oracle.read(f"in{k}")) for k in range(3)])
            self.assertEqual(drawn[0], drawn[1])
            for k in range(3):
                self.assertNotEqual(drawn[0][k], drawn[2][k])

    def test_a_draw_beyond_the_domain_leaves_it_in_a_few_rows(self) -> None:
        self.loaded(model("x): return torch.sqrt(x)", "[torch.rand(64, 64)]"))
        self.oracle.draw(distribution="beyond")
        values = self.oracle.read("in0")
        rows = [any(v < 0 for v in values[64 * k : 64 * k + 64]) for k in range(64)]
        self.assertTrue(0 < sum(rows) < 32, rows)
        self.oracle.ask(do="reference")
        self.assertEqual(self.oracle.judge()["outputs"][0]["wrong"], 0)
        self.oracle.change("out0", lambda y: [y.__setitem__(k, 0.0) for k, v in enumerate(values) if v < 0])
        self.assertEqual(self.oracle.judge()["outputs"][0]["wrong"], sum(v < 0 for v in values))

    def test_an_unwritten_element_is_never_right_even_where_the_answer_is_nan(self) -> None:
        self.loaded(model("x): return torch.sqrt(-1 - x * x)", "[torch.rand(64, 64)]"))
        self.oracle.draw()
        self.assertEqual(self.oracle.judge()["outputs"][0]["unwritten"], 64 * 64)
        self.oracle.ask(do="reference")
        judged = self.oracle.judge()["outputs"][0]
        self.assertEqual((judged["wrong"], judged["unwritten"]), (0, 0))

    def test_distributions_differ_in_kind(self) -> None:
        self.loaded(model("x): return x * 2", "[torch.rand(64, 64)]"))
        values = {}
        for distribution in ("task", "normal", "wide", "small", "zeros"):
            self.oracle.draw(distribution=distribution)
            values[distribution] = self.oracle.read("in0")
        self.assertTrue(all(0 <= v < 1 for v in values["task"]))
        self.assertLess(min(values["normal"]), -2)
        self.assertGreater(max(values["wide"]), 100)
        self.assertLess(max(values["small"]), 0.01)
        self.assertGreater(sum(v == 0 for v in values["zeros"]), 1000)

    def test_structure_survives_every_distribution(self) -> None:
        self.loaded(
            model(
                "a, s, t, p): return a + s + t, torch.log(p)",
                "[torch.rand(16, 16).triu(), (lambda m: m + m.t())(torch.rand(16, 16)), "
                "torch.randint(0, 3, (16, 16)), torch.rand(16, 16)]",
            )
        )
        for distribution in ("task", "normal", "wide", "small", "zeros"):
            self.oracle.draw(distribution=distribution)
            a, s, t, p = (self.oracle.read(f"in{k}") for k in range(4))
            self.assertTrue(all(a[i * 16 + j] == 0 for i in range(16) for j in range(i)))
            self.assertTrue(all(s[i * 16 + j] == s[j * 16 + i] for i in range(16) for j in range(16)))
            self.assertTrue(all(0 <= v < 3 for v in t))
            self.assertTrue(all(v > 0 for v in p))

    def test_parameters_of_16_bits_are_stirred_too(self) -> None:
        init = "self.w = nn.Parameter(torch.ones(8).half())"
        self.loaded(model("x): return x * self.w", "[torch.rand(4, 8).half()]", init))
        self.assertTrue(self.oracle.ask(do="draw", seed="1", distribution="normal")["ok"])

    def test_constant_parameters_are_stirred_outside_of_the_tasks_own_distribution(self) -> None:
        self.loaded(model("x): return self.n(x)", "[torch.randn(8, 32)]", "self.n = nn.LayerNorm(32)"))
        self.oracle.draw(distribution="task")
        self.assertEqual(set(self.oracle.read("in1")), {1.0})
        self.oracle.draw(distribution="normal")
        self.assertGreater(len(set(self.oracle.read("in1"))), 20)
        self.assertGreater(len(set(self.oracle.read("in2"))), 20)
        self.assertTrue(all(v > 0 for v in self.oracle.read("in1")))

    def test_shift_moves_addresses_and_they_stay_aligned(self) -> None:
        self.loaded(COPY)
        offsets = set()
        for shift in range(5):
            self.oracle.draw(shift=shift)
            for place in self.oracle.buffers.values():
                self.assertEqual(place["offset"] % 256, 0)
                self.assertGreaterEqual(place["offset"], 4096)
                self.assertGreaterEqual(os.path.getsize(place["path"]) - place["offset"] - place["bytes"], 4096)
            offsets.add(self.oracle.buffers["in0"]["offset"])
            self.oracle.ask(do="reference")
            self.assertEqual(self.oracle.judge()["outputs"][0]["wrong"], 0)
        self.assertEqual(len(offsets), 5)

    def test_a_near_draw_changes_a_few_elements_in_place_and_keeps_structure(self) -> None:
        self.loaded(
            model(
                "x, a, s, t, w: torch.Tensor): return x.sum() + a * s + t + w",
                "[torch.rand(64, 64), torch.rand(64, 64).triu(), (lambda m: m + m.t())(torch.rand(64, 64)), "
                "torch.randint(0, 9, (64, 64)), torch.rand(64, 64).softmax(-1)]",
            )
        )
        self.oracle.draw("a", shift=3)
        places, before = dict(self.oracle.buffers), [list(self.oracle.read(f"in{k}")) for k in range(5)]
        self.oracle.ask(do="reference")
        self.oracle.draw("b", near=True)
        after = [list(self.oracle.read(f"in{k}")) for k in range(5)]
        self.assertEqual(places, self.oracle.buffers)
        changed = [sum(x != y for x, y in zip(*pair)) for pair in zip(before, after)]
        self.assertTrue(0 < changed[0] < 64 and changed[2] == 0, changed)
        self.assertTrue(all(after[1][i * 64 + j] == 0 for i in range(64) for j in range(i)))
        self.assertTrue(all(0 <= v < 9 for v in after[3]))
        self.assertTrue(all(abs(sum(after[4][i * 64 : i * 64 + 64]) - 1) < 1e-5 for i in range(64)))
        self.assertGreater(self.oracle.judge()["outputs"][0]["beyond"], 0)  # the answer of before is no answer
        self.oracle.ask(do="reference")
        self.assertEqual(self.oracle.judge()["outputs"][0]["wrong"], 0)

    def test_outputs_begin_as_a_signalling_nan(self) -> None:
        self.loaded(COPY)
        self.oracle.draw()
        place = self.oracle.buffers["out0"]
        with open(place["path"], "rb") as file:
            file.seek(place["offset"])
            self.assertEqual(struct.unpack("<I", file.read(4))[0], 0x7FA5C0DE)


class Trivial(OracleTest):
    CASES = [
        ("x): return torch.tanh(x)", "[torch.rand(64, 64)]", []),
        ("x): return x * 0", "[torch.rand(64, 64)]", ["zeros"]),
        ("x): return torch.sqrt(-1 - x * x)", "[torch.rand(64, 64)]", ["NaN"]),
        ("x): return x.clamp(-9, 9) + 0", "[torch.rand(64, 64)]", []),
        ("x): return x + 0", "[torch.rand(64, 64)]", ["copy of in0"]),
        ("x): return x.mean()", "[torch.rand(64, 64)]", []),
        ("x): return x * 3", "[torch.rand(64, 64)]", []),
        ("x): return torch.ones_like(x)", "[torch.rand(64, 64)]", ["ones"]),
    ]

    def test_trivial_answers_that_pass_are_named(self) -> None:
        for forward, inputs, wanted in self.CASES:
            with self.subTest(forward):
                self.loaded(model(forward, inputs))
                answer = self.oracle.ask(do="trivial")
                self.assertTrue(answer["ok"], answer)
                if wanted:
                    self.assertIn(wanted[0], answer["passes"])
                else:
                    self.assertEqual(answer["passes"], [])

    def test_a_copy_that_only_passes_for_positive_inputs_is_told_apart(self) -> None:
        self.loaded(model("x): return torch.relu(x)", "[torch.rand(64, 64)]"))
        answer = self.oracle.ask(do="trivial")
        self.assertEqual(answer["passes"], [])
        self.assertEqual(answer["passes_on"]["copy of in0"], ["task"])


class Cuda(OracleTest):
    """The same on a GPU; skipped where there is none. Device buffers are written by the oracle itself (`reference`)."""

    def setUp(self) -> None:
        answer = self.oracle.ask(
            do="load", task=str(ROOT / "examples" / "swish.py"), device="cuda:0", set={"BATCH": 64, "DIM": 4096}
        )
        if not answer["ok"] and answer["kind"] == "machine":
            self.skipTest(answer["text"])
        self.assertTrue(answer["ok"], answer)

    def test_buffers_are_shared_by_ipc_handles_and_judged_on_the_device(self) -> None:
        for distribution in ("task", "normal", "wide", "small", "zeros"):
            for place in self.oracle.draw("1", distribution=distribution, shift=3)["buffers"].values():
                self.assertEqual(len(place["ipc"]), 128)
                self.assertEqual(place["offset"] % 256, 0)
            self.assertEqual(self.oracle.judge()["outputs"][0]["unwritten"], 64 * 4096)
            self.assertTrue(self.oracle.ask(do="reference")["ok"])
            answer = self.oracle.judge()
            self.assertEqual((answer["inputs_modified"], answer["guards_hit"], answer["truth"]), ([], [], "float64"))
            self.assertEqual((answer["outputs"][0]["wrong"], answer["outputs"][0]["imprecise"]), (0, False))
        self.assertEqual(self.oracle.ask(do="trivial")["passes"], [])

    def test_baselines_are_timed(self) -> None:
        self.oracle.draw()
        for name in ("eager", "graph", "compile"):
            answer = self.oracle.ask(do="baseline", name=name, cold=5, warm=5)
            if not answer["ok"] and name == "compile":
                self.assertIn("torch.compile", answer["text"])
                continue
            self.assertTrue(answer["ok"], answer)
            # Runs that the host did not queue in time do not count: a busy machine gives fewer.
            self.assertTrue(1 <= len(answer["cold_us"]) <= 5 and 1 <= len(answer["warm_us"]) <= 5, answer)
            self.assertTrue(all(0 < t < 1e5 for t in answer["cold_us"] + answer["warm_us"]))

    def test_every_example_loads_at_a_moderate_size(self) -> None:
        for path in sorted((ROOT / "examples").glob("*.py")):
            with self.subTest(path.stem):
                scaled = self.oracle.load(path, max_elements=1 << 22, max_flops=1e10)["task"]["scaled"] or {}
                answer = self.oracle.ask(
                    do="load", task=str(path), device="cuda:0", set={name: to for name, (_, to) in scaled.items()}
                )
                self.assertTrue(answer["ok"], answer)
                one = self.judged("normal")
                self.assertEqual((one["wrong"], one["imprecise"]), (0, False), one)


class Examples(OracleTest):
    def test_every_example_loads_scaled_and_its_reference_passes(self) -> None:
        for path in sorted((ROOT / "examples").glob("*.py")):
            with self.subTest(path.stem):
                answer = self.oracle.load(path, max_elements=1 << 16, max_flops=1e7)
                self.assertTrue(answer["ok"], answer)
                self.assertIsNotNone(answer["task"]["scaled"])
                for distribution in ("task", "normal"):
                    one = self.judged(distribution)
                    self.assertEqual((one["wrong"], one["imprecise"]), (0, False), one)
                self.assertEqual(self.oracle.ask(do="trivial")["passes"], [])



class RestTest(OracleTest):
    """An oracle that is lent to one asker after the other."""

    def test_an_oracle_that_rests_holds_no_buffers_and_knows_its_task(self) -> None:
        first = self.loaded(COPY)
        self.assertTrue(self.oracle.draw()["ok"])
        paths = [Path(place["path"]) for place in self.oracle.buffers.values()]
        self.assertTrue(all(path.exists() for path in paths))
        self.assertTrue(self.oracle.ask(do="rest")["ok"])
        self.assertFalse(any(path.exists() for path in paths))
        self.assertFalse(self.oracle.ask(do="compare")["ok"])
        self.assertEqual(self.loaded(COPY), first)
        self.assertEqual(self.judged()["wrong"], 0)

    def test_buffers_lie_where_the_next_asker_wants_them(self) -> None:
        self.loaded(COPY)
        self.oracle.ask(do="rest")
        with tempfile.TemporaryDirectory() as other:
            answer = self.oracle.ask(do="load", task=str(self.oracle.work / "task.py"), device="cpu", work=other)
            self.assertTrue(answer["ok"], answer)
            self.assertTrue(self.oracle.draw()["ok"])
            self.assertTrue(all(b["path"].startswith(other) for b in self.oracle.buffers.values()))
            self.oracle.ask(do="rest")

    def test_a_task_that_changed_is_learnt_again(self) -> None:
        self.loaded(COPY)
        self.oracle.ask(do="rest")
        task = self.loaded(COPY.replace("64, 96", "32, 16"))
        self.assertEqual(task["inputs"][0]["shape"], [32, 16])

    def test_a_neighbour_that_changed_is_read_again(self) -> None:
        text = model("x): return x * sizes.FACTOR", "[torch.rand(sizes.N)]").replace("import torch\n", "import torch\nimport sizes\n", 1)
        for n, factor in ((64, 2.0), (128, 3.0)):
            (self.oracle.work / "sizes.py").write_text(f"N = {n}\nFACTOR = {factor}\n")
            self.assertEqual(self.loaded(text)["inputs"][0]["shape"], [n])
            self.oracle.draw()
            self.oracle.ask(do="reference")
            inputs, outputs = self.oracle.read("in0"), self.oracle.read("out0")
            self.assertAlmostEqual(outputs[0], factor * inputs[0], places=5)
            self.oracle.ask(do="rest")


if __name__ == "__main__":
    unittest.main(verbosity=1)
