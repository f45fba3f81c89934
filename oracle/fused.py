"""The sums of compare.py on a GPU, two passes over the output instead of some forty: fused.cu, as PTX for the driver.

1. Only a shortcut: what it cannot do (another type, anything not finite, a driver that does not take the PTX) is done by torch.
2. Before it is used on a device, it is held against torch's own answer on some thousand numbers.
"""

from __future__ import annotations

import ctypes
import math
import struct
from pathlib import Path
from typing import Any, Callable

import torch

from .cuda import _check, _driver

THREADS = 256
ENTRIES = {
    torch.float64: "errors_f64",
    torch.float32: "errors_f32",
    torch.float16: "errors_f16",
    torch.bfloat16: "errors_bf16",
}
LEAST = 1 << 16  # below that torch is as fast
_modules: dict[int, "Kernels | None"] = {}


class Kernels:
    """fused.ptx, loaded into one device's context."""

    def __init__(self, device: torch.device) -> None:
        self.module, self.functions = ctypes.c_void_p(), {}
        self.grid = torch.cuda.get_device_properties(device).multi_processor_count * 8
        text = Path(__file__).with_name("fused.ptx").read_bytes() + b"\0"
        _check(_driver().cuModuleLoadData(ctypes.byref(self.module), text), "loading fused.ptx")
        for name in ["magnitude", "above", *ENTRIES.values()]:
            self.functions[name] = ctypes.c_void_p()
            _check(
                _driver().cuModuleGetFunction(ctypes.byref(self.functions[name]), self.module, name.encode()),
                name,
            )

    def launch(self, name: str, results: int, arguments: list[Any], device: torch.device) -> list[float]:
        """Runs a kernel whose last argument is an array of zeros; gives what it made of them."""
        out = torch.zeros(results, dtype=torch.float64, device=device)
        values = [_argument(a) for a in [*arguments, out]]
        pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
        stream = ctypes.c_void_p(torch.cuda.current_stream(device).cuda_stream)
        code = _driver().cuLaunchKernel(
            self.functions[name], self.grid, 1, 1, THREADS, 1, 1, 0, stream, pointers, None
        )
        _check(code, name)
        return out.tolist()


class _Float(float):
    """A float32 argument; other floats go as float64."""


def _argument(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return ctypes.c_uint64(value.data_ptr())
    if isinstance(value, _Float):
        return ctypes.c_float(value)
    return ctypes.c_double(value) if isinstance(value, float) else ctypes.c_uint64(value)


def _nearest(value: float) -> _Float:
    """As torch does when it compares a float32 tensor with a number."""
    return _Float(struct.unpack("f", struct.pack("f", min(value, 3.4e38)))[0])


class Measured:
    """What compare.py asks for, with the same names as its own sums."""

    nan = inf = unwritten = 0

    def __init__(
        self, kernels: Kernels, got: torch.Tensor, reference: torch.Tensor, truth: torch.Tensor, floor: float
    ) -> None:
        self.kernels, self.device = kernels, got.device
        total, square, odd = kernels.launch("magnitude", 3, [truth, truth.numel()], got.device)
        self.fits = odd == 0 and math.isfinite(square)
        if not self.fits:
            return
        self.scale, self.rms_truth = total / truth.numel(), math.sqrt(square / truth.numel())
        self.err = torch.empty(got.numel(), dtype=torch.float32, device=got.device)
        (
            self.square,
            self.reference_square,
            self.max_abs,
            self.reference_max_abs,
            self.reference_max,
            odd,
        ) = kernels.launch(
            ENTRIES[got.dtype],
            6,
            [got, reference, truth, got.numel(), self.scale + floor, self.err],
            got.device,
        )
        self.fits = odd == 0

    def above(self, one: float, two: float) -> tuple[int, int, float]:
        """How many errors are above each, and the largest."""
        first, second, largest = self.kernels.launch(
            "above", 3, [self.err, self.err.numel(), _nearest(one), _nearest(two)], self.device
        )
        return int(first), int(second), largest


def measure(
    got: torch.Tensor, reference: torch.Tensor, truth: torch.Tensor, floor: float, by_torch: Callable[..., Any]
) -> Measured | None:
    """The sums of one flat output, or None where torch must do it. `by_torch` is what the kernels are held against."""
    return None
    if got.device.type != "cuda" or truth.dtype != torch.float64 or got.numel() < LEAST:
        return None
    if got.dtype not in ENTRIES or reference.dtype != got.dtype:
        return None
    kernels = _kernels(got.device, by_torch)
    made = Measured(kernels, got, reference, truth, floor) if kernels else None
    return made if made and made.fits else None


def _kernels(device: torch.device, by_torch: Callable[..., Any]) -> Kernels | None:
    index = device.index or 0
    if index not in _modules:
        _modules[index] = None
        try:
            with torch.cuda.device(device):
                kernels = Kernels(device)
                if all(_agrees(kernels, dtype, device, by_torch) for dtype in ENTRIES):
                    _modules[index] = kernels
        except Exception:  # an old driver, a broken file: torch does it
            pass
    return _modules[index]


def _agrees(kernels: Kernels, dtype: torch.dtype, device: torch.device, by_torch: Callable[..., Any]) -> bool:
    """Do the kernels say what torch says, on a few thousand numbers?"""
    generator = torch.Generator(device).manual_seed(1)
    truth = torch.randn(5000, generator=generator, device=device, dtype=torch.float64)
    noise = torch.randn(2, 5000, generator=generator, device=device, dtype=torch.float64) * 1e-3
    got, reference = (truth + noise[0]).to(dtype), (truth + noise[1]).to(dtype)
    made = Measured(kernels, got, reference, truth, 1e-30)
    scale, rms_truth, sums = by_torch(got, reference, truth, 1e-30)
    first, second, largest = made.above(1e-3, 2e-3)
    return (
        made.fits
        and all(
            math.isclose(a, b, rel_tol=1e-12)
            for a, b in (
                (made.scale, scale),
                (made.rms_truth, rms_truth),
                (made.square, sums.square),
                (made.reference_square, sums.reference_square),
                (made.max_abs, sums.max_abs),
                (made.reference_max_abs, sums.reference_max_abs),
                (made.reference_max, sums.reference_max),
            )
        )
        and bool(torch.allclose(made.err, sums.err, rtol=1e-6, atol=0.0))
        and (first, second) == (int((made.err > 1e-3).sum()), int((made.err > 2e-3).sum()))
        and largest == float(made.err.max())
    )
