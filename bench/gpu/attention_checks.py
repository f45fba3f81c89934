"""Attention on a GPU: errors on hard inputs beside PyTorch's backends, repeated runs, pages of keys.

    python3 bench/gpu/attention_checks.py KERNELS OUT.json [errors] [repeats] [paged]

KERNELS as for attention.py, whose calls it uses. Errors are against float64: the largest, and rms relative to the result.
"""
import json
import sys

import attention
import torch
import torch.nn.functional as F
from torch.nn.attention import sdpa_kernel

DEVICE = "cuda"
SHAPE = (2, 4, 1024, 128)


def drawn(kind, shape, dtype):
    torch.manual_seed(7)
    x = [torch.randn(shape, device=DEVICE) for _ in range(3)]
    if kind == "uniform":
        x = [torch.rand(shape, device=DEVICE) for _ in range(3)]
    elif kind == "sharp":
        x[0] = x[0] * 8
    elif kind == "wide":
        x = [t * torch.exp(2 * torch.randn(shape, device=DEVICE)) for t in x]
    return [t.to(dtype) for t in x]


def masks(kind, dtype):
    """A mask that every head shares; a tenth of the rows see nothing."""
    torch.manual_seed(8)
    seen = torch.rand(1, 1, SHAPE[2], SHAPE[2], device=DEVICE) > 0.3
    seen[..., ::10, :] = False
    if kind == "mask":
        return seen
    return torch.zeros(seen.shape, device=DEVICE, dtype=dtype).masked_fill(~seen, float("-inf"))


def truth(q, k, v, mask):
    s = q.double() @ k.double().transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        s = s.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else s + mask.double()
    return torch.nan_to_num(torch.softmax(s, -1)) @ v.double()


def error(got, want):
    bad = got.double() - want
    empty = want.abs().amax(-1) == 0
    return {"max": bad.abs().max().item(), "rms": (bad.square().sum() / want.square().sum()).sqrt().item(),
            "nan": int(torch.isnan(got).sum()), "rows_without_keys": int(empty.sum()),
            "those_zero": int((got.abs().amax(-1)[empty] == 0).sum())}


def errors(kernels):
    found = {}
    cases = [(name, kind, None) for name in ("f16_128", "f32_128", "f32_64") for kind in ("normal", "uniform", "sharp", "wide")]
    cases += [("f16_128_mask", "normal", "mask"), ("f16_128_added", "normal", "added"), ("f32_64_mask", "normal", "mask")]
    for name, kind, form in cases:
        dtype = attention.DTYPES[name.split("_")[0]]
        shape = SHAPE[:3] + (int(name.split("_")[1]),)
        q, k, v = drawn(kind, shape, dtype)
        mask = masks(form, dtype) if form else None
        want, row = truth(q, k, v, mask), {}
        out = torch.full_like(q, float("nan"))
        try:
            attention.caller(f"{kernels}/{name}.so", (q, k, v) + (() if mask is None else (mask,)), out)()
            torch.cuda.synchronize()
            row["ours"] = error(out, want)
        except (OSError, RuntimeError) as problem:
            print(f"{name}: {problem}", flush=True)
        for backend, value in attention.BACKENDS.items():
            try:
                with sdpa_kernel(value):
                    row[backend] = error(F.scaled_dot_product_attention(q, k, v, attn_mask=mask), want)
            except RuntimeError:
                pass
        found[f"{name} {kind}"] = row
        for column, e in row.items():
            print(f"{name:14} {kind:8} {column:10} max {e['max']:.2e} rms {e['rms']:.2e} nan {e['nan']} "
                  f"rows without keys {e['rows_without_keys']}, zero {e['those_zero']}", flush=True)
    return found


def repeats(kernels, runs=1000):
    found = {}
    for name, dtype, shape, queries in (("f16_128", "f16", (2, 8, 777, 128), 777), ("bf16_128_causal", "bf16", (2, 8, 777, 128), 777),
                                        ("f32_128", "f32", (2, 8, 777, 128), 777), ("f32_128_causal", "f32", (2, 8, 777, 128), 777),
                                        ("f32_64", "f32", (2, 8, 777, 64), 777), ("f32_96_causal", "f32", (2, 8, 777, 96), 777),
                                        ("bf16_128_gqa_decode", "bf16", (2, 8, 5000, 128), 1), ("f32_128_gqa_decode", "f32", (2, 8, 5000, 128), 1)):
        torch.manual_seed(9)
        q, k, v = (torch.randn(shape, device=DEVICE).to(attention.DTYPES[dtype]) for _ in range(3))
        q = q if queries > 1 else torch.randn(2, 32, 1, 128, device=DEVICE).to(q.dtype)
        out = torch.full_like(q, float("nan"))
        try:
            call = attention.caller(f"{kernels}/{name}.so", (q, k, v), out)
            call()
        except (OSError, RuntimeError) as problem:
            print(f"{name}: {problem}", flush=True)
            continue
        first = out.clone()
        bits = first.view(torch.int16 if first.element_size() == 2 else torch.int32)
        different = torch.zeros((), dtype=torch.int64, device=DEVICE)
        for _ in range(runs):
            out.fill_(float("nan"))
            call()
            different += (out.view(bits.dtype) != bits).any()
        found[name] = {"runs": runs, "different": int(different)}
        print(f"{name:24} {runs} runs, {int(different)} different", flush=True)
    return found


def paged(kernels):
    """16 sequences of up to 8192 keys in pages of 16, 32 heads of which 4 share K and V, beside gathering."""
    batch, pages, page = 16, 512, 16
    torch.manual_seed(3)
    caches = [torch.randn(batch * pages + 7, page, 8, 128, device=DEVICE).bfloat16() for _ in range(2)]
    q = torch.randn(batch, 32, 1, 128, device=DEVICE).bfloat16()
    table = torch.randperm(batch * pages + 7, device=DEVICE)[:batch * pages].reshape(batch, pages)
    lengths = torch.randint(6000, 8193, (batch,), device=DEVICE)
    lengths[0] = 8192
    out = torch.full_like(q, float("nan"))
    flush = torch.empty(64 << 20, dtype=torch.float32, device=DEVICE)

    def gathered():
        k, v = (c[table].reshape(batch, pages * page, 8, 128).transpose(1, 2) for c in caches)
        seen = torch.arange(pages * page, device=DEVICE) < lengths[:, None]
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen[:, None, None], enable_gqa=True)
    want = truth(q, *(c[table].reshape(batch, -1, 8, 128).transpose(1, 2).repeat_interleave(4, dim=1) for c in caches),
                 (torch.arange(pages * page, device=DEVICE) < lengths[:, None])[:, None, None])
    call = attention.caller(f"{kernels}/bf16_128_paged.so", (q, *caches, table, lengths), out)
    call()
    row = {"ours": error(out, want), "gathered": error(gathered(), want)}
    floor_us = 2.0 * batch * 8 * pages * page * 128 * 2 / attention.MEMORY
    for name, fn in (("ours", call), ("gathered", gathered)):
        fn()
        row[name]["us"] = attention.median(attention.times_us(fn, 15, flush))
        print(f"paged 16 x 8192 {name:10} {row[name]['us']:9.1f} us, {floor_us / row[name]['us']:.3f} of memory, rms {row[name]['rms']:.2e}", flush=True)
    return {"bf16 GQA 32/8, 16 sequences": row}


def main():
    kernels, path = sys.argv[1:3]
    found = {}
    for part in sys.argv[3:] or ["errors", "repeats", "paged"]:
        try:
            found[part] = {"errors": errors, "repeats": repeats, "paged": paged}[part](kernels)
        except (OSError, RuntimeError) as problem:
            print(f"{part}: {str(problem).splitlines()[0]}", flush=True)
        with open(path, "w") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
