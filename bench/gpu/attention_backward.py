"""Gradients of attention on a GPU beside PyTorch: times in interleaved rounds, errors against float64, repeats.

    python3 bench/gpu/attention_backward.py KERNELS OUT.json [ROW...]     KERNELS: a folder of NAME.so

Kernels are those of attention_kernels.py with "backward" in their name. Ours computes what gradients need of the forward
itself, so its time is that of PyTorch's forward and backward together; `kernels` has the parts. TFLOP/s are those of
seven products. Cold, medians of three rounds.
"""
import ctypes
import json
import os
import sys
import time

import torch
import torch.nn.functional as F
from attention import BACKENDS, DTYPES, ROUNDS, Tensor, clocks, median, times_us, wrap
from torch.nn.attention import sdpa_kernel

# row: kernels, dtype, batch, heads of Q, heads of K, keys, head size, causal, calls of a round
ROWS = {
    "f16 D128 S4096": (["f16_128_backward", "f16_128_backward_plain"], "f16", 4, 16, 16, 4096, 128, False, 6),
    "f16 D128 S4096 causal": (["f16_128_causal_backward"], "f16", 4, 16, 16, 4096, 128, True, 6),
    "f16 D128 S1024": (["f16_128_backward"], "f16", 4, 16, 16, 1024, 128, False, 12),
    "bf16 D64 S4096": (["bf16_64_backward"], "bf16", 4, 16, 16, 4096, 64, False, 6),
    "f16 D128 S16384": (["f16_128_backward"], "f16", 4, 16, 16, 16384, 128, False, 2),
    "f16 D128 S16384 causal": (["f16_128_causal_backward"], "f16", 4, 16, 16, 16384, 128, True, 2),
    "bf16 D128 S4096 causal GQA 32/8": (["bf16_128_gqa_causal_backward"], "bf16", 4, 32, 8, 4096, 128, True, 6),
}


def caller(path, tensors, outs):
    while not os.path.exists(path) and os.path.exists(os.path.join(os.path.dirname(path), "building")):
        time.sleep(0.5)
    lib = ctypes.CDLL(path)
    ins, made = (Tensor * len(tensors))(*map(wrap, tensors)), (Tensor * len(outs))(*map(wrap, outs))

    def call():
        err = ctypes.create_string_buffer(500)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        if lib.cutegen_call_kernel(ins, len(tensors), made, len(outs), None, 0, stream, err, 500):
            raise RuntimeError(err.value.decode())
    return call


def truth(q, k, v, g, causal):
    """In float64, of the first heads that share K and V."""
    share = q.shape[1] // k.shape[1]
    q, g = (x[0, :share].double() for x in (q, g))
    k, v = (x[0, 0].double() for x in (k, v))
    dk, dv, dq = torch.zeros_like(k), torch.zeros_like(v), []
    for x, y in zip(q, g):
        s = x @ k.t() / x.shape[-1] ** 0.5
        if causal:
            s = s.masked_fill(torch.ones_like(s, dtype=torch.bool).triu(1), float("-inf"))
        p = torch.softmax(s, -1)
        dp = y @ v.t()
        ds = p * (dp - (p * dp).sum(-1, keepdim=True)) / x.shape[-1] ** 0.5
        dq.append(ds @ k)
        dk += ds.t() @ x
        dv += p.t() @ y
    return torch.stack(dq), dk, dv


def errors(made, want):
    found = []
    for got, right in zip(made, want):
        bad = got[0, : right.shape[0]].double() - right if right.dim() == 3 else got[0, 0].double() - right
        found.append((bad.square().sum() / right.square().sum()).sqrt().item())
    return found


def kernel_times(call):
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as found:
        for _ in range(3):
            call()
        torch.cuda.synchronize()
    return {e.key.split("(")[0][:40]: round(e.device_time_total / 3, 1) for e in found.key_averages() if e.device_time_total > 3}


def columns(row, kernels):
    names, dtype, batch, heads, shared, keys, head, causal, _ = ROWS[row]
    shapes = [(batch, h, keys, head) for h in (heads, shared, shared, heads)]
    q, k, v, g = (torch.randn(s, device="cuda").to(DTYPES[dtype]) for s in shapes)
    out = {}
    for name in names:
        made = [torch.full_like(x, float("nan")) for x in (q, k, v)]
        try:
            call = caller(f"{kernels}/{name}.so", (q, k, v, g), made)
            call()
            torch.cuda.synchronize()
            out[name] = (call, lambda made=made: made)
        except (OSError, RuntimeError) as error:
            print(f"{row}: {name}: {error}", flush=True)
    leaves = [x.detach().requires_grad_() for x in (q, k, v)]
    more = {"enable_gqa": True} if heads != shared else {}
    for name, backend in BACKENDS.items():
        if name in ("math", "efficient"):
            continue

        def both(backend=backend):
            with sdpa_kernel(backend):
                return torch.autograd.grad(F.scaled_dot_product_attention(*leaves, is_causal=causal, **more), leaves, g)
        try:
            both()
            torch.cuda.synchronize()
            out[name] = (both, both)
            with sdpa_kernel(backend):
                result = F.scaled_dot_product_attention(*leaves, is_causal=causal, **more)
            out[f"{name} backward"] = (lambda result=result: torch.autograd.grad(result, leaves, g, retain_graph=True), None)
        except (RuntimeError, torch.OutOfMemoryError):
            pass
    return q, k, v, g, out


def measure(row, kernels, flush):
    _, _, batch, heads, _, keys, head, causal, calls = ROWS[row]
    torch.manual_seed(1)
    q, k, v, g, out = columns(row, kernels)
    found, order = {name: [] for name in out}, list(out)
    for _ in range(ROUNDS):
        for name in order:
            time.sleep(0.02)
            found[name] += times_us(out[name][0], max(1, calls // 3) if name.endswith("plain") else calls, flush)
        order = order[-1:] + order[:-1]
    want = truth(q, k, v, g, causal)
    flops = 14.0 * batch * heads * keys * keys * head * (0.5 if causal else 1)
    result = {"clocks": clocks(), "columns": {}}
    for name, (call, get) in out.items():
        us = median(found[name])
        bad = errors(get(), want) if get else []
        result["columns"][name] = {"us": us, "rms": bad}
        words = "rms dQ %.2e dK %.2e dV %.2e" % tuple(bad) if bad else ""
        rate = flops / us / 1e6 * (1 if get else 5 / 7)
        print(f"{row:32} {name:26} {us:10.1f} us {rate:7.1f} TFLOP/s  {words}", flush=True)
        if name in ROWS[row][0]:
            parts = result["columns"][name]["kernels"] = kernel_times(call)
            print(f"{row:32} {name:26} {parts}", flush=True)
    theirs = [c["us"] for n, c in result["columns"].items() if n in BACKENDS]
    ours = [c["us"] for n, c in result["columns"].items() if n in ROWS[row][0]]
    if ours and theirs:
        print(f"{row:32} best of PyTorch / ours {min(theirs) / min(ours):.3f}   {result['clocks']}", flush=True)
    return result


def repeats(name, kernels, count):
    """Are the bits of `count` runs the same?"""
    torch.manual_seed(2)
    q, k, v, g = (torch.randn(2, 4, 1000, 128, device="cuda").half() for _ in range(4))
    made = [torch.empty_like(x) for x in (q, k, v)]
    call, first, same = caller(f"{kernels}/{name}.so", (q, k, v, g), made), None, [0, 0, 0]
    for _ in range(count):
        call()
        torch.cuda.synchronize()
        first = first or [x.clone() for x in made]
        same = [s + bool(torch.equal(x, y)) for s, x, y in zip(same, made, first)]
    print(f"{name}: of {count} runs dQ, dK, dV equal to the first in {same}", flush=True)


def main():
    kernels, path = sys.argv[1:3]
    flush = torch.empty(64 << 20, dtype=torch.float32, device="cuda")
    results = {}
    for row in sys.argv[3:] or ROWS:
        begin = time.time()
        try:
            results[row] = measure(row, kernels, flush)
        except (RuntimeError, torch.OutOfMemoryError) as error:
            print(f"{row}: {str(error).splitlines()[0]}", flush=True)
        print(f"  {time.time() - begin:.1f} s", flush=True)
        with open(path, "w") as file:
            json.dump(results, file, indent=1)
        torch.cuda.empty_cache()
    for name in ("f16_128_backward_plain", "f16_128_backward"):
        try:
            repeats(name, kernels, 100)
        except (OSError, RuntimeError) as error:
            print(f"{name}: {error}", flush=True)


if __name__ == "__main__":
    main()
