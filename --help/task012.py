"""Network 12: densenet: a dense block with a transition."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


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


class Model(Net):
    def __init__(self):
        super().__init__()
        self.eval()


def get_inputs():
    return [torch.randn(2, 8, 12, 12)]


def get_init_inputs():
    return []
