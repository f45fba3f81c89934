"""Network 16: inception: four branches side by side."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

def cbr(i, o, k=3, s=1, g=1, act=nn.ReLU):
    return nn.Sequential(nn.Conv2d(i, o, k, s, k // 2, groups=g, bias=False), nn.BatchNorm2d(o), act())


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.d = cbr(12, 8, 1), nn.Sequential(cbr(12, 6, 1), cbr(6, 8)), nn.Sequential(cbr(12, 4, 1), cbr(4, 8, 5)), cbr(12, 8, 1)

    def forward(self, x):
        return torch.cat([self.a(x), self.b(x), self.c(x), self.d(F.max_pool2d(x, 3, 1, 1))], 1)


class Model(Net):
    def __init__(self):
        super().__init__()
        self.eval()


def get_inputs():
    return [torch.randn(2, 12, 10, 10)]


def get_init_inputs():
    return []
