# SPDX-License-Identifier: Apache-2.0
"""oracle/fused.ptx beside torch's own arithmetic, by simt: `cutegen simt exec -- python tests/oracle/test_fused.py`.

The kernels run on copies in the device's memory; everything else is what an oracle on a GPU does.
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
import unittest
from pathlib import Path

sys.path.insert(0, os.environ.get("CUTEGEN_ROOT") or str(Path(__file__).resolve().parents[2]))
import torch  # noqa: E402

from oracle import draw, fingerprint, fused  # noqa: E402
from oracle.compare import Limits, measure  # noqa: E402
from oracle.cuda import _check, _driver  # noqa: E402


class Simt(fused.Kernels):
    """The kernels, with tensors of the host copied to the device and back."""

    def __init__(self) -> None:
        driver, context = _driver(), ctypes.c_void_p()
        _check(driver.cuInit(0), "cuInit")
        _check(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "a context")
        _check(driver.cuCtxSetCurrent(context), "a context")
        self.load(grid=3)

    def start(self, name, arguments, device):
        places = []
        for k, value in enumerate(arguments):
            if isinstance(value, torch.Tensor):
                pointer, size = ctypes.c_uint64(), ctypes.c_size_t(value.numel() * value.element_size())
                _check(_driver().cuMemAlloc_v2(ctypes.byref(pointer), size), "memory")
                _check(_driver().cuMemcpyHtoD_v2(pointer, ctypes.c_void_p(value.data_ptr()), size), "to the device")
                places.append((pointer, value, size))
                arguments = [*arguments[:k], pointer.value, *arguments[k + 1 :]]
        self.launch_on(None, name, arguments)
        for pointer, value, size in places:
            _check(_driver().cuMemcpyDtoH_v2(ctypes.c_void_p(value.data_ptr()), pointer, size), "from the device")
            _check(_driver().cuMemFree_v2(pointer), "memory")


class FusedTest(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(7)
        self.kernels = KERNELS

    def test_sums_are_those_of_torch(self) -> None:
        """Random shapes, scales and errors; zeros; NaN, infinities and what was not written anywhere."""
        for number, shape in enumerate([(1,), (255,), (257,), (3, 701), (65, 3), (2, 3, 5, 7), (5, 512)]):
            dtype = list(fused.ENTRIES)[number % 3]
            scale, zeros, off = ((1.0, 0.0, 1e-6), (1e-3, 0.5, 1e-2), (100.0, 1.0, 0.0), (3.0, 0.9, 10.0))[number % 4]
            truth = torch.randn(shape, dtype=torch.float64) * scale * (torch.rand(shape) >= zeros)
            got, reference = ((truth * (1 + off * torch.randn(shape))).to(dtype) for _ in range(2))
            for odd in (False, True):
                if odd:
                    fused.place_odd((got, reference, truth), torch.Generator().manual_seed(number))
                limits = Limits(1e-5, 1e-6, 1e-30)
                made = fused.Measured(self.kernels, got, reference, truth, limits)
                sums = measure(got, reference, truth, limits)
                for name in fused.FIGURES:
                    one, other = getattr(made, name), getattr(sums, name)
                    self.assertTrue(math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-300), (shape, odd, name, one, other))
                for name in ("beyond", "off", "off_blocks", "blocks"):
                    self.assertLessEqual(abs(getattr(made, name) - getattr(sums, name)), 1, (shape, odd, name))
                self.assertEqual([getattr(made, n) for n in fused.ODD], [getattr(sums, n) for n in fused.ODD], (shape, odd))
                self.assertTrue(torch.allclose(made.excess, sums.excess, rtol=1e-5, atol=0.0))

    def test_a_usual_error_too_large_for_a_key_is_left_to_torch(self) -> None:
        truth = torch.full((600,), 1e39, dtype=torch.float64)
        got = torch.full((600,), math.nan)
        self.assertFalse(fused.Measured(self.kernels, got, torch.ones(600), truth, Limits(1e-5, 1e-6, 1e-30)).fits)

    def test_it_is_held_against_torch_before_it_is_used(self) -> None:
        cpu = torch.device("cpu")
        self.assertTrue(fused._agrees(self.kernels, torch.float32, cpu, measure, odd=True))
        self.assertFalse(fused._agrees(self.kernels, torch.float32, cpu, lambda *a: measure(*a[:3], Limits(1e-2, 5e-4, 1e-30))))
        self.assertTrue(fused._leans(self.kernels, cpu, draw._move_low_bits))
        self.assertFalse(fused._leans(self.kernels, cpu, lambda n, _, begin: draw._move_low_bits(n, 12, begin)))

    def test_fingerprints_are_those_of_torch(self) -> None:
        keys, factors = fingerprint._keys(torch.device("cpu"))
        for shape in [(1, 1), (7, 64), (3, 1001), (2, 8192), (3, 9004), (1, fingerprint.KEYS + 12)]:
            words = torch.randint(-(1 << 31), 1 << 31, shape).to(torch.int32)
            copy = torch.zeros_like(words)
            wanted = fingerprint._by_torch(words)
            self.assertTrue(torch.equal(fused._fingerprints(self.kernels, words, keys, factors, copy), wanted), shape)
            self.assertTrue(torch.equal(copy, words), shape)
            words[-1, -1] ^= 1
            changed = fused._fingerprints(self.kernels, words, keys, factors, None)
            self.assertEqual((changed != wanted).tolist(), [False] * (shape[0] - 1) + [True])


if __name__ == "__main__":
    KERNELS = Simt()
    unittest.main()
