"""Generated attentions for the built-in engineer: every one must be recognized and be right.

    python3 tests/expert/attentions.py OUT_DIR [COUNT [SEED]]

Written out in the orders people write it, and as PyTorch's operator; with masks, biases, windows, slopes, lengths, shared
heads, packed, projected and transposed operands, rotations and norms of Q and K, other functions than the softmax, few
queries with many keys, keys in pages, and sizes that are odd. WRITTEN=1: only written out, which every PyTorch has;
KINDS="relu paged": only these. BACKWARD=1: gradients of the operator. WIDE=1: the operator with heads that are products and
a softmax (match/attention_products.c). The same seed gives the same files, whatever the Python.
"""
import os
import pathlib
import sys

TASK = '''"""Attention {number}: {words}."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

SCALE = 1
{backward}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
{init}        self.eval()

    def forward(self, {arguments}):
{body}        return {result}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
'''
DTYPES = {"f16": "torch.float16", "bf16": "torch.bfloat16", "f32": "torch.float32"}


class Draw:
    """Numbers that are the same in every Python."""

    def __init__(self, seed):
        self.state = seed * 2654435761 % 2**32 or 1

    def below(self, n):
        self.state = (self.state * 1664525 + 1013904223) % 2**32
        return (self.state >> 8) % n

    def pick(self, items):
        return items[self.below(len(items))]


def operands(d, dtype, batch, heads, shared, queries, keys, head, head_v, layout):
    """Arguments, inputs and the statements that give q, k and v as (batch, heads, rows, columns)."""
    if layout == "projected":
        width = head * heads
        body = [f"q, k, v = self.project(x).split({width}, dim=2)"]
        body += [f"{n} = {n}.view({batch}, {queries}, {heads}, {head}).transpose(1, 2)" for n in "qkv"]
        return ["x"], [f"torch.randn({batch}, {queries}, 32).to({dtype})"], body
    if layout == "paged":
        body = [f"{n} = {n}[table].reshape({batch}, {keys}, {shared}, {w}).transpose(1, 2)" for n, w in (("k", head), ("v", head_v))]
        pages = batch * keys // 16
        inputs = [f"torch.randn({batch}, {heads}, {queries}, {head}).to({dtype})"]
        inputs += [f"torch.randn({pages + 3}, 16, {shared}, {w}).to({dtype})" for w in (head, head_v)]
        return ["q", "k", "v", "table"], inputs + [f"torch.randperm({pages + 3})[:{pages}].reshape({batch}, {keys // 16})"], body
    if layout == "picture":
        inputs = [f"torch.randn({batch}, {heads * w}, {queries // 8}, 8).to({dtype})" for w in (head, head, head_v)]
        body = [f"{n} = {n}.reshape({batch}, {heads}, {w}, {queries}).transpose(2, 3)" for n, w in zip("qkv", (head, head, head_v))]
        return list("qkv"), inputs, body
    if layout == "packed":
        width = head * heads
        body = [f"q, k, v = x.split({width}, dim=2)"]
        body += [f"{n} = {n}.view({batch}, {queries}, {heads}, {head}).transpose(1, 2)" for n in "qkv"]
        return ["x"], [f"torch.randn({batch}, {queries}, {3 * width}).to({dtype})"], body
    shapes = {"q": (heads, queries, head), "k": (shared, keys, head), "v": (shared, keys, head_v)}
    inputs, body = [], []
    for name, (h, rows, columns) in shapes.items():
        if layout == "rows":
            inputs.append(f"torch.randn({batch}, {rows}, {h}, {columns}).to({dtype})")
            body.append(f"{name} = {name}.{d.pick(['transpose(1, 2)', 'permute(0, 2, 1, 3)'])}")
        else:
            inputs.append(f"torch.randn({batch}, {h}, {rows}, {columns}).to({dtype})")
    return list("qkv"), inputs, body


KINDS = ["none", "relu", "causal", "window", "bool", "alibi", "added", "lengths", "padding", "relative", "buffer", "rope",
         "lowest", "norm", "softcap", "decode", "bias", "paged", "none", "projected", "causal", "gate"]
# behind the first 132: a bias added by baddbmm, the softmax by hand or without its maximum, V P^T, masks of fewer dimensions,
# pictures whose pixels are rows, a mask that is computed and given by name, scores whose roundoff is more than 1
MORE = ["baddbmm", "hand", "turned", "prefix", "picture", "named", "large"]
FIRST_MORE = 132
WEIGHTS = ["F.relu(s)", "torch.sigmoid(s)", "F.relu(s).square()", "F.relu(s) * 0.125", "F.silu(s)"]
PLACES = ["i = torch.arange({queries})[:, None]", "j = torch.arange({keys})[None, :]"]


def before(kind, batch, heads, queries, keys, head):
    """Statements that change Q and K before their product, and what they need."""
    if kind == "rope":
        init = [f'self.register_buffer("{n}{x}", torch.randn({size}, {head}))' for n in ("cos", "sin")
                for x, size in (("q", queries), ("k", keys))]
        half = head // 2
        return init, [f"{x} = ({x} * self.cos{x} + torch.cat([-{x}[..., {half}:], {x}[..., :{half}]], -1) * self.sin{x}).type_as({x})" for x in "qk"]
    if kind == "norm":
        return [], [f"{x} = {x} * torch.rsqrt({x}.float().pow(2).mean(-1, keepdim=True) + 1e-6).type_as({x})" for x in "qk"]
    return [], []


def beside(kind, batch, heads, queries, keys):
    """Statements that compute places of queries and keys."""
    places = [line.format(queries=queries, keys=keys) for line in PLACES]
    if kind == "prefix":
        seen = "(i >= j)[None] & (j[None] < lengths[:, None, None])"
        inputs = ["torch.tensor([" + ", ".join(str(keys - 5 - 3 * b) for b in range(batch)) + "])"]
        return ["lengths"], inputs, [], places + [f"seen = {seen}", "s = torch.where(seen[:, None], s, torch.full((), -10000.0, dtype=s.dtype))"]
    if kind == "window":
        return [], [], [], places + ["s = s.masked_fill((i - j > 20) | (j - i > 9), -10000.0)"]
    if kind == "alibi":
        init = [f'self.register_buffer("slopes", 2.0 ** -torch.arange(1, {heads + 1}).float())']
        return [], [], init, places + ["s = s + (self.slopes[:, None, None] * (j - i)).to(s.dtype)"]
    if kind in ("lengths", "paged"):
        inputs = ["torch.tensor([" + ", ".join(str(keys - 5 - 3 * b) for b in range(batch)) + "])"]
        return ["lengths"], inputs, [], [f"s = s.masked_fill(torch.arange({keys})[None, None, None, :] >= lengths[:, None, None, None], -10000.0)"]
    if kind == "relative":
        init = [f"self.table = nn.Parameter(torch.randn({queries + keys}, {heads}))"]
        return [], [], init, places + [f"s = s + self.table[j - i + {queries}].permute(2, 0, 1).to(s.dtype)"]
    return [], [], [], []


def written(d, kind, batch, heads, shared, queries, keys, head):
    """Scores and weights, in one of the orders in which they are written."""
    init, body = before(kind, batch, heads, queries, keys, head)
    if shared != heads:  # repeat_interleave, in operators that every PyTorch has
        body += [f"{n} = {n}.unsqueeze(2).expand(-1, -1, {heads // shared}, -1, -1).reshape({batch}, {heads}, {keys}, -1)" for n in "kv"]
    where, root = d.pick(["scores", "divided", "query", "both"]), head ** -0.5
    query = {"query": f"(q * {root!r})", "both": f"(q * {head ** -0.25!r})"}.get(where, "q")
    key = f"(k * {head ** -0.25!r})" if where == "both" else "k"
    if kind == "baddbmm":
        flat = [f"{n}.reshape({batch * heads}, {r}, {head})" for n, r in (("q", queries), ("k", keys))]
        body += [f"b = bias.expand({batch}, {heads}, {queries}, {keys}).reshape({batch * heads}, {queries}, {keys}).to(q.dtype)",
                 f"s = torch.baddbmm(b, {flat[0]}, {flat[1]}.transpose(1, 2), beta={d.pick([1.0, 0.5])}, alpha={root!r})",
                 f"s = s.view({batch}, {heads}, {queries}, {keys})", "o = F.softmax(s, dim=-1) @ v"]
        return ["bias"], [f"torch.randn({heads}, {queries}, {keys})"], init, body
    body.append(f"s = {query} @ {key}.{d.pick(['transpose(-2, -1)', 'transpose(2, 3)', 'mT'])}")
    scale = {"scores": f"s = s * {root!r}", "divided": f"s = s / math.sqrt({head})"}.get(where)
    if scale:
        body.append(scale)
    arguments, inputs, more, rest = beside(kind, batch, heads, queries, keys)
    init, body = init + more, body + rest
    if kind == "causal":
        body += [f"s = s.masked_fill(torch.triu(torch.ones({queries}, {keys}), 1).bool(), float('-inf'))"]
    elif kind == "bool":
        arguments, inputs = ["mask"], [f"torch.rand({batch}, 1, {queries}, {keys}) > 0.3"]
        body.append("s = torch.where(mask, s, torch.full_like(s, -1e4))")
    elif kind == "added":
        arguments, inputs = ["mask"], [f"torch.randn({queries}, {keys})"]
        body.append("s = s + mask.to(s.dtype)")
    elif kind == "padding":
        arguments, inputs = ["mask"], [f"torch.rand({batch}, {keys}) > 0.4"]
        body.append("s = s.masked_fill(mask[:, None, None, :], -10000.0)")
    elif kind == "buffer":
        init.append(f'self.register_buffer("seen", torch.tril(torch.ones({queries + 3}, {keys + 5})).view(1, 1, {queries + 3}, {keys + 5}))')
        body.append(f"s = s.masked_fill(self.seen[:, :, :{queries}, :{keys}] == 0, float('-inf'))")
    elif kind == "lowest":
        arguments, inputs = ["mask"], [f"torch.rand({batch}, 1, 1, {keys}) > 0.5"]
        body.append("s = s + (1.0 - mask.to(s.dtype)) * -30000.0")
    elif kind == "softcap":
        body.append("s = 5.0 * torch.tanh(s / 5.0)")
    elif kind == "bias":
        init.append(f"self.table = nn.Parameter(torch.randn({heads}, {queries}, {keys}))")
        body.append("s = s + self.table[None].to(s.dtype)")
    if kind == "relu":
        body.append(f"p = {d.pick(WEIGHTS)}")
        body.append("o = p @ v")
        return arguments, inputs, init, body
    if kind == "hand":
        if d.below(3):
            body += [f"e = torch.exp(s - s.{d.pick(['amax(-1, keepdim=True)', 'max(dim=-1, keepdim=True).values'])})",
                     "o = (e / e.sum(dim=-1, keepdim=True)) @ v"]
        else:
            body.append("o = (s - s.amax(dim=-1, keepdim=True).detach()).softmax(dim=-1) @ v")
        return arguments, inputs, init, body
    if kind in ("turned", "picture"):
        body += ["p = F.softmax(s, dim=-1)", "o = (v.transpose(-2, -1) @ p.transpose(-2, -1)).transpose(-2, -1)"]
        return arguments, inputs, init, body
    body.append(d.pick(["p = F.softmax(s, dim=-1)", "p = torch.softmax(s, 3)", "p = F.softmax(s.float(), dim=-1).type_as(q)",
                        "p = F.dropout(F.softmax(s, dim=-1), 0.0)"]))
    body.append("o = p @ v")
    if kind == "gate":
        arguments, inputs = ["gate"], [f"torch.randn({batch}, {heads}, {queries}, 1)"]
        body.append("o = o * torch.sigmoid(gate).type_as(o)")
    return arguments, inputs, init, body


WHOLE = ["none", "causal", "bool", "added", "padding", "lowest", "softcap", "bias", "decode"]


def fused(kind, batch, heads, shared, queries, keys, head):
    arguments, inputs, body, more = [], [], [], ""
    if kind == "causal":
        more = ", is_causal=True"
    elif kind in ("bool", "padding"):
        shape = f"{batch}, 1, {queries}, {keys}" if kind == "bool" else f"{batch}, 1, 1, {keys}"
        arguments, inputs, more = ["mask"], [f"torch.rand({shape}) > 0.3"], ", attn_mask=mask"
    elif kind in ("added", "bias", "lowest"):
        arguments, inputs, more = ["mask"], [f"torch.randn({heads}, {queries}, {keys})"], ", attn_mask=mask.to(q.dtype)"
    elif kind == "softcap":
        more = ", scale=0.25"
    elif kind == "named":
        arguments, inputs, more = ["mask"], [f"torch.rand({batch}, {keys}) > 0.3"], ", attn_mask=m[:, None, None, :].expand(-1, q.shape[1], -1, -1)"
        body.append("m = torch.zeros_like(mask, dtype=q.dtype).masked_fill_(mask, -10000.0)")
    if shared != heads:
        more += ", enable_gqa=True"
    body.append(f"o = F.scaled_dot_product_attention(q, k, v{more})")
    return arguments, inputs, [], body


WIDE = ["none", "causal", "bool", "softcap", "added", "unseen", "causal", "padding", "bias"]


def wide(number, seed):
    """Heads beyond those of any tile."""
    d = Draw(seed * 1009 + number * 7919 + 17)
    for _ in range(4):
        d.below(7)
    dtype, kind = ["f32", "f16", "bf16"][number % 3], WIDE[number // 3 % len(WIDE)]
    batch, heads = 1 + d.below(2), d.pick([1, 2, 4])
    shared = d.pick([heads, heads, 1])
    queries, keys = d.pick([40, 64, 100, 129]), d.pick([64, 96, 141, 200])
    head = d.pick([320, 512, 1024])
    head_v = d.pick([head, head, 64, 264])
    layout = d.pick(["heads", "heads", "rows"])
    names, inputs, body = operands(d, DTYPES[dtype], batch, heads, shared, queries, keys, head, head_v, layout)
    more, drawn, _, rest = fused("bool" if kind == "unseen" else kind, batch, heads, shared, queries, keys, head)
    if kind == "unseen":  # some queries see no key at all
        body.append(f"mask = mask & (torch.arange({queries}) % 3 > 0)[:, None]")
    words = f"{dtype} operator, wide, {kind}, {layout}, {batch}x{heads}/{shared} heads, {queries}x{keys} of {head}/{head_v}"
    return TASK.format(number=number, words=words, backward="", init="", arguments=", ".join(names + more),
                       body="".join(f"        {line}\n" for line in body + rest), result="o", inputs=", ".join(inputs + drawn))


def task(number, seed):
    if os.environ.get("WIDE"):
        return wide(number, seed)
    d = Draw(seed * 1009 + number * 7919 + 17)
    for _ in range(4):
        d.below(7)
    dtype = ["f32", "f16", "bf16"][number % 3]
    batch, heads = 1 + d.below(2), d.pick([1, 2, 3, 4])
    shared = d.pick([heads, heads, heads, 1, 2]) if heads % 2 == 0 else heads
    queries, keys = d.pick([1, 17, 33, 64, 70, 100, 129]), d.pick([16, 33, 64, 77, 128, 141, 160])
    head = d.pick([8, 16, 32, 32, 40, 64, 64, 80, 96, 128])
    head_v = d.pick([head, head, head, 32, 48])
    layout = d.pick(["heads", "heads", "rows", "rows", "packed"])
    more = number >= FIRST_MORE and not os.environ.get("BACKWARD")
    kinds = os.environ.get("KINDS", "").split() or (MORE if more else KINDS)
    kind, whole = kinds[number // 3 % len(kinds)], d.below(2) == 0
    if kind in ("decode", "paged"):
        queries, keys = d.pick([1, 1, 2]), d.pick([256, 400, 608])
        layout = "paged" if kind == "paged" else d.pick(["heads", "rows"])
    if kind == "projected":
        layout, head = kind, d.pick([8, 16, 32])
    if kind == "large":
        layout = "heads"
    if kind == "picture":
        layout, queries, whole = kind, d.pick([64, 72, 136]), False
    if layout in ("packed", "projected", "picture"):
        keys, shared, head_v = queries, heads, head
    if kind in ("causal", "buffer") and d.below(3):
        keys = queries if layout == "packed" or queries > 1 else keys
    gradients = bool(os.environ.get("BACKWARD"))
    if kind == "gate" or gradients:
        head_v = head
    if gradients:
        kind, layout = ["none", "causal", "softcap"][number // 3 % 3], "rows" if layout == "packed" else layout
    names, inputs, body = operands(d, DTYPES[dtype], batch, heads, shared, queries, keys, head, head_v, layout)
    if kind == "large":  # of 16 bits, products of 16 bits must stay finite
        inputs[:2] = [f"{x} * {20000 if dtype == 'f32' else 4}" for x in inputs[:2]]
    operator = kind == "named" or not os.environ.get("WRITTEN") and kind in WHOLE and d.below(2) == 0 or gradients
    sizes = (batch, heads, shared, queries, keys, head)
    more, drawn, init, rest = fused(kind, *sizes) if operator else written(d, kind, *sizes)
    if kind == "projected":
        init = [f"self.project = nn.Linear(32, {3 * heads * head}).to({DTYPES[dtype]})"] + init
    result = f"o.transpose(1, 2).reshape({batch}, {queries}, {heads * head_v})" if whole else "o"
    words = f"{dtype} {'operator' if operator else 'written out'}, {kind}, {layout}, {batch}x{heads}/{shared} heads, {queries}x{keys} of {head}/{head_v}"
    return TASK.format(number=number, words=words, backward="BACKWARD = True\n" if gradients else "", init="".join(f"        {line}\n" for line in init),
                       arguments=", ".join(names + more), body="".join(f"        {line}\n" for line in body + rest),
                       result=result, inputs=", ".join(inputs + drawn))


def main():
    out = pathlib.Path(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 120
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    out.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (out / f"task{number:03d}.py").write_text(task(number, seed))


main()
