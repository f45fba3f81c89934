"""Small networks for the built-in engineer, in the styles people write them: at reduced sizes, in inference mode.

    python3 tests/expert/networks.py OUT_DIR [COUNT [SEED]]        COUNT 0: all of them, in order; else shuffled by SEED
    python3 tests/expert/networks.py --count
    NETWORKS="lstm gru" python3 tests/expert/networks.py OUT_DIR   these alone

A row of NETWORKS (networks_more.py has more) is a name, its inputs and the class `Net`; BLOCKS are what several of them are made of.
"""
import os
import pathlib
import random
import sys

import networks_more

TASK = '''"""Network {number}: {name}: {words}."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

{blocks}
{net}

class Model(Net):
    def __init__(self):
        super().__init__()
        self.eval()


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
'''

BLOCKS = {
    "cbr": '''def cbr(i, o, k=3, s=1, g=1, act=nn.ReLU):
    return nn.Sequential(nn.Conv2d(i, o, k, s, k // 2, groups=g, bias=False), nn.BatchNorm2d(o), act())
''',
    "Basic": '''class Basic(nn.Module):
    def __init__(self, i, o, s=1):
        super().__init__()
        self.a, self.b = cbr(i, o, s=s), nn.Sequential(nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o))
        self.short = nn.Sequential(nn.Conv2d(i, o, 1, s, bias=False), nn.BatchNorm2d(o)) if s > 1 or i != o else None

    def forward(self, x):
        return F.relu(self.b(self.a(x)) + (x if self.short is None else self.short(x)))
''',
    "Bottle": '''class Bottle(nn.Module):
    def __init__(self, i, m, o, s=1):
        super().__init__()
        self.a, self.b = cbr(i, m, 1), cbr(m, m, 3, s)
        self.c = nn.Sequential(nn.Conv2d(m, o, 1, bias=False), nn.BatchNorm2d(o))
        self.short = nn.Sequential(nn.Conv2d(i, o, 1, s, bias=False), nn.BatchNorm2d(o))

    def forward(self, x):
        return F.relu(self.c(self.b(self.a(x))) + self.short(x))
''',
    "Inverted": '''class Inverted(nn.Module):
    def __init__(self, i, o, s=1, e=2, squeeze=False):
        super().__init__()
        m = i * e
        self.a, self.b = cbr(i, m, 1, act=nn.ReLU6), cbr(m, m, 3, s, g=m, act=nn.ReLU6)
        self.c = nn.Sequential(nn.Conv2d(m, o, 1, bias=False), nn.BatchNorm2d(o))
        self.s1, self.s2 = (nn.Conv2d(m, 4, 1), nn.Conv2d(4, m, 1)) if squeeze else (None, None)
        self.same = s == 1 and i == o

    def forward(self, x):
        y = self.b(self.a(x))
        if self.s1 is not None:
            y = y * torch.sigmoid(self.s2(F.relu(self.s1(F.adaptive_avg_pool2d(y, 1)))))
        y = self.c(y)
        return x + y if self.same else y
''',
    "Attend": '''class Attend(nn.Module):
    def __init__(self, d, heads, causal=False):
        super().__init__()
        self.qkv, self.out, self.heads, self.causal = nn.Linear(d, 3 * d), nn.Linear(d, d), heads, causal

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).reshape(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        s = q @ k.transpose(-2, -1) / math.sqrt(d // self.heads)
        if self.causal:
            s = s.masked_fill(torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1), float("-inf"))
        return self.out((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))
''',
    "Block": '''class Block(nn.Module):
    def __init__(self, d, heads, causal=False, act=nn.GELU):
        super().__init__()
        self.n1, self.n2, self.attend = nn.LayerNorm(d), nn.LayerNorm(d), Attend(d, heads, causal)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), act(), nn.Linear(2 * d, d))

    def forward(self, x):
        x = x + self.attend(self.n1(x))
        return x + self.mlp(self.n2(x))
''',
}

# name | what it is | blocks | inputs
NETWORKS = r'''
== mlp | a perceptron | | torch.randn(6, 24)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 40), nn.ReLU(), nn.Linear(40, 10))

    def forward(self, x):
        return self.net(x)
== deep_mlp | a deep narrow perceptron | | torch.randn(6, 16)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(*[m for _ in range(12) for m in (nn.Linear(16, 16), nn.ReLU())], nn.Linear(16, 3))

    def forward(self, x):
        return self.net(x)
== wide_mlp | a wide perceptron with norms | | torch.randn(5, 32)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.n, self.b = nn.Linear(32, 160), nn.LayerNorm(160), nn.Linear(160, 12)

    def forward(self, x):
        return F.log_softmax(self.b(F.gelu(self.n(self.a(x)))), -1)
== gated_mlp | SwiGLU with RMS norm | | torch.randn(2, 7, 24)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.g, self.u, self.d, self.w = nn.Linear(24, 40, bias=False), nn.Linear(24, 40, bias=False), nn.Linear(40, 24, bias=False), nn.Parameter(torch.ones(24))

    def forward(self, x):
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.w
        return x + self.d(F.silu(self.g(y)) * self.u(y))
== autoencoder | an autoencoder with its loss | | torch.randn(6, 30)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Sequential(nn.Linear(30, 16), nn.Tanh(), nn.Linear(16, 5))
        self.d = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 30))

    def forward(self, x):
        return F.mse_loss(self.d(self.e(x)), x)
== lenet | LeNet-5 | | torch.randn(2, 1, 20, 20)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(1, 6, 5), nn.Conv2d(6, 8, 5)
        self.f1, self.f2, self.f3 = nn.Linear(32, 24), nn.Linear(24, 16), nn.Linear(16, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.c1(x)), 2)
        x = F.max_pool2d(F.relu(self.c2(x)), 2).flatten(1)
        return self.f3(F.relu(self.f2(F.relu(self.f1(x)))))
== alexnet | AlexNet in small | | torch.randn(2, 3, 35, 35)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 2), nn.ReLU(), nn.MaxPool2d(3, 2), nn.Conv2d(8, 12, 5, padding=2), nn.ReLU(),
                               nn.MaxPool2d(3, 2), nn.Conv2d(12, 8, 3, padding=1), nn.ReLU())
        self.f = nn.Sequential(nn.Dropout(), nn.Linear(72, 20), nn.ReLU(), nn.Linear(20, 7))

    def forward(self, x):
        return self.f(torch.flatten(self.c(x), 1))
== vgg | VGG in small | cbr | torch.randn(2, 3, 16, 16)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        layers, i = [], 3
        for o in (8, "M", 12, 12, "M", 16, "M"):
            layers += [nn.MaxPool2d(2, 2)] if o == "M" else [nn.Conv2d(i, o, 3, padding=1), nn.ReLU(inplace=True)]
            i = i if o == "M" else o
        self.features, self.head = nn.Sequential(*layers), nn.Sequential(nn.Linear(64, 20), nn.ReLU(True), nn.Linear(20, 5))

    def forward(self, x):
        return self.head(self.features(x).flatten(1))
== resnet_basic | ResNet of basic blocks | cbr Basic | torch.randn(2, 3, 16, 16)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.pool = cbr(3, 8, 7, 2), nn.MaxPool2d(3, 2, 1)
        self.body, self.head = nn.Sequential(Basic(8, 8), Basic(8, 12, 2), Basic(12, 12)), nn.Linear(12, 5)

    def forward(self, x):
        return self.head(F.adaptive_avg_pool2d(self.body(self.pool(self.stem(x))), 1).flatten(1))
== resnet18 | ResNet-18's shape, narrow | cbr Basic | torch.randn(1, 3, 16, 16)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = cbr(3, 8, 3)
        self.body = nn.Sequential(Basic(8, 8), Basic(8, 8), Basic(8, 8, 2), Basic(8, 8), Basic(8, 12, 2), Basic(12, 12), Basic(12, 16, 2), Basic(16, 16))
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        return self.head(self.body(self.stem(x)).mean((2, 3)))
== resnet_bottle | ResNet of bottlenecks | cbr Bottle | torch.randn(2, 3, 12, 12)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Sequential(cbr(3, 8), Bottle(8, 4, 16), Bottle(16, 6, 24, 2)), nn.Linear(24, 4)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))
== resnext | grouped bottlenecks | cbr | torch.randn(2, 3, 10, 10)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.a, self.b, self.c = cbr(3, 16), cbr(16, 16, 1), cbr(16, 16, 3, g=4), nn.Conv2d(16, 16, 1)

    def forward(self, x):
        x = self.stem(x)
        return F.relu(x + self.c(self.b(self.a(x)))).amax((2, 3))
== densenet | a dense block with a transition | | torch.randn(2, 8, 12, 12)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = nn.ModuleList(nn.BatchNorm2d(8 + 6 * i) for i in range(3))
        self.c = nn.ModuleList(nn.Conv2d(8 + 6 * i, 6, 3, padding=1, bias=False) for i in range(3))
        self.tn, self.tc = nn.BatchNorm2d(26), nn.Conv2d(26, 12, 1, bias=False)

    def forward(self, x):
        for n, c in zip(self.n, self.c):
            x = torch.cat([x, c(F.relu(n(x)))], 1)
        return F.avg_pool2d(self.tc(F.relu(self.tn(x))), 2)
== mobilenet1 | depthwise separable convolutions | cbr | torch.randn(2, 3, 16, 16)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(cbr(3, 8, s=2), cbr(8, 8, g=8), cbr(8, 12, 1), cbr(12, 12, s=2, g=12), cbr(12, 16, 1))
        self.head = nn.Linear(16, 6)

    def forward(self, x):
        return self.head(F.adaptive_avg_pool2d(self.body(x), 1).flatten(1))
== mobilenet2 | inverted residuals | cbr Inverted | torch.randn(2, 3, 16, 16)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Sequential(cbr(3, 8, s=2, act=nn.ReLU6), Inverted(8, 8), Inverted(8, 12, 2)), nn.Linear(12, 5)

    def forward(self, x):
        return self.head(self.body(x).mean([2, 3]))
== efficientnet | inverted residuals with squeeze and excitation | cbr Inverted | torch.randn(2, 3, 12, 12)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Sequential(cbr(3, 8, s=2, act=nn.SiLU), Inverted(8, 8, squeeze=True), Inverted(8, 12, 2, squeeze=True)), nn.Linear(12, 5)

    def forward(self, x):
        return self.head(F.adaptive_avg_pool2d(self.body(x), 1).flatten(1))
== inception | four branches side by side | cbr | torch.randn(2, 12, 10, 10)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.d = cbr(12, 8, 1), nn.Sequential(cbr(12, 6, 1), cbr(6, 8)), nn.Sequential(cbr(12, 4, 1), cbr(4, 8, 5)), cbr(12, 8, 1)

    def forward(self, x):
        return torch.cat([self.a(x), self.b(x), self.c(x), self.d(F.max_pool2d(x, 3, 1, 1))], 1)
== squeezenet | fire modules | | torch.randn(2, 3, 15, 15)
class Fire(nn.Module):
    def __init__(self, i, s, o):
        super().__init__()
        self.s, self.a, self.b = nn.Conv2d(i, s, 1), nn.Conv2d(s, o, 1), nn.Conv2d(s, o, 3, padding=1)

    def forward(self, x):
        x = F.relu(self.s(x))
        return torch.cat([F.relu(self.a(x)), F.relu(self.b(x))], 1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.MaxPool2d(3, 2), Fire(8, 4, 8), Fire(16, 4, 8), nn.Conv2d(16, 6, 1))

    def forward(self, x):
        return self.net(x).mean((2, 3))
== shufflenet | grouped convolutions with a channel shuffle | cbr | torch.randn(2, 12, 10, 10)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = cbr(12, 12, 1, g=3), cbr(12, 12, 3, g=12), nn.Conv2d(12, 12, 1, groups=3)

    def forward(self, x):
        y = self.a(x)
        n, c, h, w = y.shape
        y = y.view(n, 3, c // 3, h, w).transpose(1, 2).reshape(n, c, h, w)
        return F.relu(x + self.c(self.b(y)))
== unet | a U-Net of two levels | cbr | torch.randn(1, 3, 16, 16)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.m = cbr(3, 8), cbr(8, 12), cbr(12, 16)
        self.ub, self.ua, self.db, self.da = nn.ConvTranspose2d(16, 12, 2, 2), nn.ConvTranspose2d(12, 8, 2, 2), cbr(24, 12), cbr(16, 8)
        self.out = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(F.max_pool2d(a, 2))
        y = self.db(torch.cat([self.ub(self.m(F.max_pool2d(b, 2))), b], 1))
        return self.out(self.da(torch.cat([self.ua(y), a], 1)))
== unet_resize | a U-Net that resizes, with group norm | | torch.randn(1, 4, 12, 12)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.n, self.b, self.c = nn.Conv2d(4, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.Conv2d(8, 8, 3, 2, 1), nn.Conv2d(16, 3, 3, padding=1)

    def forward(self, x):
        a = F.silu(self.n(self.a(x)))
        return self.c(torch.cat([a, F.interpolate(F.silu(self.b(a)), scale_factor=2, mode="nearest")], 1))
== convnext | a ConvNeXt block | | torch.randn(2, 12, 10, 10)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.d, self.n, self.a, self.b, self.g = nn.Conv2d(12, 12, 7, padding=3, groups=12), nn.LayerNorm(12), nn.Linear(12, 48), nn.Linear(48, 12), nn.Parameter(torch.full((12,), 0.1))

    def forward(self, x):
        y = self.n(self.d(x).permute(0, 2, 3, 1))
        return x + (self.g * self.b(F.gelu(self.a(y)))).permute(0, 3, 1, 2)
== dcgan | a generator of transposed convolutions | | torch.randn(2, 16, 1, 1)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.ConvTranspose2d(16, 12, 4), nn.BatchNorm2d(12), nn.ReLU(), nn.ConvTranspose2d(12, 8, 4, 2, 1), nn.BatchNorm2d(8),
                                 nn.ReLU(), nn.ConvTranspose2d(8, 3, 4, 2, 1), nn.Tanh())

    def forward(self, x):
        return self.net(x)
== wavenet | dilated causal convolutions with gates | | torch.randn(2, 8, 24)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.ModuleList(nn.Conv1d(8, 16, 2, dilation=2**i) for i in range(3))
        self.o = nn.ModuleList(nn.Conv1d(8, 8, 1) for _ in range(3))

    def forward(self, x):
        skip = 0
        for i, (f, o) in enumerate(zip(self.f, self.o)):
            a, b = f(F.pad(x, (2**i, 0))).chunk(2, 1)
            y = o(torch.tanh(a) * torch.sigmoid(b))
            x, skip = x + y, skip + y
        return F.relu(skip)
== vit | a vision transformer | Attend Block | torch.randn(2, 3, 16, 16)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.cls, self.pos = nn.Conv2d(3, 24, 4, 4), nn.Parameter(torch.randn(1, 1, 24)), nn.Parameter(torch.randn(1, 17, 24))
        self.blocks, self.n, self.head = nn.Sequential(Block(24, 3), Block(24, 3)), nn.LayerNorm(24), nn.Linear(24, 5)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.pos
        return self.head(self.n(self.blocks(x))[:, 0])
== swin | windows of attention, shifted | Attend Block | torch.randn(2, 8, 8, 16)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.merge = Block(16, 2), Block(16, 2), nn.Linear(64, 24, bias=False)

    def windows(self, block, x):
        b, h, w, c = x.shape
        y = x.view(b, h // 4, 4, w // 4, 4, c).transpose(2, 3).reshape(-1, 16, c)
        return block(y).view(b, h // 4, w // 4, 4, 4, c).transpose(2, 3).reshape(b, h, w, c)

    def forward(self, x):
        x = self.windows(self.a, x)
        x = self.windows(self.b, x.roll((-2, -2), (1, 2))).roll((2, 2), (1, 2))
        return self.merge(torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1))
== gpt | a GPT of two blocks, tokens to logits | Attend Block | torch.randint(0, 50, (2, 12))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(50, 24), nn.Embedding(12, 24)
        self.blocks, self.n, self.head = nn.Sequential(Block(24, 3, True), Block(24, 3, True)), nn.LayerNorm(24), nn.Linear(24, 50, bias=False)

    def forward(self, i):
        x = self.tok(i) + self.pos(torch.arange(i.shape[1], device=i.device))
        return self.head(self.n(self.blocks(x)))
== gpt_block | one block with a new GELU | Attend Block | torch.randn(2, 16, 24)
class NewGELU(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block(24, 3, True, NewGELU)

    def forward(self, x):
        return self.block(x)
== relu_attention | attention with relu in place of softmax | | torch.randn(2, 16, 24)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(24, 72), nn.Linear(24, 24)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).split(d, 2)
        q, k, v = (y.view(b, t, 3, 8).transpose(1, 2) for y in (q, k, v))
        s = (q @ k.transpose(-2, -1)) / math.sqrt(8)
        s = F.relu(s.masked_fill(torch.tril(torch.ones(t, t, device=x.device)) == 0, float("-inf")))
        return self.out((s @ v).transpose(1, 2).reshape(b, t, d))
== bert | an encoder layer, norm after | Attend | torch.randn(2, 9, 24)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.attend, self.n1, self.n2 = Attend(24, 4), nn.LayerNorm(24), nn.LayerNorm(24)
        self.a, self.b = nn.Linear(24, 48), nn.Linear(48, 24)

    def forward(self, x):
        x = self.n1(x + self.attend(x))
        return self.n2(x + self.b(F.gelu(self.a(x))))
== encoder_layer | PyTorch's own encoder layer | | torch.randn(2, 9, 24)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(24, 3, 40, batch_first=True, norm_first=True)

    def forward(self, x):
        return self.layer(x)
== cross_attention | a decoder's second attention | | torch.randn(2, 7, 16), torch.randn(2, 11, 16)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.kv, self.out = nn.Linear(16, 16), nn.Linear(16, 32), nn.Linear(16, 16)

    def forward(self, x, m):
        q = self.q(x).view(2, 7, 2, 8).transpose(1, 2)
        k, v = (y.view(2, 11, 2, 8).transpose(1, 2) for y in self.kv(m).chunk(2, -1))
        y = torch.softmax(q @ k.transpose(2, 3) * 8**-0.5, -1) @ v
        return x + self.out(y.transpose(1, 2).reshape(2, 7, 16))
== mixer | an MLP-Mixer block | | torch.randn(2, 9, 16)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(16), nn.LayerNorm(16)
        self.t, self.c = nn.Sequential(nn.Linear(9, 20), nn.GELU(), nn.Linear(20, 9)), nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

    def forward(self, x):
        x = x + self.t(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.c(self.n2(x))
== llama | a block with rotary embeddings and shared heads | | torch.randn(2, 8, 32)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = nn.Linear(32, 32, bias=False), nn.Linear(32, 16, bias=False), nn.Linear(32, 16, bias=False), nn.Linear(32, 32, bias=False)
        self.register_buffer("angle", torch.arange(8.0)[:, None] / 10 ** (torch.arange(4.0) / 4))

    def turn(self, x):
        a, b = x.chunk(2, -1)
        c, s = self.angle.cos(), self.angle.sin()
        return torch.cat([a * c - b * s, b * c + a * s], -1)

    def forward(self, x):
        q = self.turn(self.q(x).view(2, 8, 4, 8).transpose(1, 2))
        k = self.turn(self.k(x).view(2, 8, 2, 8).transpose(1, 2)).repeat_interleave(2, 1)
        v = self.v(x).view(2, 8, 2, 8).transpose(1, 2).repeat_interleave(2, 1)
        s = (q @ k.transpose(2, 3) / 8**0.5).masked_fill(torch.ones(8, 8, dtype=torch.bool, device=x.device).triu(1), float("-inf"))
        return x + self.o((s.softmax(-1) @ v).transpose(1, 2).reshape(2, 8, 32))
== lstm | layers that follow each other, and a head | | torch.randn(5, 9, 12), torch.randn(3, 5, 16), torch.randn(3, 5, 16)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.r, self.head = nn.LSTM(12, 16, 3, batch_first=True), nn.Linear(16, 4)

    def forward(self, x, h, c):
        y, _ = self.r(x, (h, c))
        return self.head(y[:, -1, :])
== lstm_states | all that a layer gives | | torch.randn(7, 3, 10)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.r = nn.LSTM(10, 8, 2)

    def forward(self, x):
        y, (h, c) = self.r(x)
        return y, h, c
== lstm_last_c | the last state alone | | torch.randn(6, 17, 8)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.r = nn.LSTM(8, 12, 2, bias=False)

    def forward(self, x):
        return self.r(x)[1][1]
== bilstm | both directions, two layers | | torch.randn(4, 8, 10)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.r, self.head = nn.LSTM(10, 12, 2, batch_first=True, bidirectional=True), nn.Linear(24, 5)

    def forward(self, x):
        return self.head(self.r(x)[0][:, -1])
== gru | layers that follow each other | | torch.randn(9, 5, 12), torch.randn(3, 5, 16)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.r = nn.GRU(12, 16, 3)

    def forward(self, x, h):
        return self.r(x, h)[0]
== bigru | both directions, the last state | | torch.randn(7, 3, 10)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.r = nn.GRU(10, 9, 2, bidirectional=True)

    def forward(self, x):
        return self.r(x)[1]
== rnn | plain cells, tanh and relu | | torch.randn(8, 6, 10)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.RNN(10, 12, 2), nn.RNN(12, 9, 1, nonlinearity="relu")

    def forward(self, x):
        return self.b(self.a(x)[0])[0]
== rnn_by_hand | a cell of two products, step by step | | torch.randn(4, 6, 10), torch.randn(6, 8)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.i, self.o = nn.Linear(18, 8), nn.Linear(8, 5)

    def forward(self, x, h):
        made = []
        for t in range(x.shape[0]):
            h = torch.tanh(self.i(torch.cat((x[t], h), 1)))
            made.append(self.o(h))
        return torch.stack(made)
== lstm_cell | an LSTM cell in a loop | | torch.randn(3, 4, 6)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(6, 8)

    def forward(self, x):
        h = c = torch.zeros(x.shape[1], 8, device=x.device)
        for t in range(x.shape[0]):
            h, c = self.cell(x[t], (h, c))
        return h
== seq2seq | an encoder whose state a decoder begins with | | torch.randn(6, 3, 8), torch.randn(4, 3, 8)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.d, self.out = nn.GRU(8, 12), nn.GRU(8, 12), nn.Linear(12, 8)

    def forward(self, x, y):
        return self.out(self.d(y, self.e(x)[1])[0])
== conv_lstm | convolutions before recurrent layers | | torch.randn(2, 1, 12, 16)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c, self.r, self.head = nn.Conv2d(1, 6, 3, padding=1), nn.LSTM(36, 10, bidirectional=True), nn.Linear(20, 7)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.c(x)), 2)
        x = x.permute(3, 0, 1, 2).flatten(2)
        return F.log_softmax(self.head(self.r(x)[0]), -1)
== netvlad | soft assignment to clusters | | torch.randn(3, 14, 12)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.n, self.k = nn.Parameter(torch.randn(12, 6) * 0.3), nn.BatchNorm1d(6), nn.Parameter(torch.randn(1, 12, 6) * 0.3)

    def forward(self, x):
        a = F.softmax(self.n(x.reshape(-1, 12) @ self.w), 1).view(3, 14, 6)
        v = torch.matmul(a.transpose(1, 2), x).transpose(1, 2) - a.sum(1, keepdim=True) * self.k
        return F.normalize(F.normalize(v).reshape(3, -1))
== mamba_chunk | a chunked state-space scan, as Mamba-2 writes it | | torch.randn(2, 8, 2, 4), torch.rand(2, 8, 2), torch.randn(2, 8, 2, 3), torch.randn(2, 8, 2, 3)
class Net(nn.Module):
    def segsum(self, x):
        t = x.size(-1)
        s = torch.cumsum(x, -1)
        s = s[..., :, None] - s[..., None, :]
        return s.masked_fill(~torch.tril(torch.ones(t, t, dtype=torch.bool, device=x.device)), float("-inf"))

    def forward(self, x, a, b, c):
        x, b, c = (y.reshape(2, 2, 4, 2, -1) for y in (x, b, c))
        a = -a.reshape(2, 2, 4, 2).permute(0, 3, 1, 2)
        s = torch.cumsum(a, -1)
        y = torch.einsum("bclhn,bcshn,bhcls,bcshp->bclhp", c, b, torch.exp(self.segsum(a)), x)
        states = torch.einsum("bclhn,bhcl,bclhp->bchpn", b, torch.exp(s[..., -1:] - s), x)
        states = torch.cat([torch.zeros_like(states[:, :1]), states], 1)
        decay = torch.exp(self.segsum(F.pad(s[..., -1], (1, 0))))
        states = torch.einsum("bhzc,bchpn->bzhpn", decay, states)[:, :-1]
        return (y + torch.einsum("bclhn,bchpn,bhcl->bclhp", c, states, torch.exp(s))).reshape(2, 8, 2, 4)
== mamba_scan | a selective scan by running sums | | torch.randn(2, 9, 8)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.i, self.dt, self.o = nn.Linear(8, 16), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        y, z = self.i(x).chunk(2, -1)
        a = -F.softplus(self.dt(y)).clamp(max=0.5)
        s = torch.cumsum(a, 1)
        h = torch.exp(s) * torch.cumsum(torch.exp(-s) * y, 1)
        return self.o(h * F.silu(z))
== two_tower | two towers and the cosine between them | | torch.randn(4, 12), torch.randn(4, 10)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 8)), nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 8))

    def forward(self, x, y):
        return F.cosine_similarity(self.a(x), self.b(y))
== experts | a mixture of experts, all of them computed | | torch.randn(6, 12)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.w1, self.w2 = nn.Linear(12, 4), nn.Parameter(torch.randn(4, 12, 16) * 0.2), nn.Parameter(torch.randn(4, 16, 12) * 0.2)

    def forward(self, x):
        g = torch.softmax(self.gate(x), -1)
        y = torch.einsum("enf,efd->end", F.relu(torch.einsum("nd,edf->enf", x, self.w1)), self.w2)
        return torch.einsum("ne,end->nd", g, y)
'''


def rows():
    for part in (NETWORKS + networks_more.NETWORKS[1:]).split("\n== ")[1:]:
        head, net = part.split("\n", 1)
        name, words, blocks, inputs = (x.strip() for x in head.split("|"))
        yield name, words, blocks.split(), inputs, net.strip()


def write(number, name, words, blocks, inputs, net):
    return TASK.format(number=number, name=name, words=words, net=net + "\n", inputs=inputs,
                       blocks="".join(BLOCKS[b] + "\n\n" for b in blocks).rstrip() + ("\n\n" if blocks else ""))


def main():
    if sys.argv[1] == "--count":
        print(len(list(rows())))
        return
    if sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    out, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2] if len(sys.argv) > 2 else 0), int(sys.argv[3] if len(sys.argv) > 3 else 1)
    wanted = os.environ.get("NETWORKS", "").split()
    found = [r for r in rows() if not wanted or r[0] in wanted]
    if count and not wanted:
        random.Random(seed).shuffle(found)
    out.mkdir(parents=True, exist_ok=True)
    for number, row in enumerate(found[: count or None]):
        (out / f"task{number:03d}.py").write_text(write(number, *row))


main()
