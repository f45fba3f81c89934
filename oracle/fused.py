# SPDX-License-Identifier: Apache-2.0
"""Work on a whole large tensor in one pass: the sums of compare.py (many passes by torch), fingerprints, low bits.

On a GPU by fused.cu, as PTX for the driver; on the host by src/eval/errors.c, a shared object that the asker names (--errors).

1. Only a shortcut: torch does what it cannot (another type, a truth whose square is not finite, a driver that rejects the PTX, a missing
   object).
2. Before it is used on a device, its results are compared with torch's on some thousand numbers.
"""

from __future__ import annotations

import ctypes
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable

import torch

from .blocks import divide
from .buffers import pattern_bits
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
ODD = ("misplaced", "nan", "inf", "unwritten")
OTHERS = ("fingerprints", "lean_f32")
LEAST = 1 << 16  # below that torch is as fast on a GPU
_modules: dict[int, Kernels] = {}
_tested: dict[tuple[int, str], bool] = {}
_host: Library | None = None


class Kernels:
    """fused.ptx, loaded into one device's context."""

    def __init__(self, device: torch.device) -> None:
        self.load(torch.cuda.get_device_properties(device).multi_processor_count * 8)

    def load(self, grid: int) -> None:
        self.module, self.functions, self.grid = ctypes.c_void_p(), {}, grid
        text = Path(__file__).with_name("fused.ptx").read_bytes() + b"\0"
        _check(_driver().cuModuleLoadData(ctypes.byref(self.module), text), "loading fused.ptx")
        for name in [*ENTRIES.values(), *OTHERS]:
            self.functions[name] = ctypes.c_void_p()
            _check(
                _driver().cuModuleGetFunction(ctypes.byref(self.functions[name]), self.module, name.encode()),
                name,
            )

    def sums(self, name: str, results: int, arguments: list[Any], device: torch.device) -> list[float]:
        """Runs a kernel whose last argument is an array of zeros; gives what it made of them."""
        out = torch.zeros(results, dtype=torch.float64, device=device)
        self.start(name, [*arguments, out], device)
        return out.tolist()

    def start(self, name: str, arguments: list[Any], device: torch.device) -> None:
        self.launch_on(torch.cuda.current_stream(device).cuda_stream, name, arguments)

    def launch_on(self, stream: Any, name: str, arguments: list[Any]) -> None:
        values = [_argument(a) for a in arguments]
        pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
        code = _driver().cuLaunchKernel(
            self.functions[name], self.grid, 1, 1, THREADS, 1, 1, 0, ctypes.c_void_p(stream), pointers, None
        )
        _check(code, name)


class Library:
    """errors.c, loaded into this process. One entry: 16-bit numbers are exact in 32 bits."""

    def __init__(self, path: str) -> None:
        library = ctypes.CDLL(path)
        self.errors, self.move_low_bits = library.cutegen_errors_f32, library.cutegen_lean_f32

    def sums(self, name: str, results: int, arguments: list[Any], device: torch.device) -> list[float]:
        out, got = torch.zeros(results, dtype=torch.float64), arguments[0]
        narrow = [a.float() if isinstance(a, torch.Tensor) and a.dtype in ENTRIES else a for a in arguments]
        own = [got, got.element_size(), pattern_bits(got.dtype)[1], torch.finfo(got.dtype).max]  # a wider NaN has other bits
        if self.errors(*[_argument(a) for a in [*narrow[:-1], *own, narrow[-1], out]]):
            raise ValueError(name)
        return out.tolist()


def load_host(path: str, by_torch: Callable[..., Any]) -> None:
    """Uses the shared object if it can be loaded and agrees with torch."""
    global _host
    try:
        library = Library(path)
        if _agree(library, torch.device("cpu"), by_torch):
            _host = library
    except (AttributeError, OSError, ValueError):  # of another machine, of another version: torch does it
        pass


def leaned(numbers: torch.Tensor, low_bits: int, begin: int, by_torch: Callable[..., torch.Tensor]) -> torch.Tensor | None:
    """draw.py's lean() of contiguous fp32 numbers; None: not done. `by_torch` is what the kernel is held against."""
    if not numbers.is_contiguous():
        return None
    if numbers.device.type == "cuda":
        kernels = _kernels(numbers.device, "lean", lambda k, d: _leans(k, d, by_torch))
        return _leaned(kernels, numbers, low_bits, begin) if kernels else None
    if _host is None or numbers.device.type != "cpu":
        return None
    made, count = numbers.clone(), ctypes.c_uint64(numbers.numel())
    return made if _host.move_low_bits(ctypes.c_uint64(made.data_ptr()), count, low_bits, begin) == 0 else None


def _leaned(kernels: Kernels, numbers: torch.Tensor, low_bits: int, begin: int) -> torch.Tensor:
    made = torch.empty_like(numbers)
    kernels.start("lean_f32", [numbers, made, numbers.numel(), low_bits, begin], numbers.device)
    return made


def _leans(kernels: Kernels, device: torch.device, by_torch: Callable[..., torch.Tensor]) -> bool:
    odd = torch.tensor([0.0, -0.0, math.inf, -math.inf, math.nan, 1e-42, 3.0], device=device)
    numbers = torch.cat([torch.randn(5000, device=device), odd])
    return all(
        torch.equal(_leaned(kernels, numbers, 13, begin).view(torch.int32), by_torch(numbers, 13, begin).view(torch.int32))
        for begin in (409, 4710)
    )


def fingerprints(
    words: torch.Tensor, keys: torch.Tensor, factors: torch.Tensor, copy: torch.Tensor | None, by_torch: Callable[..., torch.Tensor]
) -> torch.Tensor | None:
    """fingerprint.py's of each row of a contiguous matrix of 32-bit words, copied in the same pass; None: not done."""
    if words.device.type != "cuda" or words.dtype != torch.int32:
        return None
    kernels = _kernels(words.device, "fingerprints", lambda k, d: _marks(k, d, keys, factors, by_torch))
    return _fingerprints(kernels, words, keys, factors, copy) if kernels else None


def _fingerprints(
    kernels: Kernels, words: torch.Tensor, keys: torch.Tensor, factors: torch.Tensor, copy: torch.Tensor | None
) -> torch.Tensor:
    found = torch.zeros(words.shape[0], dtype=torch.int64, device=words.device)
    kernels.start("fingerprints", [words, 0 if copy is None else copy, *words.shape, keys, factors, found], words.device)
    return found


def _marks(
    kernels: Kernels, device: torch.device, keys: torch.Tensor, factors: torch.Tensor, by_torch: Callable[..., torch.Tensor]
) -> bool:
    for shape in ((3, 4096), (5, 9001), (2, keys.numel() + 8)):
        words = torch.randint(-(1 << 31), 1 << 31, shape, device=device).to(torch.int32)
        copy = torch.empty_like(words)
        if not torch.equal(_fingerprints(kernels, words, keys, factors, copy), by_torch(words)) or not torch.equal(copy, words):
            return False
    return True


def _argument(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return ctypes.c_uint64(value.data_ptr())
    return ctypes.c_double(value) if isinstance(value, float) else ctypes.c_uint64(value)


class Measured:
    """What compare.py asks for, with the names of its own sums."""

    noise_square = 0.0

    def __init__(
        self, kernels: Kernels | Library, got: torch.Tensor, reference: torch.Tensor, truth: torch.Tensor, limits: Any
    ) -> None:
        division = divide(got.shape)
        self.blocks, self.shape, self.device = division.blocks, got.shape, got.device
        numbers = [got, reference, truth, division.blocks, division.columns, division.segments]
        numbers += [limits.rtol, limits.rms, limits.floor]
        self._again = lambda excess: kernels.sums(ENTRIES[got.dtype], 15, [*numbers, excess], got.device)
        self._excess: torch.Tensor | None = None  # a right answer needs no errors of single elements
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
            *odd,
        ) = self._again(0)
        self.beyond, self.off, self.off_blocks = int(beyond), int(off), int(off_blocks)
        self.misplaced, self.nan, self.inf, self.unwritten = map(int, odd)
        self.fits = math.isfinite(self.truth_square)

    @property
    def excess(self) -> torch.Tensor:
        """f32, flat: each element's error over what is allowed."""
        if self._excess is None:
            self._excess = torch.empty(math.prod(self.shape), dtype=torch.float32, device=self.device)
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
        large = got.device.type == "cuda" and got.numel() >= LEAST
        kernels = _kernels(got.device, "errors", lambda k, d: _agree(k, d, by_torch)) if large else None
    if not kernels:
        return None
    made = Measured(kernels, got.contiguous(), reference.contiguous(), truth.contiguous(), limits)
    return made if made.fits else None


def _kernels(device: torch.device, use: str, agrees: Callable[[Kernels, torch.device], bool]) -> Kernels | None:
    """The device's kernels, if they can be loaded and pass this test of what they are to be used for."""
    place = (device.index or 0, use)
    if place not in _tested:
        _tested[place] = False
        try:
            with torch.cuda.device(device):
                if place[0] not in _modules:
                    _modules[place[0]] = Kernels(device)
                _tested[place] = agrees(_modules[place[0]], device)
        except Exception:  # an old driver, a broken file: torch does it
            pass
    return _modules[place[0]] if _tested[place] else None


def _agree(kernels: Kernels | Library, device: torch.device, by_torch: Callable[..., Any]) -> bool:
    return all(_agrees(kernels, dtype, device, by_torch, odd) for dtype in ENTRIES for odd in (False, True))


def _agrees(
    kernels: Kernels | Library, dtype: torch.dtype, device: torch.device, by_torch: Callable[..., Any], odd: bool = False
) -> bool:
    """Do the kernels agree with torch on a few thousand numbers? `odd`: some of them not finite, or not written."""
    limits = SimpleNamespace(rtol=1e-3, rms=5e-4, floor=1e-30)
    generator = torch.Generator(device).manual_seed(1)
    truth = torch.randn(7, 701, generator=generator, device=device, dtype=torch.float64)
    truth = torch.relu(truth) * torch.logspace(-3, 3, 7, device=device, dtype=torch.float64)[:, None]
    noise = torch.randn(2, 7, 701, generator=generator, device=device, dtype=torch.float64) * 2e-3
    got, reference = (truth * (1 + noise[0])).to(dtype), (truth * (1 + 0.02 * noise[1])).to(dtype)
    if odd:
        place_odd((got, reference, truth), generator)
    made, sums = Measured(kernels, got, reference, truth, limits), by_torch(got, reference, truth, limits)
    return (
        made.fits
        and all(math.isclose(getattr(made, n), getattr(sums, n), rel_tol=1e-6) for n in FIGURES)
        and all(abs(getattr(made, n) - getattr(sums, n)) <= 1 for n in ("beyond", "off", "off_blocks"))
        and all(getattr(made, n) == getattr(sums, n) for n in ODD)
        and bool(torch.allclose(made.excess, sums.excess, rtol=1e-5, atol=0.0))
    )


def place_odd(tensors: tuple[torch.Tensor, torch.Tensor, torch.Tensor], generator: torch.Generator) -> None:
    """Puts what is not finite into an answer, its reference and the truth, in all combinations; and what was not written."""
    values = (0.0, 1.0, math.inf, -math.inf, math.nan)
    flat = [t.view(-1) for t in tensors]
    places = torch.randperm(flat[0].numel(), generator=generator, device=flat[0].device)
    combinations = [(a, b, c) for a in values for b in values for c in (*values, 1e39)]
    for place, combination in zip(places.tolist(), combinations):
        for tensor, value in zip(flat, combination):
            tensor[place] = value
    kind, mark = pattern_bits(tensors[0].dtype)
    for place, value in zip(places[len(combinations) :].tolist(), values):
        flat[0].view(kind)[place] = mark
        flat[1][place] = flat[2][place] = value
