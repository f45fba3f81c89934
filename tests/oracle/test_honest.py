"""Honest fp32 sums, whatever their order, are let pass; narrower ones are not. Statistics of the comparison alone.

Fixed seeds: thousands of products with a function behind them, of several sizes and distributions, added up in several orders.
"""

from __future__ import annotations

import os
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Callable

sys.path.insert(0, os.environ.get("CUTEGEN_ROOT") or str(Path(__file__).resolve().parents[2]))

import torch

from oracle import formulas_images, formulas_more
from oracle.compare import Rules, compare_output, passes
from oracle.draw import lean
from oracle.facts import Known
from oracle.noise import Disturb, runs_for
from oracle.session import Session
from oracle.task import DTYPES

CASES = 1600
functional = torch.nn.functional


class Source:
    """Numbers from one seed."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)

    def one_of(self, items: Any) -> Any:
        return items[int(torch.randint(len(items), (1,), generator=self.generator))]

    def normal(self, *shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=self.generator)

    def uniform(self, *shape: int) -> torch.Tensor:
        return torch.rand(*shape, generator=self.generator)

    def draw(self, kind: str, *shape: int) -> torch.Tensor:
        x = self.normal(*shape)
        if kind == "positive":
            return self.uniform(*shape)
        if kind == "wide":
            return (x * torch.exp(2.5 * self.normal(*shape))).clamp(-(2.0**15), 2.0**15)
        if kind == "small":
            return x / 1024
        if kind == "zeros":
            return x * (self.uniform(*shape) < 0.5)
        if kind == "cancelling":
            half = x[..., : shape[-1] // 2]
            return torch.cat([half, -half * (1 + 1e-4 * self.normal(*half.shape)), x[..., 2 * half.shape[-1] :]], -1)
        return x


def in_order(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(a.shape[0], b.shape[1])
    for k in range(a.shape[1]):
        total = total + a[:, k : k + 1] * b[k]
    return total


def in_halves(parts: list[torch.Tensor]) -> torch.Tensor:
    while len(parts) > 1:
        parts = [x + y for x, y in zip(parts[::2], parts[1::2])] + parts[len(parts) // 2 * 2 :]
    return parts[0]


ORDERS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "in order": in_order,
    "in halves": lambda a, b: in_halves([a[:, k : k + 1] * b[k] for k in range(a.shape[1])]),
    "split eight ways": lambda a, b: in_halves([in_order(a[:, k::8], b[k::8]) for k in range(8)]),
    "in tiles": lambda a, b: torch.stack(
        [in_order(a[:, k : k + 32], b[k : k + 32]) for k in range(0, a.shape[1], 32)]
    ).sum(0),
}

# behind the product: (function, terms it adds up itself as a function of rows and columns)
FUNCTIONS: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], Callable[[int, int], int]]] = {
    "nothing": (lambda x: x, lambda m, n: 0),
    "tanh": (torch.tanh, lambda m, n: 0),
    "relu": (torch.relu, lambda m, n: 0),
    # As a kernel computes it: torch's own on a CPU may be an approximation of erf that is several roundoffs off.
    "gelu": (lambda x: functional.gelu(x.double()).to(x.dtype), lambda m, n: 0),
    "exp": (lambda x: torch.exp(x / x.abs().max().clamp_min(1e-30) * 60), lambda m, n: 0),
    "softmax": (lambda x: torch.softmax(x, -1), lambda m, n: n),
    "log_softmax": (lambda x: torch.log_softmax(x, -1), lambda m, n: n),
    "layer_norm": (lambda x: functional.layer_norm(x, x.shape[-1:]), lambda m, n: n),
    "norm": (lambda x: x / x.norm(dim=-1, keepdim=True).clamp_min(1e-6), lambda m, n: n),
    "cumsum": (lambda x: torch.cumsum(x, -1), lambda m, n: n),
    "cumprod": (lambda x: torch.cumprod(x, -1), lambda m, n: n),
    "row sum": (lambda x: x.sum(-1), lambda m, n: n),
    "loss": (lambda x: ((x - x.roll(1, 0)) ** 2).mean(), lambda m, n: m * n),
}
SUMMED = "_softmax _log_softmax native_layer_norm linalg_vector_norm norm cumsum cumprod sum mean".split()


def tf32(x: torch.Tensor) -> torch.Tensor:
    return ((x.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


class Case:
    """A product of a and b, a function behind it, and how far an answer may be off."""

    def __init__(self, a: torch.Tensor, b: torch.Tensor, function: str, source: Source) -> None:
        self.a, self.b, self.source = a, b, source
        self.function, terms = FUNCTIONS[function]
        more = terms(a.shape[0], b.shape[1])
        self.truth = self.double()
        self.reference = self.function(a @ b)
        self.terms = {"mm": a.shape[1], **{name: max(more, 1) for name in SUMMED}}
        self.rules = Rules(a.shape[1] + more, 2, torch.float32)

    def double(self) -> torch.Tensor:
        return self.function(self.a.double() @ self.b.double())

    def noise(self) -> torch.Tensor:
        runs = runs_for(self.truth.numel())
        square = torch.zeros(self.truth.numel(), dtype=torch.float64)
        for _ in range(runs):
            with Disturb(self.terms, 2.0**-24, 2.0**-24, self.source.generator):
                square += (self.double() - self.truth).reshape(-1) ** 2
        return torch.nan_to_num((square / runs).sqrt(), nan=0.0, posinf=0.0)

    def judged(self, product: torch.Tensor) -> dict[str, Any]:
        got = self.function(product).contiguous()
        return compare_output("", got, self.reference, self.truth, self.rules, explain=False, noise=self.noise)


class Honest(unittest.TestCase):
    def setUp(self) -> None:
        torch.set_num_threads(1)

    def test_sums_in_any_order_pass_whatever_comes_behind_them(self) -> None:
        source, refused = Source(20), []
        kinds = ["positive", "normal", "wide", "small", "zeros", "cancelling"]
        for number in range(CASES):
            m, n = source.one_of([1, 4, 16, 33, 64]), source.one_of([2, 7, 16, 32, 100, 257, 300])
            k, order = source.one_of([8, 16, 48, 100, 256]), list(ORDERS)[number % len(ORDERS)]
            function, kind = list(FUNCTIONS)[number // len(ORDERS) % len(FUNCTIONS)], source.one_of(kinds)
            case = Case(source.draw(kind, m, k), source.draw(source.one_of([kind, "normal"]), k, n), function, source)
            one = case.judged(ORDERS[order](case.a, case.b))
            if not passes(one):
                refused.append((function, kind, order, (m, n, k), one))
        self.assertEqual([one[:4] for one in refused], [], refused)

    def test_tf32_factors_do_not_pass(self) -> None:
        source = Source(21)
        for number in range(120):
            kind = ["normal", "wide", "small"][number % 3]
            k = source.one_of([48, 100, 256, 1000])
            case = Case(source.draw(kind, 33, k), source.draw(kind, k, 100), "nothing", source)
            self.assertFalse(passes(case.judged(tf32(case.a) @ tf32(case.b))), (kind, k))

    def test_tf32_factors_that_positive_inputs_would_hide_do_not_pass_either(self) -> None:
        """As draws other than the task's own are: a sum of any length does not average the error out."""
        source, hidden = Source(22), 0
        for number in range(6):
            a, b = source.uniform(32, 16384), source.uniform(16384, 32)
            plain = Case(a, b, "nothing", source)
            hidden += passes(plain.judged(tf32(a) @ tf32(b)))
            leaning = [lean(x, Known(), up=bool(number % 2)) for x in (a, b)]
            case = Case(*leaning, "nothing", source)
            self.assertFalse(passes(case.judged(tf32(case.a) @ tf32(case.b))))
            self.assertFalse(passes(case.judged(case.a.bfloat16().float() @ case.b.bfloat16().float())))
            self.assertTrue(passes(case.judged(ORDERS["split eight ways"](case.a, case.b))))
        self.assertGreater(hidden, 0)  # else this test proves nothing

    def test_a_part_of_an_output_does_not_hide_behind_the_rest(self) -> None:
        source = Source(23)
        for small in (1e-3, 1e-6, 1e-12, 1e-25):
            truth = source.normal(64, 300).double() * 1e6
            truth[17] *= small / 1e6
            reference = truth.float()
            for spoilt in (torch.zeros(300), reference[17] * 1.01):
                got = reference.clone()
                got[17] = spoilt
                one = compare_output("", got, reference, truth, Rules(1024, 4, torch.float32))
                self.assertGreater(one["wrong"], 250, small)
                self.assertIn("row 17 of 64 only", one["pattern"])

    def test_a_few_large_elements_do_not_set_the_scale_of_their_neighbours(self) -> None:
        truth = Source(24).normal(8, 256).double()
        truth[:, ::5] *= 1e12
        reference = truth.float()
        got = reference.clone()
        got[3, 1] = 0
        self.assertEqual(compare_output("", got, reference, truth, Rules(1024, 4, torch.float32))["wrong"], 1)


class Tails(unittest.TestCase):
    def test_fast_exponentials_of_large_arguments_pass(self) -> None:
        """exp(x) as 2^(x log2 e), in fp32: off by |x| roundoffs where the result is nearly nothing."""
        source = Source(27)
        for _ in range(40):
            case = Case(source.normal(33, 16) - 60 * source.uniform(33, 1), torch.eye(16), "nothing", source)
            case.function = torch.exp
            case.truth, case.reference = torch.exp(case.a.double()), torch.exp(case.a)
            case.double = lambda: torch.exp(case.a.double())  # type: ignore[method-assign]
            fast = torch.exp2((case.a * 1.4426950408889634).double()).float()
            one = compare_output("", fast, case.reference, case.truth, Rules(1, 1, torch.float32), noise=case.noise)
            self.assertTrue(passes(one), one)
            one = compare_output(
                "", torch.exp2(tf32(case.a * 1.4426950408889634)), case.reference, case.truth, case.rules, noise=case.noise
            )
            self.assertFalse(passes(one))


class Normalized(unittest.TestCase):
    def test_a_norm_may_have_the_roundoff_of_the_mean_it_subtracts(self) -> None:
        """x/sigma - mean/sigma, rounded in this order, of rows that lie far from zero."""
        for seed in range(8):
            source = Source(30 + seed)
            case = Case(5 + source.normal(33, 16) / 100, torch.eye(16), "layer_norm", source)
            case.reference = case.truth.float()  # it may be as lucky as can be
            wide = case.a.double()
            scale = (1 / torch.sqrt(wide.var(-1, unbiased=False, keepdim=True) + 1e-5)).float()
            shift = wide.mean(-1, keepdim=True).float() * scale
            got = case.a * scale - shift
            self.assertFalse(passes(compare_output("", got, case.reference, case.truth, case.rules, explain=False)))
            one = compare_output("", got, case.reference, case.truth, case.rules, explain=False, noise=case.noise)
            self.assertTrue(passes(one), one)
            self.assertFalse(passes(case.judged(tf32(case.a))))


class Few(unittest.TestCase):
    """Four runs, of which none moves the element that the candidate is off by."""

    def judged(self, off: list[int]) -> tuple[bool, int]:
        """Does a candidate pass whose elements `off` differ by 64 roundoffs? How often were more runs asked for?"""
        truth = torch.full((8192,), 1.0, dtype=torch.float64)
        got, reference, asked = truth.float(), truth.float(), []
        got[off] += 64 * 2.0**-23
        some = torch.full((8192,), 2.0**-26, dtype=torch.float64)

        def more() -> torch.Tensor:
            asked.append(1)
            return some * 1024

        one = compare_output("", got, reference, truth, Rules(1, 1, torch.float32), explain=False, noise=lambda strict=False: some, more_noise=more)
        return passes(one), len(asked)

    def test_more_runs_decide_where_few_elements_are_beyond(self) -> None:
        self.assertEqual(self.judged([17]), (True, 1))

    def test_many_are_not_worth_it(self) -> None:
        self.assertEqual(self.judged(list(range(0, 8192, 64))), (False, 0))


class Cancelling(unittest.TestCase):
    def test_no_element_of_gelu_is_without_noise_where_its_sum_cancels(self) -> None:
        source = Source(3)
        x = source.normal(1 << 18).double() * 0.25 - 4.0
        truth, square = torch.nn.functional.gelu(x), torch.zeros_like(x)
        for _ in range(runs_for(x.numel())):
            with Disturb({}, 2.0**-24, 2.0**-24, source.generator):
                square += (torch.nn.functional.gelu(x) - truth).square()
        noise = (square / runs_for(x.numel())).sqrt()
        self.assertGreater(float(noise.min()), float(noise.median()) / 4)


    def test_gradient_of_a_loss_where_one_class_is_almost_certain(self) -> None:
        """(p - 1) / N in fp32 is a multiple of a roundoff of the 1, however small it is."""
        source = Source(4)
        x = (source.normal(256, 10) * torch.exp(source.normal(256, 10) * 2.5)).double()
        target, grad = torch.arange(256) % 10, torch.zeros(256, 10, dtype=torch.float64)
        grad[torch.arange(256), target] = -1 / 256

        def gradient(y: torch.Tensor) -> torch.Tensor:
            return torch.ops.aten._log_softmax_backward_data(grad, y, 1, torch.float64)

        y = torch.log_softmax(x, 1)
        truth, square = gradient(y), torch.zeros_like(x)
        for _ in range(runs_for(x.numel())):
            with Disturb({}, 2.0**-24, 2.0**-24, source.generator):
                square += (gradient(y) - truth).square()
        noise = (square / runs_for(x.numel())).sqrt()
        certain = (y > -1e-3) & (grad != 0)
        self.assertGreater(int(certain.sum()), 4)
        self.assertGreater(float(noise[certain].min()), 2.0**-26 / 256)
        self.assertLess(float(noise.max()), 2.0**-20 / 256)  # and no more than a few roundoffs


class Deep(unittest.TestCase):
    """Many operators behind a product: some ways grow what is rounded at their beginning, others damp it."""

    LAYERS = 12

    def chain(self, layer: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
        def function(x: torch.Tensor) -> torch.Tensor:
            for _ in range(self.LAYERS):
                x = layer(x)
            return x

        return function

    def case(self, layer: Callable[[torch.Tensor], torch.Tensor], seed: int) -> Case:
        source = Source(seed)
        FUNCTIONS["chain"] = (self.chain(layer), lambda m, n: 0)
        case = Case(source.normal(32, 256), source.normal(256, 100) / 16, "chain", source)
        del FUNCTIONS["chain"]  # not one of those that other tests draw from
        return case

    def test_rounding_that_the_network_grows_is_allowed_for(self) -> None:
        needed = 0
        for seed in range(8):
            case = self.case(lambda x: 3 * torch.sin(x), seed)
            case.reference = case.truth.float()  # it may be as lucky as can be
            product = in_order(case.a, case.b)
            needed += not passes(
                compare_output("", case.function(product), case.reference, case.truth, case.rules, explain=False)
            )
            self.assertTrue(passes(case.judged(product)))
            self.assertFalse(passes(case.judged(tf32(case.a) @ tf32(case.b))))
            self.assertFalse(passes(case.judged(product * (1 + 2.0**-12))))
        self.assertGreater(needed, 0)  # else no noise had to be measured, and this test proves nothing

    def test_rounding_that_the_network_damps_is_not(self) -> None:
        for seed in range(8):
            case = self.case(lambda x: x + 0.1 * torch.tanh(x), seed)
            product = in_order(case.a, case.b)
            self.assertTrue(passes(case.judged(product)))
            self.assertFalse(passes(case.judged(tf32(case.a) @ tf32(case.b))))


class Grids(unittest.TestCase):
    """A place between two pixels that differ much: its rounding is small beside the places, not beside the result."""

    def sampled(self, x: torch.Tensor, grid: torch.Tensor, padding: int, own: bool = False) -> torch.Tensor:
        place = torch.tanh(grid) * 1.3
        sampler = formulas_more.grid_sampler_2d if own else torch.ops.aten.grid_sampler_2d
        return sampler(x, place, 0, padding, False)

    def noise(self, x: torch.Tensor, grid: torch.Tensor, padding: int, truth: torch.Tensor, seed: int) -> torch.Tensor:
        square, runs = torch.zeros_like(truth), runs_for(truth.numel())
        for run in range(runs):
            with Disturb({}, 2.0**-24, 2.0**-24, torch.Generator().manual_seed(1000 * seed + run)):
                square += (self.sampled(x.double(), grid.double(), padding) - truth) ** 2
        return (square / runs).sqrt().reshape(-1)

    def test_honest_places_pass_and_narrow_ones_do_not(self) -> None:
        rules, needed = Rules(terms=1, operators=2, compute=torch.float32), 0
        for seed in range(60):
            source, padding = Source(seed), seed % 2
            x, grid = source.draw("wide", 2, 3, 9, 7), source.normal(2, 5, 6, 2)
            reference, truth = self.sampled(x, grid, padding), self.sampled(x.double(), grid.double(), padding)

            def judged(got: torch.Tensor, allow: bool = True) -> bool:
                def noise(strict: bool = False) -> torch.Tensor | None:
                    return self.noise(x, grid, padding, truth, seed) if allow else None

                return passes(compare_output("", got, reference, truth, rules, explain=False, noise=noise))

            honest = self.sampled(x, grid, padding, own=True)
            needed += not judged(honest, allow=False)
            self.assertTrue(judged(honest), f"seed {seed}")
            if seed < 6:
                self.assertFalse(judged(self.sampled(x, (grid * 2.0**14).round() / 2.0**14, padding)))
                self.assertFalse(judged(self.sampled(x.half().float(), grid, padding)))
        self.assertGreater(needed, 0)  # else no noise had to be measured, and this test proves nothing

    def test_the_nearest_pixel_is_no_other_one_where_places_lie_between_two(self) -> None:
        source = Source(3)
        x, grid = source.normal(1, 4, 8, 8).double(), (source.uniform(1, 16, 16, 2) * 9).floor().double() * 0.25 - 1
        truth = torch.ops.aten.grid_sampler_2d(x, grid, 1, 0, False)
        with Disturb({}, 2.0**-24, 2.0**-24, torch.Generator().manual_seed(1)):
            again = torch.ops.aten.grid_sampler_2d(x, grid, 1, 0, False)
        self.assertLess(float((again - truth).abs().max()), 1e-6)


class Resampled(unittest.TestCase):
    """A place of an interpolation and the weights of a cubic one are rounded: beside large pixels that shows."""

    def judged(self, run: Any, seed: int, x: torch.Tensor, got: torch.Tensor, allow: bool = True) -> bool:
        reference, truth = run(x), run(x.double())

        def noise(strict: bool = False) -> torch.Tensor | None:
            if not allow:
                return None
            square, runs = torch.zeros_like(truth), runs_for(truth.numel())
            for number in range(runs):
                with Disturb({}, 2.0**-24, 2.0**-24, torch.Generator().manual_seed(1000 * seed + number)):
                    square += (run(x.double()) - truth) ** 2
            return (square / runs).sqrt().reshape(-1)

        rules = Rules(terms=1, operators=2, compute=torch.float32)
        return passes(compare_output("", got, reference, truth, rules, explain=False, noise=noise))

    def test_honest_weights_pass_and_other_ones_do_not(self) -> None:
        aten, needed = torch.ops.aten, [0, 0]
        for seed in range(60):
            source = Source(seed)
            grid = torch.tanh(source.normal(2, 5, 8, 2))
            sizes = [9, 11]
            for k, (shape, run, own) in enumerate((
                ((2, 3, 6, 7), lambda x: aten.upsample_bicubic2d(x, sizes, False), lambda x, **how: formulas_images.bicubic(x, sizes, **how)),
                ((2, 3, 9, 7), lambda x: aten.grid_sampler_2d(x, grid.to(x.dtype), 2, 0, False),
                 lambda x, **how: formulas_more.grid_sampler_2d(x, grid, 2, 0, False, **how)),
            )):
                x = source.draw("wide", *shape)
                needed[k] += not self.judged(run, seed, x, own(x), allow=False)
                self.assertTrue(self.judged(run, seed, x, own(x)), f"seed {seed}, {k}")
                if seed < 6:
                    for a in (-0.5, -0.7499):
                        other = own(x, weigh=lambda part, a=a: formulas_images.cubic_weights(part, a))
                        self.assertFalse(self.judged(run, seed, x, other), f"seed {seed}, {k}, {a}")
                    self.assertFalse(self.judged(run, seed, x, own(x.half().float())))
        self.assertGreater(min(needed), 0)  # else no noise had to be measured, and this test proves nothing


class Jumping(unittest.TestCase):
    """What rounding decides on the way: another answer is as right at such an element, and at no other."""

    TASK = """
import torch, torch.nn as nn, torch.nn.functional as F
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(65, 65)
    def forward(self, x):
        x = F.gelu(self.l(x)) * 3 - 0.1
        x = (x * 4).round() / 4 + x * 0.01
        y = x.gather(1, (x.abs() * 7).long() % 65)
        return y, (y * 5).floor().long()
def get_inputs():
    return [torch.randn(40, 65)]
def get_init_inputs():
    return []
"""

    def test_both_sides_of_a_step_pass_and_others_do_not(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "jumps.py"
            path.write_text(self.TASK)
            session, needed = Session({"do": "load", "task": str(path), "device": "cpu"}), 0
            for seed in range(30):
                drawn = session.make(f"{seed * 7919 + 13:08x}", "task")
                x, model = drawn.tensors[0], drawn.model
                order = torch.randperm(65, generator=torch.Generator().manual_seed(seed))
                reference, truth, _ = session.answers(drawn)
                with torch.no_grad():
                    model.l.weight.copy_(model.l.weight[:, order])
                    honest = list(model(x[:, order]))
                    model.l.weight.copy_(model.l.weight[:, torch.argsort(order)])
                found = session.rounding(drawn, truth)
                assert found

                def judged(got: list[torch.Tensor], allow: bool = True) -> bool:
                    return all(
                        passes(compare_output(
                            "", g, r, t, session.rules, explain=False,
                            noise=lambda strict=False, k=k: found.off.get(k) if allow else None,
                            others=lambda k=k: found.others.get(k, []) if allow else []))
                        for k, (g, r, t) in enumerate(zip(got, reference, truth))
                    )

                needed += not judged(honest, allow=False)
                self.assertTrue(judged(honest), f"seed {seed}")
                steady = torch.stack([o == truth[1] for o in found.others[1]]).all(0).view(-1)
                self.assertGreater(float(steady.double().mean()), 0.99)
                place = int(steady.nonzero()[seed])
                for k in range(2):
                    wrong = [h.clone() for h in honest]
                    wrong[k].view(-1)[place] += 1
                    self.assertFalse(judged(wrong), f"seed {seed}, output {k}")
            session.release()
            self.assertGreater(needed, 0)


class Doubles(unittest.TestCase):
    """What is computed in f64 is judged as f64, whatever type it ends in; what has f32 before it, as f32."""

    TASK = """
import torch, torch.nn as nn
class Model(nn.Module):
    def forward(self, x):
        y = x.double()
        y = y - y.mean(1, keepdim=True)
        z = torch.tanh(x @ x.t()).double()
        return y.pow(2).mean(1), y.pow(3).sum(1).float(), z.mean(1), (z * y.mean()).sum(1)
def get_inputs():
    return [torch.rand(40, 65) + 3]
def get_init_inputs():
    return []
"""

    @staticmethod
    def forward(x: torch.Tensor, kind: torch.dtype) -> list[torch.Tensor]:
        """The same, with sums in another order, and computed in `kind`."""
        order = torch.arange(64, -1, -1)
        y = x.to(kind)
        y = y - y[:, order].sum(1, keepdim=True) / 65
        z = torch.tanh(x[:, order] @ x[:, order].t()).to(kind)
        made = [(y * y)[:, order].sum(1) / 65, (y * y * y)[:, order].sum(1), z.sum(1) / 40, (z * y.mean()).sum(1)]
        return [m.float() if k == 1 else m.double() for k, m in enumerate(made)]

    def test_f32_passes_only_where_the_task_computes_in_it(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "doubles.py"
            path.write_text(self.TASK)
            session = Session({"do": "load", "task": str(path), "device": "cpu"})
            for seed in range(12):
                drawn = session.make(f"{seed * 7919 + 13:08x}", "task")
                reference, truth, _ = session.answers(drawn)
                found = session.noise(drawn, truth)
                assert found

                def judged(got: list[torch.Tensor]) -> list[bool]:
                    return [
                        passes(compare_output(
                            "", g, r, t, session.rules.of(k), explain=False, noise=lambda strict=False, k=k: found.get(k)))
                        for k, (g, r, t) in enumerate(zip(got, reference, truth))
                    ]

                self.assertEqual(judged(self.forward(drawn.tensors[0], torch.float64)), [True] * 4, f"seed {seed}")
                self.assertEqual(judged(self.forward(drawn.tensors[0], torch.float32))[:3], [False, False, True], f"seed {seed}")
            session.release()


class Ties(unittest.TestCase):
    """Where the forward reads places that PyTorch does not promise, and they tell in the results, no ties are drawn."""

    TASK = """
import torch, torch.nn as nn
class Model(nn.Module):
    def forward(self, x, y):
        return RESULT
def get_inputs():
    return [torch.randn(20, 6), torch.randint(0, 6, (20,))]
def get_init_inputs():
    return []
"""

    def test_equal_elements_are_drawn_only_where_their_order_does_not_tell(self) -> None:
        for result, told in (
            ("(x.topk(3).indices == y[:, None]).float().mean()", True),
            ("torch.where(y[:, None] == x.kthvalue(2, 1, keepdim=True)[1], x, 0)", True),
            ("(torch.sort(x, dim=1, stable=True)[1] == y[:, None]).float().sum(1)", False),
            ("x.topk(3)", False),
        ):
            with self.subTest(result), tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "ties.py"
                path.write_text(self.TASK.replace("RESULT", result))
                session = Session({"do": "load", "task": str(path), "device": "cpu"})
                drawn = [session.make(f"{n:08x}", kind).tensors[0] for n in range(4) for kind in ("zeros", "wide")]
                self.assertEqual([len(x.unique()) == x.numel() for x in drawn], [told] * 8)
                session.release()


class Mixed(unittest.TestCase):
    TASK = """
import torch, torch.nn as nn, torch.nn.functional as F
class Model(nn.Module):
    def forward(self, a, b, c):
        y = F.gelu(a @ b)
        return y + c, torch.softmax(y, 1), y.float().sum(1), y.mean(0), a * b + c
def get_inputs():
    return [torch.randn(9, 9).half(), torch.randn(9, 9).half(), torch.randn(9, 9)]
def get_init_inputs():
    return []
"""

    def test_types_are_those_of_a_gpu_where_the_cpu_has_no_arithmetic_in_halves(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "mixed.py"
            path.write_text(self.TASK)
            session = Session({"do": "load", "task": str(path), "device": "cpu"})
            kinds = ["f32", "f16", "f32", "f16", "f32"]
            self.assertEqual([o["dtype"] for o in session.outputs], kinds)
            drawn = session.make("00c0ffee", "task")
            reference, truth, exact = session.answers(drawn)
            self.assertTrue(exact)
            self.assertEqual([DTYPES[r.dtype] for r in reference], kinds)
            self.assertLess(max(float((r - t).abs().max()) for r, t in zip(reference, truth)), 0.02)
            session.release()


class Leaning(unittest.TestCase):
    def test_order_signs_zeros_and_whole_numbers_stay(self) -> None:
        x = torch.cat([Source(25).normal(4096), torch.tensor([0.0, -0.0, 1.0, -3.0, 0.5, float("inf"), 1e-41])])
        for up in (False, True):
            y = lean(x, Known(), up)
            self.assertTrue(torch.equal(torch.signbit(x), torch.signbit(y)))
            self.assertTrue(torch.equal(x[4096:-1], y[4096:-1]))
            self.assertLess(float(((x - y).abs() / x.abs())[:4096].max()), 2.0**-10)
            order = torch.argsort(x)
            self.assertTrue(bool((y[order].diff() >= 0).all()))
            self.assertGreater(torch.unique(y).numel(), 4000)

    def test_inputs_that_must_be_as_the_task_draws_them_stay(self) -> None:
        x = Source(26).normal(64)
        for known in (Known(domain="task"), Known(few_values=True), Known(unit_rows=True)):
            self.assertTrue(torch.equal(lean(x, known, True), x))


if __name__ == "__main__":
    unittest.main(verbosity=1)
