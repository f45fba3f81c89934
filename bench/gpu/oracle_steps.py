#!/usr/bin/env python3
"""What an oracle asks of a GPU and its driver, one line per step: bench/gpu/layers.py runs it inside the layers. Exit 1: a step failed."""

from __future__ import annotations

import ctypes
import sys
import time
import traceback

import torch

BEGIN = time.monotonic()
DEVICE = sys.argv[1] if len(sys.argv) > 1 else "cuda:0"


def opens() -> object:
    return torch.rand(1 << 10, device=DEVICE).double().sum().item()


def shares() -> object:
    driver, pointer, handle = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64(), (ctypes.c_ubyte * 64)()
    codes = driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(1 << 20)), driver.cuIpcGetMemHandle(ctypes.byref(handle), pointer)
    assert codes == (0, 0), codes
    return codes


def multiplies() -> object:
    a = torch.rand(512, 512, device=DEVICE)
    return float((a @ a).sum()), float((a.half() @ a.half()).sum()), float((a.double() @ a.double()).sum())


def convolves() -> object:
    return float(torch.nn.functional.conv2d(torch.rand(4, 16, 32, 32, device=DEVICE), torch.rand(8, 16, 3, 3, device=DEVICE)).sum())


def pins() -> object:
    return float(torch.rand(1 << 20).pin_memory().to(DEVICE, non_blocking=True).sum())


def captures() -> object:
    x, graph = torch.ones(1024, device=DEVICE), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2
    graph.replay()
    return float(y.sum())


def compiles(mode: str | None = None) -> object:
    import torch._inductor.config as inductor

    inductor.compile_threads = 1
    call = torch.compile(lambda x: torch.nn.functional.silu(x) @ x, mode=mode)
    return float(call(torch.rand(256, 256, device=DEVICE)).sum())


def tunes() -> object:
    return compiles("max-autotune-no-cudagraphs")


def main() -> int:
    failed = 0
    gpu = [opens, shares, multiplies, convolves, pins, captures, compiles, tunes]
    for step in gpu if DEVICE != "cpu" else [opens, multiplies, convolves, compiles]:
        try:
            print(f"[{time.monotonic() - BEGIN:5.1f}] ok     {step.__name__}: {step()}", flush=True)
        except Exception as err:
            failed += 1
            where = traceback.extract_tb(err.__traceback__)[-1]
            print(f"[{time.monotonic() - BEGIN:5.1f}] FAILED {step.__name__}: {type(err).__name__}: {str(err)[:400]} ({where.filename}:{where.lineno})", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
