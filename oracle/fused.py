# SPDX-License-Identifier: Apache-2.0
"""The sums of compare.py in one pass over the output instead of some hundred.

On a GPU by fused.cu, as PTX for the driver; on the host by src/eval/errors.c, a shared object that the asker names (--errors).

1. Only a shortcut: what it cannot do (another type, anything not finite, a driver that does not take the PTX, an object that is
   not there) is done by torch.
2. Before it is used on a device, it is held against torch's own answer on some thousand numbers.
"""

from __future__ import annotations

import ctypes
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable

import torch

from .blocks import divide
from .cuda import _check, _driver

THREADS = 256
ENTRIES = {
    torch.float32: "errors_f32",
    torch.float16: "errors_f16",
    torch.bfloat16: "errors_bf16",
}
FIGURES = (
    "square reference_square max_abs reference_max_abs max_rel reference_max_rel truth_sum truth_square".split()
)
LEAST = 1 << 16  # below that torch is as fast on a GPU
_modules: dict[int, Kernels | None] = {}
_host: Library | None = None


class Kernels:
    """fused.ptx, loaded into one device's context."""

    def __init__(self, device: torch.device) -> None:
        self.module, self.functions = ctypes.c_void_p(), {}
        self.grid = torch.cuda.get_device_properties(device).multi_processor_count * 8
        text = Path(__file__).with_name("fused.ptx").read_bytes() + b"\0"
        _check(_driver().cuModuleLoadData(ctypes.byref(self.module), text), "loading fused.ptx")
        for name in ENTRIES.values():
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


class Library:
    """errors.c, loaded into this process. One entry: 16-bit numbers are exact in 32 bits."""

    def __init__(self, path: str) -> None:
        library = ctypes.CDLL(path)
        self.errors, self.move_low_bits = library.cutegen_errors_f32, library.cutegen_lean_f32

    def launch(self, name: str, results: int, arguments: list[Any], device: torch.device) -> list[float]:
        out = torch.zeros(results, dtype=torch.float64)
        narrow = [a.float() if isinstance(a, torch.Tensor) and a.dtype in ENTRIES else a for a in arguments]
        if self.errors(*[_argument(a) for a in [*narrow, out]]):
            raise ValueError(name)
        return out.tolist()


def load_host(path: str, by_torch: Callable[..., Any]) -> None:
    """Takes the shared object into use, if it can be loaded and says what torch says."""
    global _host
    try:
        library = Library(path)
        if all(_agrees(library, dtype, torch.device("cpu"), by_torch) for dtype in ENTRIES):
            _host = library
    except (AttributeError, OSError, ValueError):  # of another machine, of another version: torch does it
        pass


def move_low_bits(numbers: torch.Tensor, low_bits: int, begin: int) -> bool:
    """draw.py's lean() of contiguous fp32 numbers of the host, where they lie; False: not done."""
    if _host is None or numbers.device.type != "cpu" or not numbers.is_contiguous():
        return False
    count = ctypes.c_uint64(numbers.numel())
    return _host.move_low_bits(ctypes.c_uint64(numbers.data_ptr()), count, low_bits, begin) == 0


def _argument(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return ctypes.c_uint64(value.data_ptr())
    return ctypes.c_double(value) if isinstance(value, float) else ctypes.c_uint64(value)


class Measured:
    """What compare.py asks for, with the names of its own sums."""

    nan = inf = unwritten = misplaced = 0
    noise_square = 0.0

    def __init__(
        self, kernels: Kernels | Library, got: torch.Tensor, reference: torch.Tensor, truth: torch.Tensor, limits: Any
    ) -> None:
        division = divide(got.shape)
        self.blocks, self.shape = division.blocks, got.shape
        numbers = [got, reference, truth, division.blocks, division.columns, division.segments]
        numbers += [limits.rtol, limits.rms, limits.floor]
        self._again = lambda excess: kernels.launch(ENTRIES[got.dtype], 12, [*numbers, excess], got.device)
        # On the host a right answer needs no errors of single elements.
        self._excess = None if isinstance(kernels, Library) else torch.empty_like(got, dtype=torch.float32).reshape(-1)
        (
            self.square,
            self.reference_square,
            self.max_abs,
            self.reference_max_abs,
            self.max_rel,
            self.reference_max_rel,
            beyond,
            off,
            off_blocks,
            self.truth_sum,
            self.truth_square,
            odd,
        ) = self._again(0 if self._excess is None else self._excess)
        self.beyond, self.off, self.off_blocks = int(beyond), int(off), int(off_blocks)
        self.fits = odd == 0 and math.isfinite(self.truth_square)

    @property
    def excess(self) -> torch.Tensor:
        """f32, flat: each element's error over what is allowed."""
        if self._excess is None:
            self._excess = torch.empty(math.prod(self.shape), dtype=torch.float32)
            self._again(self._excess)
        return self._excess


def measure(
    got: torch.Tensor, reference: torch.Tensor, truth: torch.Tensor, limits: Any, by_torch: Callable[..., Any]
) -> Measured | None:
    """The sums of one output, or None where torch must do it. `by_torch` is what the kernels are held against."""
    if got.dtype not in ENTRIES or reference.dtype != got.dtype or truth.device != got.device or truth.dtype != torch.float64:
        return None
    if not all(math.isfinite(limit) for limit in (limits.rtol, limits.rms, limits.floor)):
        return None
    kernels: Kernels | Library | None = _host
    if got.device.type != "cpu":
        kernels = _kernels(got.device, by_torch) if got.device.type == "cuda" and got.numel() >= LEAST else None
    if not kernels:
        return None
    made = Measured(kernels, got.contiguous(), reference.contiguous(), truth.contiguous(), limits)
    return made if made.fits else None


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


def _agrees(kernels: Kernels | Library, dtype: torch.dtype, device: torch.device, by_torch: Callable[..., Any]) -> bool:
    """Do the kernels say what torch says, on a few thousand numbers?"""
    limits = SimpleNamespace(rtol=1e-3, rms=5e-4, floor=1e-30)
    generator = torch.Generator(device).manual_seed(1)
    truth = torch.randn(7, 701, generator=generator, device=device, dtype=torch.float64)
    truth = torch.relu(truth) * torch.logspace(-3, 3, 7, device=device, dtype=torch.float64)[:, None]
    noise = torch.randn(2, 7, 701, generator=generator, device=device, dtype=torch.float64) * 2e-3
    got, reference = (truth * (1 + noise[0])).to(dtype), (truth * (1 + 0.02 * noise[1])).to(dtype)
    made, sums = Measured(kernels, got, reference, truth, limits), by_torch(got, reference, truth, limits)
    return (
        made.fits
        and all(math.isclose(getattr(made, n), getattr(sums, n), rel_tol=1e-6) for n in FIGURES)
        and all(abs(getattr(made, n) - getattr(sums, n)) <= 1 for n in ("beyond", "off", "off_blocks"))
        and bool(torch.allclose(made.excess, sums.excess, rtol=1e-5, atol=0.0))
    )
