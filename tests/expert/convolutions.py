"""Random convolutions for the built-in engineer: every form, sizes that are often odd, operators behind them.

    python3 tests/expert/convolutions.py OUT_DIR [COUNT [SEED]]

The same seed gives the same files, whatever the Python. Most are large enough for tensor cores; some are not.
CHAINS=1: chains of three to six operators behind each, with norms, pools, means and softmax at their ends.
DEEP=1: many channels, small images, so that several blocks share the terms of a result.
LAST=1: two or three dimensions, 16 bits, one group; x, weights and results lie channels last. LAST=many: many images, so
that tiles are large.
"""
import os
import pathlib
import random
import sys

TASK = '''"""Generated task {number}: {kind}."""
import torch
import torch.nn as nn
import torch.nn.functional as F

SCALE = 1
{keeps}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = {module}
        self.gain = nn.Parameter(torch.randn({gain}){to})
        self.norm = nn.BatchNorm{dims}d({outer}){to}.eval()

    def forward(self, {arguments}):
        y = self.conv(x)
{before}        return {result}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
'''

BEHIND = (
    "y;F.relu(y);torch.sigmoid(y)*y;F.gelu(y+self.gain);y*self.gain;torch.clamp(y*2,-1,1)+0.25;F.leaky_relu(y,0.1)-self.gain;"
    "torch.tanh(y)*self.gain+1;F.hardswish(y);F.relu(self.norm(y));self.norm(y)"
).split(";")
BESIDE = ["y+r", "F.relu(y+r)*self.gain", "torch.maximum(y,r)"]  # r: another input

LINKS = (
    "self.norm(y);F.relu(y);F.silu(y);F.gelu(y);torch.sigmoid(y);F.hardswish(y);torch.clamp(y,-2,2);y*self.gain;y+self.gain;"
    "y*0.5;y-1;torch.tanh(y);F.leaky_relu(y,0.2)"
).split(";")
ENDS = (
    "y;y;y.mean({all});F.softmax(y,1);torch.logsumexp(y,1,keepdim=True);F.group_norm(y,{groups});F.max_pool{dims}d(y,2);"
    "F.avg_pool{dims}d(y,2);y.mean(1,keepdim=True);F.instance_norm(y)"
).split(";")


def chain(rng, result):
    """Lines between the convolution and the last operator, and that operator."""
    dims = len(result) - 2
    links = [rng.choice(LINKS) for _ in range(rng.randrange(2, 6))]
    end = rng.choice(ENDS).format(all=tuple(range(2, dims + 2)), dims=dims, groups=2 - result[1] % 2)
    if min(result[2:]) < 2 and ("pool" in end or "instance" in end):
        end = "y"
    return "".join(f"        y = {link}\n" for link in links), end


def form(rng):
    """Dimensions, transposed, channels and groups."""
    dims = rng.choice([1, 2, 2, 2, 3])
    kind = rng.choice(["plain", "plain", "plain", "few", "grouped", "depthwise", "transposed", "transposed"])
    if os.environ.get("LAST"):
        many = os.environ["LAST"] == "many"
        inner, outer = ([16, 24, 40], [16, 48, 72]) if many else ([16, 24, 64, 72, 128], [16, 48, 64, 136])
        return rng.choice([2, 2, 3]), rng.choice(["plain", "plain", "transposed"]), rng.choice(inner), rng.choice(outer), 1
    if os.environ.get("DEEP"):
        return dims, rng.choice(["plain", "plain", "transposed"]), rng.choice([96, 130, 192, 256, 330]), rng.choice([40, 64, 72, 128, 200]), 1
    inner = rng.choice([16, 24, 32, 33, 40, 48, 64, 70])
    outer = rng.choice([16, 20, 32, 48, 64, 72, 130])
    groups = 1
    if kind == "few":
        inner = rng.randrange(1, 9)
    elif kind == "grouped" or (kind == "transposed" and rng.random() < 0.3):
        groups = rng.choice([2, 3, 4])
        inner, outer = groups * rng.choice([8, 12, 16]), groups * rng.choice([8, 10, 16])
    elif kind == "depthwise":
        inner = groups = rng.randrange(2, 9)
        outer = inner * rng.choice([1, 1, 2])
    return dims, kind, inner, outer, groups


def convolution(rng):
    dims, kind, inner, outer, groups = form(rng)
    plain = kind == "depthwise" and rng.random() < 0.6
    most = {1: 7, 2: 4, 3: 3}[dims]
    taps = [rng.randrange(1, most + 1) for _ in range(dims)]
    stride = [1 if plain or rng.random() < 0.6 else rng.randrange(2, 4) for _ in range(dims)]
    dilation = [1 if plain or rng.random() < 0.7 else rng.randrange(2, 4) for _ in range(dims)]
    pad = [rng.randrange(0, k) for k in taps]
    if kind == "transposed":
        pad = [min(p, d * (k - 1)) for p, d, k in zip(pad, dilation, taps)]
    side = {1: (60, 300), 2: (6, 20), 3: (4, 8)}[dims]
    if os.environ.get("DEEP"):
        stride = [1 if kind == "transposed" else s for s in stride]
        taps = [max(t, 5 - dims) for t in taps]
        side = {1: (20, 80), 2: (4, 10), 3: (2, 5)}[dims]
    sides = [d * (k - 1) + 1 + rng.randrange(*side) for k, d in zip(taps, dilation)]
    if plain:
        sides[-1] += -sides[-1] % 4  # whole vectors
    words = f"{inner}, {outer}, {taps}, stride={stride}, padding={pad}, dilation={dilation}, groups={groups}"
    words += f", bias={rng.random() < 0.6}"
    span = [d * (k - 1) + 1 for d, k in zip(dilation, taps)]
    name = "Conv"
    if kind == "transposed":
        more = [rng.randrange(s) for s in stride]
        name, words = "ConvTranspose", f"{words}, output_padding={more}"
        sizes = [(i - 1) * s - 2 * p + e + m for i, s, p, e, m in zip(sides, stride, pad, span, more)]
    else:
        sizes = [(i + 2 * p - e) // s + 1 for i, s, p, e in zip(sides, stride, pad, span)]
    batch = rng.randrange(1, 3) if os.environ.get("LAST") != "many" else rng.randrange(30, 70)
    return f"{kind} {dims}-D", f"nn.{name}{dims}d({words})", [batch, inner, *sides], [batch, outer, *sizes]


def main():
    out = pathlib.Path(sys.argv[1])
    count, seed = (int(word) for word in (sys.argv[2:] + ["200", "1"][len(sys.argv) - 2 :])[:2])
    out.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        rng = random.Random(seed * 1000 + number)
        kind, module, shape, result = convolution(rng)
        dtype = rng.choice(["float32", "float32", "float32", "bfloat16", "float16"])
        last = f".to(memory_format=torch.channels_last{'_3d' * (len(shape) - 4)})" if os.environ.get("LAST") else ""
        dtype = rng.choice(["bfloat16", "float16"]) if last else dtype
        to = "" if dtype == "float32" else f".to(torch.{dtype})"
        before, behind = "", rng.choice(BEHIND + BESIDE)
        if os.environ.get("CHAINS"):
            before, behind = chain(rng, result)
        inputs = [f"torch.randn({', '.join(map(str, shape))}){to}{last}"]
        if behind in BESIDE:
            inputs.append(f"torch.randn({', '.join(map(str, result))}){to}{last}")
        text = TASK.format(
            number=number,
            kind=f"{kind}, {dtype}, {'; '.join(before.split(chr(10) + ' ' * 8)).strip()} {behind}".replace("  ", " "),
            module=module + to + ("" if rng.random() < 0.3 else last),
            keeps="KEEP_STRIDES = True\n" if last else "",
            gain=", ".join(["1", str(result[1]), *["1"] * (len(result) - 2)]),
            to=to,
            dims=len(result) - 2,
            outer=result[1],
            before=before,
            arguments="x: torch.Tensor" + (", r: torch.Tensor" if len(inputs) > 1 else ""),
            result=behind,
            inputs=", ".join(inputs),
        )
        (out / f"task{number:03d}.py").write_text(text)


main()
