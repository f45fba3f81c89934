#!/usr/bin/env python3
"""three_modules.py - with the installed package: optimize() of swish, Linear+GELU and LayerNorm, and five small models
compiled with backend="cutegen", each compared with the module itself. On simt; exit status 1: something differs."""

import sys

import cutegen
import torch
import torch.nn as nn
from cutegen import compiled


class Swish(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(32, 96)

    def forward(self, x):
        q, k, v = self.qkv(x).view(2, 16, 3, 2, 16).permute(2, 0, 3, 1, 4)
        return torch.softmax(q @ k.transpose(-1, -2) / 4, dim=-1) @ v


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))

    def forward(self, x):
        return x + self.body(x)


def main() -> int:
    torch.manual_seed(1)
    wrong = 0
    for module, x in ((Swish(), torch.randn(32, 64)), (nn.Sequential(nn.Linear(64, 48), nn.GELU()), torch.randn(32, 64)), (nn.LayerNorm(64), torch.randn(32, 64))):
        fast = cutegen.optimize(module, (x,), depth=1, progress=False)
        right = fast.optimized and torch.allclose(fast(x), module(x), atol=1e-4)
        wrong += not right
        print(f"{type(module).__name__}: {fast.verdict}: {'right' if right else 'WRONG'}")
    models = {
        "mlp": (nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8)), torch.randn(16, 32)),
        "attention": (Attention(), torch.randn(2, 16, 32)),
        "residual": (Residual(), torch.randn(16, 32)),
        "convolution": (nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()).eval(), torch.randn(2, 3, 12, 12)),
        "classifier": (nn.Sequential(nn.Linear(32, 10), nn.LogSoftmax(-1)), torch.randn(16, 32)),
    }
    for name, (module, x) in models.items():
        before = len(compiled.report())
        fast = torch.compile(module, backend="cutegen", dynamic=False, options={"depth": 0, "progress": False})
        with torch.no_grad():
            right = torch.allclose(fast(x), module(x), atol=1e-4)
        plans = compiled.report()[before:]
        right = right and any(p.replaced for p in plans)
        wrong += not right
        print(f"{name}: {[p.replaced or p.left for p in plans]}: {'right' if right else 'WRONG'}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
