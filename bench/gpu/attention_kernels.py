"""The kernels of the table of attention, as the built-in engineer writes them for an H200. Needs no GPU.

    python3 bench/gpu/attention_kernels.py CUTEGEN LADDER OUT [NAME...]      OUT/NAME.cu

Sizes other than those of heads, and numbers of heads that are shared, come from the call: tasks are described at small
ones. A name is dtype, head size and form: f16_128_causal, bf16_128_gqa_decode (one query; few: 8 heads), f16_128_long
(2048 keys or more), f16_128_mask (boolean), f32_64_added (a mask that is added), bf16_128_paged (one query, pages of 16
keys), f16_128_causal_backward (gradients); with _plain behind it, without the last step of its ladder. Built by

    nvcc -std=c++17 -O3 -arch=sm_90a --expt-relaxed-constexpr -shared -Xcompiler -fPIC -DCUTEGEN_EXPORT=1 ...
"""
import json
import os
import subprocess
import sys
import tempfile

TASK = '''import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal={causal}{gqa})


def get_inputs():
    sizes = (({heads}, {queries}), ({shared}, {keys}), ({shared}, {keys}))
    return [torch.randn(2, h, rows, {head}).to({dtype}) for h, rows in sizes]


def get_init_inputs():
    return []
'''
PAGED = '''import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, q, k_cache, v_cache, table, lengths):
        k = k_cache[table].reshape(2, 256, 8, {head}).transpose(1, 2).repeat_interleave(4, dim=1)
        v = v_cache[table].reshape(2, 256, 8, {head}).transpose(1, 2).repeat_interleave(4, dim=1)
        scores = q @ k.transpose(-2, -1) * {head} ** -0.5
        unseen = torch.arange(256)[None, None, None, :] >= lengths[:, None, None, None]
        return torch.softmax(scores.masked_fill(unseen, float("-inf")), -1) @ v


def get_inputs():
    caches = [torch.randn(40, 16, 8, {head}).to({dtype}) for _ in range(2)]
    return [torch.randn(2, 32, 1, {head}).to({dtype}), *caches, torch.randperm(40)[:32].reshape(2, 16), torch.tensor([200, 256])]


def get_init_inputs():
    return []
'''
DTYPES = {"f16": "torch.float16", "bf16": "torch.bfloat16", "f32": "torch.float32"}
NAMES = ["f16_128", "f16_128_long", "f16_128_causal", "bf16_128", "bf16_128_causal", "bf16_128_gqa_causal", "f16_64", "f16_64_causal",
         "f32_128", "f32_128_causal", "f32_64", "f32_32", "f32_96_causal", "f32_1024", "bf16_128_gqa_decode", "f32_128_gqa_decode", "bf16_128_few_decode",
         "bf16_128_paged", "f16_128_mask", "f32_64_mask", "f16_128_added", "f32_64_added", "f16_128_backward",
         "f16_128_backward_plain", "f16_128_causal_backward", "bf16_64_backward", "bf16_128_gqa_causal_backward"]


def task(name):
    dtype, head, *form = name.split("_")
    gqa, few, keys = "gqa" in form or "few" in form, "few" in form, 2048 if "long" in form else 128
    if "paged" in form:
        return PAGED.format(head=head, dtype=DTYPES[dtype])
    return TASK.format(causal="causal" in form, gqa=", enable_gqa=True" if gqa else "", head=head, dtype=DTYPES[dtype],
                       heads=8 if few else 32 if gqa else 4, shared=2 if few else 8 if gqa else 4, keys=keys,
                       queries=1 if "decode" in form else keys)


def fused(description, name):
    """The operator as a GPU has it, where a CPU's own description takes it apart or is another operator."""
    if "paged" in name:
        return description
    inputs = [node for node in description["graph"] if node["op"] == "input"]
    tensors, mask = description["inputs"], {"none": True}
    if "mask" in name or "added" in name:
        shape, dtype = [1, 1, 128, 128], "bool" if "mask" in name else tensors[0]["dtype"]
        like = {"dtype": dtype, "shape": shape, "strides": [128 * 128, 128 * 128, 128, 1]}
        inputs = inputs + [dict(like, id=3, op="input", index=3)]
        tensors = tensors + [dict(like, name="mask", role="input")]
        mask = {"node": 3}
    result = dict(description["outputs"][0])
    result.update(id=9, op="aten.scaled_dot_product_attention.default", kwargs={},
                  args=[{"node": 0}, {"node": 1}, {"node": 2}, mask, {"value": 0.0}, {"value": "causal" in name}])
    return dict(description, inputs=tensors, graph=inputs + [result, {"op": "output", "args": [{"node": 9}], "index": 0}])


def gradients(description, name):
    """The operator that gives them, likewise."""
    graph = [dict(node) for node in description["graph"] if node["op"] == "input"]
    parts = [dict(tensor) for tensor in description["inputs"]]
    upstream = dict(parts[0], name="grad_out")
    graph.append(dict({k: upstream[k] for k in ("dtype", "shape", "strides")}, id=3, op="input", index=3))
    result = {k: upstream[k] for k in ("dtype", "shape", "strides")}
    result.update(id=9, op="aten._scaled_dot_product_flash_attention_for_cpu_backward.default", kwargs={}, parts=parts,
                  args=[*({"node": n} for n in (3, 0, 1, 2, 3, 3)), {"value": 0.0}, {"value": "causal" in name}])
    outputs = [dict(part, name=f"grad_{part['name']}", role="output") for part in parts]
    return dict(description, inputs=parts + [upstream], outputs=outputs, graph=graph + [result] + [
        {"op": "output", "args": [{"node": 9, "part": k}], "index": k} for k in range(3)])


def main():
    cutegen, ladder, out = sys.argv[1:4]
    root = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    os.environ.setdefault("CUTEGEN_HOME", root)
    os.makedirs(out, exist_ok=True)
    for name in sys.argv[4:] or NAMES:
        with tempfile.TemporaryDirectory() as work:
            with open(f"{work}/{name}.py", "w") as file:
                file.write(task(name.removesuffix("_plain")))
            run = subprocess.run([cutegen, "describe", f"{work}/{name}.py", "--device", "simt", "--no-scale", "--json"],
                                 capture_output=True, text=True)
            if run.returncode:
                raise SystemExit(f"{name}: {run.stderr[-300:]}")
            with open(f"{work}/{name}.json", "w") as file:
                json.dump((gradients if "backward" in name else fused)(json.loads(run.stdout), name), file)
            run = subprocess.run([ladder, f"{work}/{name}.json", work, "sm_90a"], capture_output=True, text=True)
            if run.returncode:
                raise SystemExit(f"{name}: {run.stderr}")
            steps = sorted((x for x in os.listdir(work) if x.endswith(".cu")), key=lambda x: int(x.split(".")[-2]))
            chosen = steps[-2 if name.endswith("_plain") else -1]
            with open(f"{work}/{chosen}") as file, open(f"{out}/{name}.cu", "w") as to:
                to.write(file.read())
            print(f"{name}: {chosen}", flush=True)


main()
