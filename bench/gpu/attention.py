"""Attention on a GPU beside PyTorch: times in interleaved rounds, errors against float64.

    python3 bench/gpu/attention.py KERNELS OUT.json [ROW...]      KERNELS: a folder of NAME.so (attention_kernels.py)

Every column of a row comes from one run: each round times our kernels and PyTorch's backends one after the other, in
another order, cold (256 MiB written before each call); the median over all rounds counts. TFLOP/s are 4 B H Sq Sk D /
time, half of it when causal; of one query, the share of the memory's speed (4.3 TB/s) at which K and V are read. Clocks
and power are those of nvidia-smi after the row. While KERNELS has a file `building`, kernels that are not there yet are
waited for. `compile` is torch.compile of the same call, `flex` flex_attention, compiled; COMPILE=no: without them.
"""
import ctypes
import json
import os
import subprocess
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False

# row: kernels, dtype, batch, heads of Q, heads of K, queries, keys, head size, causal, calls of a round
ROWS = {
    "f16 D128 S4096": (["f16_128_long", "f16_128_long_plain"], "f16", 4, 16, 16, 4096, 4096, 128, False, 10),
    "bf16 D128 S4096 causal": (["bf16_128_causal", "bf16_128_causal_plain"], "bf16", 4, 16, 16, 4096, 4096, 128, True, 12),
    "f16 D64 S4096": (["f16_64", "f16_64_plain"], "f16", 4, 16, 16, 4096, 4096, 64, False, 10),
    "f32 D128 S4096": (["f32_128"], "f32", 4, 16, 16, 4096, 4096, 128, False, 4),
    "f32 D64 S1024": (["f32_64", "f32_64_plain"], "f32", 4, 16, 16, 1024, 1024, 64, False, 12),
    "f32 D64 S4096": (["f32_64", "f32_64_plain"], "f32", 4, 16, 16, 4096, 4096, 64, False, 4),
    "f32 D32 S16384": (["f32_32", "f32_32_plain"], "f32", 2, 4, 4, 16384, 16384, 32, False, 4),
    "f32 D96 S512 causal": (["f32_96_causal", "f32_96_causal_plain"], "f32", 128, 8, 8, 512, 512, 96, True, 8),
    "bf16 D128 S4096 causal GQA 32/8": (["bf16_128_gqa_causal", "bf16_128_gqa_causal_plain"], "bf16", 4, 32, 8, 4096, 4096, 128, True, 10),
    "f16 D128 S1024": (["f16_128", "f16_128_plain"], "f16", 4, 16, 16, 1024, 1024, 128, False, 20),
    "f16 D64 S1024": (["f16_64", "f16_64_plain"], "f16", 4, 16, 16, 1024, 1024, 64, False, 20),
    "f16 D128 S16384": (["f16_128_long", "f16_128_long_plain"], "f16", 4, 16, 16, 16384, 16384, 128, False, 4),
    "f16 D64 S16384": (["f16_64", "f16_64_plain"], "f16", 4, 16, 16, 16384, 16384, 64, False, 4),
    "bf16 decode 8192 GQA 32/8": (["bf16_128_gqa_decode", "bf16_128_gqa_decode_plain"], "bf16", 16, 32, 8, 1, 8192, 128, False, 20),
    "bf16 decode 131072 GQA 32/8 B1": (["bf16_128_gqa_decode", "bf16_128_gqa_decode_plain"], "bf16", 1, 32, 8, 1, 131072, 128, False, 20),
    "bf16 decode 32768 8/2 B1": (["bf16_128_few_decode", "bf16_128_few_decode_plain"], "bf16", 1, 8, 2, 1, 32768, 128, False, 20),
    "f32 decode 8192 GQA 32/8": (["f32_128_gqa_decode"], "f32", 8, 32, 8, 1, 8192, 128, False, 12),
    "f32 D128 S1024": (["f32_128"], "f32", 4, 16, 16, 1024, 1024, 128, False, 12),
    "f32 D128 S4096 causal": (["f32_128_causal"], "f32", 4, 16, 16, 4096, 4096, 128, True, 4),
    "f32 D1024 S512": (["f32_1024"], "f32", 32, 32, 32, 512, 512, 1024, False, 4),
    "bf16 D128 S16384 causal": (["bf16_128_causal", "bf16_128_causal_plain"], "bf16", 4, 16, 16, 16384, 16384, 128, True, 4),
}
DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
BACKENDS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION,
            "efficient": SDPBackend.EFFICIENT_ATTENTION, "math": SDPBackend.MATH}
THEIRS = ("default", "compile", "flex", *BACKENDS)
ROUNDS = 3
MEMORY = 4.3e6  # bytes in a microsecond


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64)]


def wrap(t):
    n = t.dim()
    code = {torch.float32: (2, 32), torch.float16: (2, 16), torch.bfloat16: (4, 16), torch.bool: (6, 8),
            torch.int64: (0, 64)}[t.dtype]
    return Tensor(t.data_ptr(), (ctypes.c_int32 * 2)(2, 0), n, code[0], code[1], 1, (ctypes.c_int64 * n)(*t.shape),
                  (ctypes.c_int64 * n)(*t.stride()), 0)


def caller(path, tensors, out):
    while not os.path.exists(path) and os.path.exists(os.path.join(os.path.dirname(path), "building")):
        time.sleep(0.5)
    lib = ctypes.CDLL(path)
    ins, outs = (Tensor * len(tensors))(*map(wrap, tensors)), (Tensor * 1)(wrap(out))

    def call():
        err = ctypes.create_string_buffer(500)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        if lib.cutegen_call_kernel(ins, len(tensors), outs, 1, None, 0, stream, err, 500):
            raise RuntimeError(err.value.decode())
    return call


def times_us(fn, calls, flush):
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(calls)]
    for begin, end in events:
        flush.zero_()
        begin.record()
        fn()
        end.record()
    torch.cuda.synchronize()
    return [begin.elapsed_time(end) * 1e3 for begin, end in events]


def median(values):
    values = sorted(values)
    return values[len(values) // 2]


def truth(q, k, v, causal):
    """In float64, of the first and the last head, for some rows."""
    g = q.shape[1] // k.shape[1]
    rows = torch.arange(0, q.shape[2], max(1, q.shape[2] // 256), device="cuda")
    picks = []
    for b, h in ((0, 0), (q.shape[0] - 1, q.shape[1] - 1)):
        x, y, z = q[b, h][rows].double(), k[b, h // g].double(), v[b, h // g].double()
        s = x @ y.t() / q.shape[-1] ** 0.5
        if causal:
            s = s.masked_fill(torch.arange(k.shape[2], device="cuda") > rows[:, None], float("-inf"))
        picks.append(((b, h), torch.softmax(s, -1) @ z))
    return rows, picks


def errors(out, rows, picks):
    worst = rms = size = 0.0
    for (b, h), want in picks:
        bad = out[b, h][rows].double() - want
        worst = max(worst, bad.abs().max().item())
        rms += bad.square().sum().item()
        size += want.square().sum().item()
    return worst, (rms / size) ** 0.5


def clocks():
    query = "clocks.sm,clocks.mem,power.draw,temperature.gpu"
    run = subprocess.run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits"], capture_output=True, text=True)
    return run.stdout.strip()


def compiled(q, k, v, causal, gqa, sdpa):
    """The columns that torch.compile makes."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    mask = create_block_mask(lambda b, h, m, n: m >= n, None, None, q.shape[2], k.shape[2], device="cuda") if causal else None
    flex = torch.compile(flex_attention, dynamic=False)
    return {"compile": torch.compile(sdpa, dynamic=False), "flex": lambda: flex(q, k, v, block_mask=mask, enable_gqa=gqa)}


def columns(row, kernels):
    names, dtype, batch, heads, shared, queries, keys, head, causal, _ = ROWS[row]
    shape = {"q": (batch, heads, queries, head), "k": (batch, shared, keys, head), "v": (batch, shared, keys, head)}
    q, k, v = (torch.randn(shape[x], device="cuda").to(DTYPES[dtype]) for x in "qkv")
    gqa = heads != shared
    out = {}
    for name in names:
        result = torch.full_like(q, float("nan"))
        try:
            call = caller(f"{kernels}/{name}.so", (q, k, v), result)
            call()
            torch.cuda.synchronize()
            out[name] = (call, lambda result=result: result)
        except (OSError, RuntimeError) as error:
            print(f"{row}: {name}: {error}", flush=True)

    def sdpa():
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal, **({"enable_gqa": True} if gqa else {}))
    out["default"] = (sdpa, sdpa)
    for name, fn in compiled(q, k, v, causal, gqa, sdpa).items() if os.environ.get("COMPILE") != "no" else ():
        try:
            fn()
            torch.cuda.synchronize()
            out[name] = (fn, fn)
        except Exception as error:  # whatever Inductor raises
            print(f"{row}: {name}: {str(error).splitlines()[0][:150]}", flush=True)
    for name, backend in BACKENDS.items():
        big = batch * heads * queries * keys
        if name == "math" and big > 1 << 29:
            continue

        def forced(backend=backend):
            with sdpa_kernel(backend):
                return sdpa()
        try:
            forced()
            torch.cuda.synchronize()
            out[name] = (forced, forced)
        except (RuntimeError, torch.OutOfMemoryError):
            pass
    return q, k, v, out


def measure(row, kernels, flush):
    _, dtype, batch, heads, shared, queries, keys, head, causal, calls = ROWS[row]
    floor_us = 2.0 * batch * shared * keys * head * (4 if dtype == "f32" else 2) / MEMORY
    torch.manual_seed(1)
    q, k, v, out = columns(row, kernels)
    found = {name: [] for name in out}
    order = list(out)
    for _ in range(ROUNDS):
        for name in order:
            call = out[name][0]
            time.sleep(0.02)  # each begins with a device that has cooled as long
            slow = name == "math" or (row.startswith("f32") and name in THEIRS)
            found[name] += times_us(call, max(2, calls // 3) if slow else calls, flush)
        order = order[-1:] + order[:-1]  # each comes first in some round
    rows, picks = truth(q, k, v, causal)
    flops = 4.0 * batch * heads * queries * keys * head * (0.5 if causal else 1)
    result = {"clocks": clocks(), "columns": {}}
    for name, (_, get) in out.items():
        us = median(found[name])
        worst, rms = errors(get(), rows, picks)
        result["columns"][name] = {"us": us, "tflops": flops / us / 1e6, "max": worst, "rms": rms, "min_us": min(found[name])}
        if queries == 1:
            result["columns"][name]["floor"] = floor_us / us
        speed = f"{floor_us / us:7.3f} of memory" if queries == 1 else f"{flops / us / 1e6:7.1f} TFLOP/s"
        print(f"{row:34} {name:24} {us:10.1f} us {speed}  max {worst:.2e} rms {rms:.2e}", flush=True)
    theirs = min(c["us"] for n, c in result["columns"].items() if n in THEIRS)
    ours = [c["us"] for n, c in result["columns"].items() if n not in THEIRS]
    if ours:
        print(f"{row:34} best of PyTorch / ours {theirs / min(ours):.3f}   {result['clocks']}", flush=True)
    return result


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


if __name__ == "__main__":
    main()
