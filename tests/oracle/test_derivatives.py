# SPDX-License-Identifier: Apache-2.0
"""The formulas of oracle/derivatives.py give what PyTorch's own operators give, and autograd reaches each of them."""
import os
import pathlib
import sys
import unittest

import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

sys.path.insert(0, os.environ.get("CUTEGEN_ROOT", str(pathlib.Path(__file__).resolve().parents[2])))

from oracle.derivatives import FORMULAS  # noqa: E402

OF_GPUS = {"cudnn_batch_norm", "cudnn_batch_norm_backward", "_fused_rms_norm", "_fused_rms_norm_backward"}


class Replaced(TorchDispatchMode):
    """Inside `with`, operators that have a formula are that formula."""

    def __init__(self):
        super().__init__()
        self.used = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = str(func).split(".")[1]
        if name in FORMULAS:
            self.used.add(name)
            return FORMULAS[name](*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def drawn(*shape):
    return (3 * torch.randn(*shape, dtype=torch.float64)).requires_grad_()


def classes(*shape):
    return torch.randint(0, 5, shape)


def weighted(f, shape, *sizes, **more):
    """A function of x, weight and bias."""
    return f, [drawn(*shape), drawn(*sizes), drawn(*sizes)], more


def norms():
    yield weighted(lambda x, w, b: F.layer_norm(x, (6,), w, b), (4, 3, 6), 6)
    yield weighted(lambda x, w, b: F.layer_norm(x, (3, 6), w, b), (4, 3, 6), 3, 6)
    yield weighted(lambda x, w, b: F.group_norm(x, 2, w, b), (4, 6, 5), 6)
    yield weighted(lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), (4, 6, 5), 6)
    yield weighted(lambda x, w, b: F.batch_norm(x, torch.zeros(6).double(), torch.ones(6).double(), w, b), (4, 6), 6)


def losses():
    target = classes(8)
    target[3] = -100
    for reduction in ("none", "mean", "sum"):
        more = {"reduction": reduction}
        yield (lambda x, **m: F.cross_entropy(x, target, **m)), [drawn(8, 5)], more
        yield (lambda x, **m: F.cross_entropy(x, target, weight=torch.arange(1.0, 6).double(), **m)), [drawn(8, 5)], more
        yield (lambda x, **m: F.cross_entropy(x, target.clamp(min=1)[:6].reshape(2, 3, 1), ignore_index=1, **m)), [drawn(2, 5, 3, 1)], more
        yield (lambda x, y, **m: F.mse_loss(x, y, **m)), [drawn(8, 5), drawn(8, 5)], more
        yield (lambda x, y, **m: F.smooth_l1_loss(x, y, beta=0.5, **m)), [drawn(8, 5), drawn(8, 5)], more
        yield (lambda x, y, **m: F.huber_loss(x, y, delta=2.0, **m)), [drawn(8, 5), drawn(8, 5)], more
        yield (lambda x, **m: F.binary_cross_entropy(torch.sigmoid(x), torch.ones(8, 5).double() / 3, **m)), [drawn(8, 5)], more
    yield (lambda x: F.cross_entropy(x, classes(1)[0] * 0 + 2)), [drawn(5)], {}


def activations():
    for f in (F.relu, F.gelu, F.silu, F.leaky_relu, F.hardtanh, F.softplus, F.elu, F.selu, F.celu, F.hardsigmoid,
              F.hardswish, F.mish, F.logsigmoid, torch.sigmoid, torch.tanh):  # fmt: skip
        yield f, [drawn(8, 5)], {}
    yield (lambda x: F.gelu(x, approximate="tanh")), [drawn(8, 5)], {}
    yield (lambda x: torch.softmax(x, 1)), [drawn(8, 5)], {}
    yield (lambda x: torch.log_softmax(x, 0)), [drawn(8, 5)], {}
    yield (lambda x: F.elu(x * 1.0, inplace=True)), [drawn(8, 5)], {}  # keeps its result, not its input


class Derivatives(unittest.TestCase):
    def test_each_formula_is_what_autograd_computes(self):
        torch.manual_seed(1)
        used = set()
        for number, (f, leaves, more) in enumerate([*activations(), *norms(), *losses()]):
            out = f(*leaves, **more)
            upstream = torch.randn_like(out)
            want = torch.autograd.grad(out, leaves, upstream)
            with Replaced() as mode:
                got = torch.autograd.grad(f(*leaves, **more), leaves, upstream)
            used |= mode.used
            for w, g in zip(want, got):
                self.assertTrue(torch.allclose(w, g, rtol=1e-7, atol=1e-9), f"case {number}: {(w - g).abs().max()}")
        self.assertEqual(sorted(set(FORMULAS) - used - OF_GPUS), [])

    def test_rms_norm_as_a_gpu_has_it(self):
        torch.manual_seed(2)
        x, weight = drawn(4, 3, 6), drawn(6)
        y = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * weight
        g = torch.randn_like(y)
        want = torch.autograd.grad(y, [x, weight], g)
        made, rstd = FORMULAS["_fused_rms_norm"](x, [6], weight, 1e-5)
        got = FORMULAS["_fused_rms_norm_backward"](g, x, [6], rstd, weight, [True, True])
        self.assertTrue(torch.allclose(made, y) and all(torch.allclose(a, b) for a, b in zip(want, got)))

    def test_batch_norm_as_a_gpu_has_it(self):
        torch.manual_seed(3)
        x, weight, bias = drawn(4, 6, 5), drawn(6), drawn(6)
        y = F.batch_norm(x, None, None, weight, bias, training=True)
        g = torch.randn_like(y)
        want = torch.autograd.grad(y, [x, weight, bias], g)
        made, mean, rstd, _ = FORMULAS["cudnn_batch_norm"](x, weight, bias, None, None, True, 0.1, 1e-5)
        got = FORMULAS["cudnn_batch_norm_backward"](x, g, weight, None, None, mean, rstd, 1e-5, None)
        self.assertTrue(torch.allclose(made, y) and all(torch.allclose(a, b) for a, b in zip(want, got)))


if __name__ == "__main__":
    unittest.main()
