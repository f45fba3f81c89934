"""Attention of real size as tasks, judged with kernels that attention_kernels.py wrote: verdict, time, eager's time.

    python3 bench/gpu/attention_judged.py CUTEGEN KERNELS [NAME...]       KERNELS: NAME.cu and BLOCK.cu; needs a GPU

One row for each task as soon as it is there, JOBS at a time: one is compiled while another has the GPU. Blocks are those
of attention_blocks.py.
"""
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import attention_blocks

TASK = '''import torch
import torch.nn as nn
import torch.nn.functional as F

{backward}
class Model(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal={causal}{gqa})


def get_inputs():
    sizes = (({heads}, {queries}), ({shared}, {keys}), ({shared}, {keys}))
    return [torch.randn({batch}, h, rows, {head}).to({dtype}) for h, rows in sizes]


def get_init_inputs():
    return []
'''
DTYPES = {"f16": "torch.float16", "bf16": "torch.bfloat16", "f32": "torch.float32"}
# name: batch, heads of Q, heads of K, queries, keys
SIZES = {"f32_96_causal": (128, 8, 8, 512, 512), "f32_1024": (32, 32, 32, 512, 512), "f16_128": (4, 16, 16, 4096, 4096), "bf16_128_causal": (4, 16, 16, 4096, 4096),
         "f32_128": (4, 16, 16, 4096, 4096), "f32_64": (4, 16, 16, 1024, 1024), "bf16_128_gqa_causal": (4, 32, 8, 4096, 4096),
         "bf16_128_gqa_decode": (16, 32, 8, 1, 8192), "f16_64": (4, 16, 16, 4096, 4096), "f16_128_backward": (4, 16, 16, 1024, 1024),
         "f16_128_causal_backward": (4, 16, 16, 4096, 4096), "f16_128_backward_plain": (4, 16, 16, 1024, 1024),
         "bf16_64_backward": (4, 16, 16, 4096, 4096), "bf16_128_gqa_causal_backward": (4, 32, 8, 4096, 4096)}


def text(name):
    if name in attention_blocks.BLOCKS:
        return attention_blocks.text(name)
    dtype, head, *form = name.split("_")
    batch, heads, shared, queries, keys = SIZES[name]
    return TASK.format(backward="BACKWARD = True\n\n" if "backward" in form else "", causal="causal" in form, heads=heads, shared=shared,
                       gqa=", enable_gqa=True" if heads != shared else "", batch=batch, queries=queries, keys=keys, head=head,
                       dtype=DTYPES[dtype])


def row(cutegen, task, kernel):
    begin = time.time()
    run = subprocess.run([cutegen, "eval", task, kernel, "--device", "cuda:0", "--draws", "1", "--compile", "none", "--json"],
                         capture_output=True, text=True)
    try:
        r = json.loads(run.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return f"no verdict: {(run.stderr or run.stdout)[-200:]}"
    m = r.get("measurement") or {}
    us = m.get("time_us") or 0
    eager = next((b["cold_us"] for b in m.get("baselines") or [] if b["name"] == "eager"), 0)
    why = "" if r.get("verdict") == "pass" else str(r.get("summary") or r.get("error"))[:150]
    return f"{r.get('verdict')} {us:.1f} us, eager {eager:.1f}, {eager / us if us else 0:.2f}, in {time.time() - begin:.1f} s {why}"


def main():
    cutegen, kernels, *names = sys.argv[1:]
    known = [n for n in [*attention_blocks.BLOCKS, *SIZES] if os.path.exists(f"{kernels}/{n}.cu")]
    with tempfile.TemporaryDirectory() as work, ThreadPoolExecutor(int(os.environ.get("JOBS", "3"))) as pool:
        def judge(name):
            with open(f"{work}/{name}.py", "w") as file:
                file.write(text(name))
            print(f"{name:30} {row(cutegen, f'{work}/{name}.py', f'{kernels}/{name}.cu')}", flush=True)
        list(pool.map(judge, names or known))


main()
