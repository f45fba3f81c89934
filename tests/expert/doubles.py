"""Modules with float64 inside: where it begins, a chain of operators in it, where it ends.

    python3 tests/expert/doubles.py OUT_DIR [COUNT [SEED]]        COUNT 0: all of them
    python3 tests/expert/doubles.py --count

A module takes one way in, three steps and one way out, drawn by SEED; each way and each step comes up about equally often.
x is (rows, columns) and f64 after the way in; a step keeps that.
"""
import pathlib
import random
import sys

COUNT = 48
TASK = '''"""Module {number}: f64, {words}."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn({columns}, {columns}) * 0.3)
        self.register_buffer("table", torch.linspace(-1.0, 1.0, {columns}, dtype=torch.float64))
        self.gain = nn.Parameter(torch.rand({columns}, dtype=torch.float64) + 0.5)

    def forward(self, x, y, index):
{body}


def get_inputs():
    torch.manual_seed({number})
    return [{x}, torch.randn({rows}, {columns}), torch.randint(0, {rows}, ({rows},))]


def get_init_inputs():
    return []
'''
# name | x as it is given | statement
STARTS = """
an input in f64|torch.randn({rows}, {columns}, dtype=torch.float64)|pass
x.double()|torch.randn({rows}, {columns})|x = x.double()
.to(float64) of half|torch.randn({rows}, {columns}).half()|x = x.to(torch.float64)
a parameter in f64|torch.randn({rows}, {columns})|x = x * self.gain
a table in f64|torch.randn({rows}, {columns})|x = x + self.table
linspace in f64|torch.randn({rows}, {columns})|x = x * torch.linspace(0.25, 1.75, {columns}, dtype=torch.float64, device=x.device)
arange in f64|torch.randn({rows}, {columns})|x = x / torch.arange(1, {columns} + 1, dtype=torch.float64, device=x.device)
numbers from Python|torch.randn({rows}, {columns})|x = x - torch.tensor([0.1 * i for i in range({columns})], dtype=torch.float64, device=x.device)
whole numbers|torch.randint(-9, 9, ({rows}, {columns}))|x = x.double() / 7
a product in f32 before|torch.randn({rows}, {columns})|x = (x @ self.weight).double()
""".strip().splitlines()
# name | statement
STEPS = """
pointwise|x = torch.tanh(x) * 1.1 + 0.1 * x
exponentials|x = torch.log1p(torch.exp(-x.abs())) - 1 / 3
roots|x = torch.rsqrt(x * x + math.e)
a norm|x = (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-9)
a sum in f64|x = x + x.sum(0, dtype=torch.float64) / 10
a softmax|x = torch.softmax(x, dim=-1)
a logsumexp|x = x - torch.logsumexp(x, dim=1, keepdim=True)
extremes|x = x / (x.abs().amax(dim=1, keepdim=True) + 1)
a running sum|x = torch.cumsum(x, dim=1) * 0.2
a running product|x = torch.cumprod(1 + 0.01 * x, dim=0)
a running extreme|x = x - torch.cummax(x, dim=1)[0]
a running logsumexp|x = torch.logcumsumexp(x, dim=1)
a join|x = torch.cat([x, x.flip(1) * 0.5], dim=1)[:, {half}:{half} + {columns}]
a stack|x = torch.stack([x, y.double()], dim=0).amax(dim=0)
views|x = x.t().reshape({rows}, {columns}).roll(2, 1)
a comparison|x = torch.where(x > y, x, 0.5 * y.double())
a gather|x = x[index] + x
a gather by rows|x = torch.gather(x, 0, index[:, None].expand({rows}, {columns}))
index_add|x = x.index_add(0, index, x * 0.5)
a scatter|x = torch.scatter_reduce(x, 0, index[:, None].expand({rows}, {columns}).contiguous(), y.double(), "amax")
a sort|x = torch.sort(x, dim=1)[0]
top-k|x = x + torch.topk(x, 3, dim=1)[0].sum(1, keepdim=True)
a product|x = x @ self.weight.double()
a product of itself|x = torch.softmax(x @ x.t() / math.sqrt({columns}), dim=-1) @ x
batches of products|x = torch.einsum("ij,ik->jk", x, x)[:1].expand({rows}, {columns}) * 0.1 + x
a pool|x = F.avg_pool1d(x[:, None], 3, stride=1, padding=1)[:, 0]
the largest of a window|x = F.max_pool1d(x[:, None], 3, stride=1, padding=1)[:, 0]
a convolution|x = F.conv1d(x[:, None], self.gain[None, None, :3], padding=1)[:, 0]
layer_norm|x = F.layer_norm(x, ({columns},), self.gain)
gelu|x = F.gelu(x) + F.softplus(x)
special functions|x = torch.erf(x) + torch.lgamma(x.abs() + 1) + torch.digamma(x.abs() + 1)
rounded|x = x + torch.round(x * 8) / 8
clamped|x = x.clamp(-1.5, torch.pi)
whole numbers of it|x = x + torch.floor(x).long() % 3
in f32 for a while|x = x + torch.sin(x.float()).double()
interpolated|x = F.interpolate(x[:, None], size={columns} * 2, mode="linear")[:, 0, ::2]
padded|x = F.pad(x, (1, 1), mode="reflect")[:, 2:].add(F.pad(x, (2, 0), value=0.5)[:, :-2])
a small system|x = torch.linalg.solve(self.weight.double() + 4 * torch.eye({columns}, dtype=torch.float64, device=x.device), x.t()).t()
differences|x = F.pad(torch.diff(x, dim=1), (1, 0))
written in place|x = x.clone(); x[:, ::2] *= -1; x[0] = y[0]
""".strip().splitlines()
# name | statement
ENDS = """
as it is|return x
.float()|return x.float()
a mean as f32|return x.mean().float()
a loss|return F.mse_loss(x, y.double())
a loss of both types|return (x - y).abs().mean(), x.float().sum(1)
f64 and indices|return x, x.argmax(dim=1)
flags|return x > 0.25, x.to(torch.float16)
moments|return torch.var_mean(x, dim=0)
norms|return torch.linalg.vector_norm(x, dim=1), torch.linalg.vector_norm(x, ord=1)
added to f32|return y + x.mean(dim=1, keepdim=True).to(y.dtype)
""".strip().splitlines()


def drawn(rows, count, chance):
    """`count` of them, as equally often as can be."""
    made = []
    while len(made) < count:
        made += chance.sample(rows, len(rows))
    return [row.split("|") for row in made[:count]]


def modules(count, seed):
    chance = random.Random(seed)
    starts, ends, steps = drawn(STARTS, count, chance), drawn(ENDS, count, chance), drawn(STEPS, 3 * count, chance)
    for number in range(count):
        chain = steps[3 * number : 3 * number + 3]
        sizes = {"rows": chance.randint(5, 12), "columns": chance.randint(7, 40)}
        sizes["half"] = sizes["columns"] // 2
        lines = [starts[number][2], *(text for _, text in chain), ends[number][1]]
        body = "\n".join(f"        {line.format(**sizes)}" for line in lines if line != "pass")
        words = ", ".join([starts[number][0], *(name for name, _ in chain), ends[number][0]])
        yield TASK.format(number=number, words=words, body=body, x=starts[number][1].format(**sizes), **sizes)


def main():
    if sys.argv[1:2] == ["--count"]:
        print(COUNT)
        return
    if not sys.argv[1:] or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    out, count, seed = pathlib.Path(sys.argv[1]), int((sys.argv[2:3] or ["0"])[0]), int((sys.argv[3:4] or ["1"])[0])
    out.mkdir(parents=True, exist_ok=True)
    for number, text in enumerate(modules(count or COUNT, seed)):
        (out / f"task{number:03d}.py").write_text(text)


if __name__ == "__main__":
    main()
