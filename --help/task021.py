"""Network 21: convnext: a ConvNeXt block."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.d, self.n, self.a, self.b, self.g = nn.Conv2d(12, 12, 7, padding=3, groups=12), nn.LayerNorm(12), nn.Linear(12, 48), nn.Linear(48, 12), nn.Parameter(torch.full((12,), 0.1))

    def forward(self, x):
        y = self.n(self.d(x).permute(0, 2, 3, 1))
        return x + (self.g * self.b(F.gelu(self.a(y)))).permute(0, 3, 1, 2)


class Model(Net):
    def __init__(self):
        super().__init__()
        self.eval()


def get_inputs():
    return [torch.randn(2, 12, 10, 10)]


def get_init_inputs():
    return []
