"""Network 25: swin: windows of attention, shifted."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

class Attend(nn.Module):
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


class Block(nn.Module):
    def __init__(self, d, heads, causal=False, act=nn.GELU):
        super().__init__()
        self.n1, self.n2, self.attend = nn.LayerNorm(d), nn.LayerNorm(d), Attend(d, heads, causal)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), act(), nn.Linear(2 * d, d))

    def forward(self, x):
        x = x + self.attend(self.n1(x))
        return x + self.mlp(self.n2(x))


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


class Model(Net):
    def __init__(self):
        super().__init__()
        self.eval()


def get_inputs():
    return [torch.randn(2, 8, 8, 16)]


def get_init_inputs():
    return []
