"""Convolutions behind convolutions for the built-in engineer: what one launch prepares for all, what each says of its result.

    python3 tests/expert/conv_layers.py OUT_DIR [COUNT [SEED]]

A row is what it is, its layers, what forward returns, its input's shape and dtype, and what is changed in the input. The
seed changes nothing.
"""
import pathlib
import sys

TASK = '''"""Layers {number}: {words}."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {layers}
        self.eval(){to}

    def forward(self, x):
        {forward}


def get_inputs():
    x = torch.randn({shape}){to}
    {changed}
    return [x]


def get_init_inputs():
    return []
'''

CHAIN = "self.a, self.b, self.c = nn.Conv2d(16, 24, 3, 1, 1), nn.Conv2d(24, 32, 3, 2, 1), nn.Conv2d(32, 96, 1)"
BLOCK = (
    "self.a, self.b, self.c, self.s = nn.Conv2d(16, 32, 3, 1, 1), nn.Conv2d(32, 64, 3, 2, 1), nn.Conv2d(64, 64, 3, 1, 1), nn.Conv2d(32, 64, 1, 2)\n"
    "        self.n, self.m, self.top = nn.BatchNorm2d(64), nn.BatchNorm2d(64), nn.Parameter(torch.randn(1, 32, 1, 1))"
)
FORWARD = "return self.c(F.silu(self.b(F.relu(self.a(x)))))"
NUMBERS = "return torch.nan_to_num(self.c(F.silu(self.b(F.relu(self.a(x))))), 7.0, 8.0, -8.0)"
RESIDUAL = "x = F.relu(self.a(x) + self.top)\n        return F.relu(self.m(self.c(F.relu(self.n(self.b(x))))) + self.s(x))"

ROWS = (
    ("plain, strided, of one tap", CHAIN, FORWARD, "2, 16, 13, 13", "", "pass"),
    ("a residual block, whose shortcut reads the same result", BLOCK, RESIDUAL, "2, 16, 18, 18", "", "pass"),
    (
        "small images, whose terms are divided among blocks",
        "self.a, self.b = nn.Conv2d(192, 160, 3, 1, 1), nn.Conv2d(160, 192, 3, 1, 1)",
        "return self.b(F.relu(self.a(x))) + x",
        "2, 192, 5, 5",
        "",
        "pass",
    ),
    (
        "more weights than one launch takes",
        "self.all = nn.ModuleList(nn.Conv2d(32, 32, 3, 1, 1) for _ in range(29))",
        "for conv in self.all:\n            x = x + F.relu(conv(x))\n        return x",
        "1, 32, 20, 20",
        "",
        "pass",
    ),
    (
        "a maximum over windows between",
        "self.a, self.b = nn.Conv2d(16, 32, 3, 1, 1), nn.Conv2d(32, 32, 3, 1, 1)",
        "return self.b(F.max_pool2d(self.a(x), 3, 2, 1))",
        "2, 16, 24, 24",
        "",
        "pass",
    ),
    ("infinity in x", CHAIN, NUMBERS, "2, 16, 13, 13", "", "x[0, 3, 4, 5] = float('inf')"),
    ("NaN in x", CHAIN, NUMBERS, "2, 16, 13, 13", "", "x[1, 3, 4, 5] = float('nan')"),
    (
        "infinity in a result, and none in x",
        CHAIN,
        "y = F.relu(self.a(x))\n        y = F.relu(self.b(torch.where(y > 2.2, y * float('inf'), y)))\n        return torch.nan_to_num(self.c(y), 7.0, 8.0, -8.0)",
        "2, 16, 13, 13",
        "",
        "pass",
    ),
    (
        "a result out of range, and none of it in x",
        CHAIN,
        "return self.c(F.relu(self.b(F.relu(self.a(x)) * 1e25)) * 1e-20)",
        "2, 16, 13, 13",
        "",
        "pass",
    ),
    (
        "results far below those of the call before",
        CHAIN,
        "return self.c(F.relu(self.b(self.a(x * 1e-12))) * 1e9)",
        "2, 16, 13, 13",
        "",
        "pass",
    ),
    ("in fp16", CHAIN, FORWARD, "2, 16, 13, 13", ".half()", "pass"),
    (
        "depthwise between, and strided depthwise",
        "self.a, self.d, self.b = nn.Conv2d(16, 32, 3, 1, 1), nn.Conv2d(32, 32, 3, 1, 1, groups=32), nn.Conv2d(32, 64, 3, 1, 1)\n"
        "        self.e, self.c = nn.Conv2d(64, 64, 3, 2, 1, groups=64), nn.Conv2d(64, 32, 3, 1, 1)",
        "return self.c(F.relu6(self.e(F.relu6(self.b(F.relu6(self.d(self.a(x))))))))",
        "2, 16, 12, 12",
        "",
        "pass",
    ),
    (
        "of one tap on whole vectors, stores by TMA",
        "self.a, self.b, self.c = nn.Conv2d(16, 40, 1), nn.Conv2d(40, 24, 3, 1, 1), nn.Conv2d(24, 32, 3, 1, 1)",
        "return self.c(self.b(F.relu(self.a(x))))",
        "1, 16, 16, 128",
        "",
        "pass",
    ),
    (
        "odd channels and sizes, two strides, dilated, a shortcut",
        "self.a, self.b, self.c, self.s = nn.Conv2d(16, 27, 3, 1, 1), nn.Conv2d(27, 41, 3, (2, 3), 1), nn.Conv2d(41, 41, 3, 1, 2, 2), nn.Conv2d(27, 41, 1, (2, 3))\n"
        "        self.n, self.d = nn.BatchNorm2d(41), nn.Conv2d(41, 24, (3, 1))",
        "x = F.relu(self.a(x))\n        return self.d(F.relu(self.n(self.c(F.silu(self.b(x)))) + self.s(x)))",
        "3, 16, 17, 14",
        "",
        "pass",
    ),
    (
        "shared sums and residual sums",
        "self.all = nn.ModuleList(nn.Conv2d(160, 160, 3, 1, 1) for _ in range(4))\n        for conv in self.all:\n            conv.weight.data *= 2.0",
        "y = F.relu(self.all[0](x))\n        y = F.relu(self.all[2](F.relu(self.all[1](y))) + y)\n        return self.all[3](y)",
        "2, 160, 5, 7",
        "",
        "pass",
    ),
    (
        "weights of zeros, results of wide range",
        "self.a, self.b, self.c, self.d = nn.Conv2d(16, 24, 3, 1, 1, bias=False), nn.Conv2d(24, 24, 3, 1, 1), nn.Conv2d(24, 32, 3, 1, 1), nn.Conv2d(32, 24, 3, 1, 1)\n"
        "        self.a.weight.data *= torch.logspace(-6, 0, 24).reshape(-1, 1, 1, 1)\n        self.a.weight.data[5:9] = 0.0\n        self.c.weight.data.zero_()",
        "y = F.relu(self.b(F.relu(self.a(x))))\n        return self.d(self.c(y)) + y",
        "2, 16, 13, 13",
        "",
        "pass",
    ),
    (
        "three dimensions, stores by TMA",
        "self.a, self.b, self.c = nn.Conv3d(16, 24, (1, 3, 3), 1, (0, 1, 1)), nn.Conv3d(24, 20, 3, (1, 2, 1), 1), nn.Conv3d(20, 32, (1, 1, 3))",
        "return self.c(torch.tanh(self.b(F.gelu(self.a(x)))))",
        "1, 16, 3, 4, 132",
        "",
        "pass",
    ),
    (
        "transposed, and rows longer than a tile",
        "self.a, self.b, self.c = nn.Conv1d(16, 24, 3, 1, 1), nn.ConvTranspose1d(24, 16, 4, 2, 1), nn.Conv1d(16, 24, 3)",
        "return self.c(torch.tanh(self.b(F.relu(self.a(x)))))",
        "2, 16, 531",
        "",
        "pass",
    ),
)


def main():
    out = pathlib.Path(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else len(ROWS)
    out.mkdir(parents=True, exist_ok=True)
    for number, (words, layers, forward, shape, to, changed) in enumerate(ROWS[:count]):
        text = TASK.format(number=number, words=words, layers=layers, forward=forward, shape=shape, to=to, changed=changed)
        (out / f"task{number:03d}.py").write_text(text.replace("    pass\n", ""))


main()
