"""Network 26: gpt: a GPT of two blocks, tokens to logits."""
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
        self.tok, self.pos = nn.Embedding(50, 24), nn.Embedding(12, 24)
        self.blocks, self.n, self.head = nn.Sequential(Block(24, 3, True), Block(24, 3, True)), nn.LayerNorm(24), nn.Linear(24, 50, bias=False)

    def forward(self, i):
        x = self.tok(i) + self.pos(torch.arange(i.shape[1], device=i.device))
        return self.head(self.n(self.blocks(x)))


class Model(Net):
    def __init__(self):
        super().__init__()
        self.eval()


def get_inputs():
    return [torch.randint(0, 50, (2, 12))]


def get_init_inputs():
    return []
