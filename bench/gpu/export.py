"""Checks an exported ModelNew on a GPU: builds it with load_inline, compares, times both.

    python3 bench/gpu/export.py EXPORTED_MODULE.py
"""
import importlib.util
import sys
import time

import torch


def load(path):
    spec = importlib.util.spec_from_file_location("exported", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def median_ms(fn, args, runs=20):
    flush = torch.empty(64 << 20, device="cuda")
    times = []
    for _ in range(runs):
        flush.sum()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        fn(*args)
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return sorted(times)[runs // 2]


def main():
    exported = load(sys.argv[1])
    torch.manual_seed(1)
    reference = exported.Model(*exported.get_init_inputs()).cuda()
    torch.manual_seed(1)
    ours = exported.ModelNew(*exported.get_init_inputs()).cuda()
    args = [a.cuda() if isinstance(a, torch.Tensor) else a for a in exported.get_inputs()]
    start = time.time()
    got = ours(*args)
    torch.cuda.synchronize()
    print(f"built with load_inline and run in {time.time() - start:.1f} s")
    want = reference(*args)
    print(f"largest difference {(got - want).abs().max().item():.3g}")
    print(f"Model {median_ms(reference, args):.4f} ms, ModelNew {median_ms(ours, args):.4f} ms")
    try:
        ours(*[a[:7] if isinstance(a, torch.Tensor) else a for a in args])
    except ValueError as error:
        print("another shape is refused:", str(error)[:90])


main()
