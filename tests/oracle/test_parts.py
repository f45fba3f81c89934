"""Large tasks judged in parts: what is cut, what is found, and how much memory it takes. On the CPU, with a played limit."""

from __future__ import annotations

import os
import pathlib
import sys
import tempfile
import unittest
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(pathlib.Path(os.environ.get("CUTEGEN_ROOT", pathlib.Path(__file__).resolve().parents[2]))))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import torch  # noqa: E402
from client import model  # noqa: E402
from meter import Meter  # noqa: E402

from oracle import compare_parts, ends, fingerprint  # noqa: E402
from oracle.compare import Rules, compare_output, passes  # noqa: E402
from oracle.draw import redraw  # noqa: E402
from oracle.facts import Known  # noqa: E402
from oracle.fault import Fault, no_memory  # noqa: E402
from oracle.noise import to_tf32  # noqa: E402
from oracle.session import Session  # noqa: E402

ROOM = 1 << 18
IMAGES, ROWS = "[torch.rand(64, 8, 16, 16)]", "[torch.rand(256, 300)]"


class Parts(unittest.TestCase):
    def session(self, text: str, room: int = ROOM, baseline: str = "defaults") -> Session:
        folder = pathlib.Path(tempfile.mkdtemp())
        (folder / "task.py").write_text(text)
        one = Session({"task": str(folder / "task.py"), "device": "cpu", "room": room, "work": str(folder), "baseline": baseline})
        self.addCleanup(one.release)
        if one.plan:
            one.plan.rows = one.plan.batch // 3
        return one

    def judged(self, one: Session, distribution: str = "normal", spoil: Any = None) -> dict[str, Any]:
        one.draw({"seed": distribution, "distribution": distribution, "shift": 3})
        one.write_reference()
        if spoil:
            spoil(one)
        return one.compare()

    CUT = [
        ("pointwise", model("x): return F.gelu(x)", ROWS), {0}),
        ("softmax along a row", model("x): return torch.softmax(x, 1)", ROWS), {0}),
        ("a sum along a row", model("x): return x.sum(-1)", ROWS), {0}),
        ("the rows of a product", model("a, b): return a @ b", "[torch.rand(256, 64), torch.rand(64, 300)]"), {0}),
        ("the rows of a square product", model("a, b): return a @ b", "[torch.rand(192, 192), torch.rand(192, 192)]"), {0}),
        ("both operands of a batched product", model("a, b): return a @ b", "[torch.rand(64, 32, 32), torch.rand(64, 32, 32)]"), {0, 1}),
        ("a linear layer over three dimensions", model("x): return self.f(x)", "[torch.rand(64, 16, 64)]", "self.f = nn.Linear(64, 64)"), {0}),
        ("a pool", model("x): return self.f(x)", IMAGES, "self.f = nn.MaxPool2d(2)"), {0}),
        ("a convolution", model("x): return self.f(x)", IMAGES, "self.f = nn.Conv2d(8, 8, 3)"), {0}),
        ("group norm", model("x): return self.f(x)", IMAGES, "self.f = nn.GroupNorm(2, 8)"), {0}),
        ("batch norm that does not train", model("x): return self.f(x)", IMAGES, "self.f = nn.BatchNorm2d(8).eval()"), {0}),
        ("layer norm", model("x): return self.f(x)", ROWS, "self.f = nn.LayerNorm(300)"), {0}),
        ("several results", model("x): return x * 2, x.sum(1), x > 0.5", ROWS), {0}),
    ]
    WHOLE = [
        ("a sum along the batch", model("x): return x - x.mean(0, keepdim=True)", ROWS)),
        ("batch norm that trains", model("x): return self.f(x)", IMAGES, "self.f = nn.BatchNorm2d(8)")),
        ("a number made of the batch's size", model("x): return x / x.shape[0]", ROWS)),
        ("a table as long as the batch", model("x): return x + torch.arange(256).reshape(256, 1)", ROWS)),
        ("what depends on the row's place", model("x): return torch.triu(x)", ROWS)),
        ("rows that change places", model("x): return x.flip(0)", ROWS)),
        ("a result without rows", model("x): return x.sum()", ROWS)),
        ("a transposed result", model("x): return x.t() * 2", "[torch.rand(256, 256)]")),
        ("an operator nobody has looked at", model("x): return torch.roll(x, 1, 1)", ROWS)),
    ]

    def test_rows_that_do_not_know_of_each_other_are_cut_and_a_right_answer_passes(self) -> None:
        for name, text, cut in self.CUT:
            with self.subTest(name):
                one = self.session(text)
                self.assertIsNotNone(one.plan)
                self.assertEqual(one.plan.cut, cut)
                for distribution in ("task", "wide", "mixed"):
                    answer = self.judged(one, distribution)
                    self.assertRegex(answer["way"], r"in \d+ parts of \d+ rows")
                    self.assertEqual(answer["truth"], "float64")
                    self.assertTrue(answer["canary"]["wrong"] or answer["canary"]["imprecise"], answer["canary"])
                    self.assertEqual((answer["inputs_modified"], answer["guards_hit"]), ([], []))
                    self.assertEqual([(o["wrong"], o["imprecise"]) for o in answer["outputs"]], [(0, False)] * len(answer["outputs"]))

    def test_what_rows_share_is_judged_whole(self) -> None:
        for name, text in self.WHOLE:
            with self.subTest(name):
                one = self.session(text)
                self.assertIsNone(one.plan)
                self.assertEqual(self.judged(one)["way"], "whole")

    def test_a_small_task_is_judged_whole(self) -> None:
        self.assertIsNone(self.session(model("x): return F.gelu(x)", ROWS), room=0).plan)

    def test_parts_say_what_the_whole_says(self) -> None:
        def spoil(one: Session) -> None:
            one.out_buffers[0].tensor()[200, 7:9] += 1.0

        text = model("x): return F.gelu(x)", ROWS)
        whole = self.judged(self.session(text, room=0), "task", spoil)["outputs"][0]
        for small in (0, compare_parts.SMALL):  # added up, or put together
            before, compare_parts.SMALL = compare_parts.SMALL, small
            try:
                found = self.judged(self.session(text), "task", spoil)["outputs"][0]
            finally:
                compare_parts.SMALL = before
            self.assertEqual(found["wrong"], whole["wrong"])
            for element in ([200, 7], [200, 8]):
                self.assertIn(element, [w["index"] for w in found["worst"]])
            for key in ("rms_rel", "reference_rms_rel", "max_abs"):
                self.assertAlmostEqual(found[key], whole[key], delta=1e-6 * max(whole[key], 1e-12))

    def test_a_changed_input_and_a_changed_row_are_seen(self) -> None:
        one = self.session(model("x): return F.gelu(x)", ROWS))
        answer = self.judged(one, "normal", lambda s: s.in_buffers[0].tensor()[255].add_(1.0))
        self.assertEqual(answer["inputs_modified"], ["in0"])
        answer = self.judged(one, "normal", lambda s: s.out_buffers[0].tensor()[0, 0].add_(1.0))
        self.assertEqual(answer["outputs"][0]["wrong"], 1)

    def test_rows_written_while_they_are_compared_are_wrong(self) -> None:
        one = self.session(model("x): return F.gelu(x)", ROWS))
        one.draw({"seed": "1", "distribution": "normal"})
        one.write_reference()
        inner, calls = one.answers, []

        def late(drawn: Any) -> Any:
            calls.append(1)
            if len(calls) == 2:
                one.out_buffers[0].tensor()[200] *= 2
            return inner(drawn)

        one.answers = late  # type: ignore[method-assign]
        found = one.compare()["outputs"][0]
        self.assertGreater(found["wrong"], 0)
        self.assertIn("still being written", found["pattern"])

    def test_imprecise_answers_are_imprecise_in_parts_too(self) -> None:
        one = self.session(model("a, b): return a @ b", "[torch.rand(256, 512), torch.rand(512, 300)]"))

        def blur(s: Session) -> None:
            out = s.out_buffers[0].tensor()
            out.copy_(out.bfloat16().float())

        before, compare_parts.SMALL = compare_parts.SMALL, 0
        try:
            self.assertTrue(self.judged(one, "normal", blur)["outputs"][0]["imprecise"])
        finally:
            compare_parts.SMALL = before

    def test_tf32_factors_behind_a_clamp_pass_where_they_are_allowed(self) -> None:
        # Sums of wide inputs are large; the few that a clamp leaves are small, and their errors are those of the large terms.
        text = model("x): return torch.clamp(self.f(x), -2, 2)", "[torch.randn(8, 16, 15, 19)]", "self.f = nn.Conv2d(16, 40, 4, bias=False)")

        def rounded(bits: int) -> Any:
            def short(x: torch.Tensor) -> torch.Tensor:
                fraction, exponent = torch.frexp(x.double())
                return torch.ldexp(torch.round(torch.ldexp(fraction, torch.tensor(bits))), exponent - bits)

            def spoil(s: Session) -> None:
                x, w = (b.tensor() for b in s.in_buffers)
                s.out_buffers[0].tensor().copy_(torch.clamp(torch.conv2d(short(x), short(w)), -2, 2))

            return spoil

        for room in (0, ROOM):
            for baseline, bits, right, found in (
                ("defaults", 11, True, "TF32-class"),  # TF32
                ("defaults", 23, True, "fp32"),
                ("defaults", 8, False, "TF32-class"),  # bf16
                ("strict", 11, False, "fp32"),
            ):
                with self.subTest((room, baseline, bits)):
                    one = self.session(text, room, baseline)
                    self.assertEqual(one.plan is None, room == 0)
                    out = self.judged(one, "wide", rounded(bits))["outputs"][0]
                    self.assertEqual((passes(out), out["class"]), (right, found), out)

    def test_nearly_the_same_inputs_are_drawn_in_place(self) -> None:
        one = self.session(model("x): return F.gelu(x)", ROWS))
        self.judged(one, "mixed")
        before = one.in_buffers[0].tensor().clone()
        one.draw({"seed": "2", "distribution": "mixed", "near": True})
        rows = (one.in_buffers[0].tensor() != before).any(1).sum()
        self.assertTrue(0 < int(rows) < 32)
        found = one.compare()["outputs"][0]
        self.assertGreater(found["wrong"], 0)  # the answer to the draw before
        one.write_reference()
        self.assertEqual(one.compare()["outputs"][0]["wrong"], 0)

    # ---- memory --------------------------------------------------------------------------------

    def with_little(self) -> None:
        """Nothing is put together, and fingerprints are taken in small pieces."""
        for module, name, value in ((compare_parts, "SMALL", 0), (fingerprint, "AT_ONCE", 1 << 16)):
            self.addCleanup(setattr, module, name, getattr(module, name))
            setattr(module, name, value)

    LARGE = model("x): return F.gelu(x) * 2 + torch.sigmoid(x)", "[torch.rand(2048, 1024)]")

    def test_a_judgement_takes_a_part_beyond_its_buffers(self) -> None:
        tensor = 4 * 2048 * 1024
        one = self.session(self.LARGE, room=8 << 20)
        one.plan.rows = 32
        self.with_little()
        one.draw({"seed": "1", "distribution": "wide"})
        one.write_reference()
        with Meter() as meter:
            self.assertEqual(one.compare()["outputs"][0]["wrong"], 0)
        self.assertLess(meter.peak, tensor)
        whole = self.session(self.LARGE, room=0)
        whole.draw({"seed": "1", "distribution": "wide"})
        whole.write_reference()
        with Meter() as other:
            whole.compare()
        self.assertGreater(other.peak, 6 * tensor)

    def test_out_of_memory_halves_the_parts_and_the_verdict_stands(self) -> None:
        one = self.session(self.LARGE)
        rows = one.plan.rows
        self.with_little()
        one.draw({"seed": "1", "distribution": "normal"})
        one.write_reference()
        with Meter(limit=30 << 20) as meter:
            answer = one.compare()
        self.assertGreater(meter.refused, 0)
        self.assertLess(int(answer["way"].split()[-2]), rows)
        self.assertEqual(answer["outputs"][0]["wrong"], 0)

    def test_out_of_memory_is_an_answer_of_its_own_and_never_a_truth(self) -> None:
        one = self.session(self.LARGE, room=0)
        one.draw({"seed": "1", "distribution": "normal"})
        one.write_reference()
        with Meter(limit=40 << 20), self.assertRaisesRegex(Fault, "more memory than there is"):
            one.compare()
        one.draw({"seed": "1", "distribution": "normal"})  # and the session goes on
        one.write_reference()
        self.assertEqual(one.compare()["outputs"][0]["wrong"], 0)

    def test_what_others_hold_is_worth_waiting_for_and_what_is_not_there_is_not(self) -> None:
        self.assertEqual(no_memory("it needs 10 GB", 10 << 30, 5 << 30, 80 << 30).kind, "busy")
        refused = no_memory("it needs 100 GB", 100 << 30, 79 << 30, 80 << 30)
        self.assertEqual(refused.kind, "memory")
        self.assertIn("84.8 of 85.9 GB are free", refused.text)

    def test_a_reference_in_tf32_makes_no_other_result_fp32(self) -> None:
        """On a GPU the reference itself has such factors: its errors do not excuse those of a kernel."""
        torch.manual_seed(5)
        a, b = torch.randn(48, 256), torch.randn(256, 40)
        truth = a.double() @ b.double()
        short = (to_tf32(a).double() @ to_tf32(b).double()).float()
        rules = Rules(256, 1, torch.float32, tf32=True, short=True)
        for got, wanted in ((short, "TF32-class"), (a @ b, "fp32")):
            self.assertEqual(compare_output("y", got, short, truth, rules)["class"], wanted)
            tally = compare_parts.Tally("y", torch.float32, got.numel(), rules)
            tally._add_floating(0, got, short, truth, None)
            self.assertEqual(tally.comparison()["class"], wanted)

    def test_a_session_that_rests_holds_no_buffer_and_draws_again(self) -> None:
        one = self.session(self.LARGE, room=8 << 20)
        self.judged(one)
        one.rest()
        self.assertEqual(list(pathlib.Path(one.pool.work).glob("in*")) + list(pathlib.Path(one.pool.work).glob("out*")), [])
        self.assertEqual(self.judged(one)["outputs"][0]["wrong"], 0)


class Draws(unittest.TestCase):
    def test_extremes_at_ends_take_little_memory_beside_the_draw(self) -> None:
        for shape in ((8, 1 << 21), (1 << 24,), (64, 512, 512)):
            for distribution in ("normal", "wide", "zeros"):
                generator = torch.Generator().manual_seed(1)
                values = torch.randn(shape, generator=generator)
                with Meter() as meter:
                    ends.reach_ends(values, distribution, generator)
                    ends.round_some(values, generator)
                    ends.clear_some(values, generator)
                self.assertLess(meter.peak, 12 * ends.PIECE, (shape, distribution))

    def test_many_zeros_are_drawn_and_none_has_a_sign(self) -> None:
        for known in (Known(), Known(domain="range", low=-2.0, high=1.0), Known(upper=True)):
            values = redraw(torch.ones(64, 64), known, "zeros", torch.Generator().manual_seed(1))
            zeros = values[values == 0]
            self.assertGreater(len(zeros), 999)
            self.assertFalse(zeros.signbit().any(), known)

    def test_nothing_has_no_ends(self) -> None:
        for shape in ((3, 0), (0,), (0, 4), ()):
            values, generator = torch.zeros(shape), torch.Generator()
            for distribution in ("normal", "wide", "zeros"):
                ends.reach_ends(values, distribution, generator)
            ends.round_some(values, generator)
            ends.clear_some(values, generator)
            self.assertEqual(list(values.shape), list(shape))


if __name__ == "__main__":
    unittest.main()
