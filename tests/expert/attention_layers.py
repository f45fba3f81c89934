"""Attention behind the products that make Q, K and V, in fp32, for the built-in engineer: their epilogues write its fp16 parts.

    python3 tests/expert/attention_layers.py OUT_DIR [COUNT [SEED]]

A row is what it is, its layers, what forward does before `attend`, its inputs' shapes, what is changed in the first of them,
and what is masked. The seed changes nothing.
"""
import pathlib
import sys

TASK = '''"""Attention behind products {number}: {words}."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

SCALE = 1


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {layers}
        self.eval()

    def forward(self, {names}):
        {forward}
        s = q @ k.transpose(-2, -1) / math.sqrt({head})
        {mask}
        y = F.softmax(s, dim=-1) @ v
        return {result}y.transpose(1, 2).reshape({batch}, {queries}, {heads} * {head}){close}


def get_inputs():
    x = torch.randn({batch}, {queries}, {width})
    {changed}
    return [x{more}]


def get_init_inputs():
    return []
'''

CAUSAL = "s = s.masked_fill(torch.triu(torch.ones({queries}, {queries}), 1).bool(), float('-inf'))"
PACKED = "self.qkv = nn.Linear({width}, 3 * {heads} * {head})"
SPLIT = (
    "q, k, v = self.qkv(x).split({heads} * {head}, dim=2)\n"
    "        q, k, v = (t.view({batch}, -1, {heads}, {head}).transpose(1, 2) for t in (q, k, v))"
)
UNBIND = "q, k, v = self.qkv(x).reshape({batch}, {queries}, 3, {heads}, {head}).permute(2, 0, 3, 1, 4).unbind(0)"
THREE = "self.q, self.k, self.v = (nn.Linear({width}, {heads} * {head}, bias=b) for b in (True, False, True))"
ALONE = "q, k, v = (f(x).view({batch}, -1, {heads}, {head}).transpose(1, 2) for f in (self.q, self.k, self.v))"
SHARED = (
    "q, k, v = self.qkv(x).split([{heads} * {head}, {heads} * {head} // 2, {heads} * {head} // 2], dim=2)\n"
    "        q = q.view({batch}, -1, {heads}, {head}).transpose(1, 2)\n"
    "        k, v = (t.view({batch}, -1, {heads} // 2, {head}).transpose(1, 2) for t in (k, v))\n"
    "        k, v = (t.unsqueeze(2).expand(-1, -1, 2, -1, -1).reshape({batch}, {heads}, -1, {head}) for t in (k, v))"
)
CROSS = (
    "q = self.q(x).view({batch}, -1, {heads}, {head}).transpose(1, 2)\n"
    "        k, v = (t.view({batch}, -1, {heads}, {head}).transpose(1, 2) for t in self.kv(z).chunk(2, dim=-1))"
)
BELOW = SPLIT.replace("self.qkv(x)", "F.relu(self.qkv(x))")
BESIDE = (
    "q, k, v, b = self.qkv(x).split({heads} * {head}, dim=2)\n"
    "        q, k, v = (t.view({batch}, -1, {heads}, {head}).transpose(1, 2) for t in (q, k, v))\n"
    "        b = b[:, :, :{heads}].transpose(1, 2).unsqueeze(2)"
)
LARGE = SPLIT.replace("self.qkv(x)", "(self.qkv(x) * self.by)")


def row(words, layers, forward, heads, head, batch, queries, width, mask="pass", changed="pass", context=None, result=""):
    return {
        "words": words, "layers": layers, "forward": forward, "heads": heads, "head": head, "batch": batch, "queries": queries,
        "width": width, "mask": mask, "changed": changed, "names": "x, z" if context else "x", "result": result and f"{result}(",
        "close": ")" if result else "", "more": f", torch.randn({batch}, {context[0]}, {context[1]})" if context else "",
    }


ROWS = (
    row("packed, heads of 96, causal", PACKED, SPLIT, 2, 96, 2, 128, 512, CAUSAL),
    row("packed and unbound, heads of 64, an odd length", PACKED, UNBIND, 4, 64, 1, 100, 1024),
    row("three products, heads of 32, half a block of keys", THREE, ALONE, 4, 32, 2, 192, 1408, CAUSAL),
    row("shared heads of 64, causal", "self.qkv = nn.Linear({width}, 2 * {heads} * {head})", SHARED, 4, 64, 2, 128, 576, CAUSAL),
    row("cross attention", "self.q, self.kv = nn.Linear({width}, {heads} * {head}), nn.Linear(384, 2 * {heads} * {head})", CROSS, 4, 64, 2, 128,
        1056, context=(192, 384)),
    row("packed, heads of 128, a mask in memory", "self.seen = nn.Parameter(torch.randn({queries}, {queries}))\n        " + PACKED, SPLIT, 2, 128, 1, 256,
        384, "s = s + self.seen"),
    row("rows of zeros", PACKED.replace("{head})", "{head}, bias=False)"), SPLIT, 2, 96, 2, 128, 512, changed="x[1] = 0"),
    # not causal: PyTorch multiplies weights of zero by infinity, and masked blocks of keys are never read here
    row("infinity in a row", PACKED, SPLIT, 2, 64, 2, 128, 768, changed="x[0, 70, 5] = float('inf')", result="torch.nan_to_num"),
    row("columns of V far below the others",
        PACKED + "\n        by = torch.ones(3 * {heads} * {head})\n        by[-3:] = 2.0 ** -24\n        self.register_buffer('by', by)", LARGE, 2, 64, 2,
        128, 768, CAUSAL),
    row("magnitudes that differ from block to block", PACKED, SPLIT, 2, 64, 1, 320, 576, CAUSAL, "x[:, 64:192] *= 2.0 ** -9"),
    row("zeros in half of a block of keys, and V far below 1",
        PACKED.replace("{head})", "{head}, bias=False)") + "\n        self.qkv.weight.data[-128:] = self.qkv.weight.data[-128:].abs() * 1.5e-10", BELOW, 2,
        64, 2, 128, 768, changed="x = x.abs()\n    x[:, 64:] *= -1.0"),
    row("scores to which columns of the product are added", PACKED.replace("3 *", "4 *"), BESIDE, 2, 64, 2, 128, 768, "s = s + b"),
    row("out of range", PACKED, SPLIT, 2, 64, 2, 128, 768, "s = s * 1e-30", "x *= 1e12"),
)


def text(number):
    at = ROWS[number % len(ROWS)]
    inner = {key: value.format(**at) if key in ("layers", "forward", "mask", "changed") else value for key, value in at.items()}
    return TASK.format(number=number, **inner)


def main():
    out = pathlib.Path(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else len(ROWS)
    out.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (out / f"task{number:03d}.py").write_text(text(number))


main()
