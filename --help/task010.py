"""Network 10: resnet_bottle: ResNet of bottlenecks."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

def cbr(i, o, k=3, s=1, g=1, act=nn.ReLU):
    return nn.Sequential(nn.Conv2d(i, o, k, s, k // 2, groups=g, bias=False), nn.BatchNorm2d(o), act())


class Bottle(nn.Module):
    def __init__(self, i, m, o, s=1):
        super().__init__()
        self.a, self.b = cbr(i, m, 1), cbr(m, m, 3, s)
        self.c = nn.Sequential(nn.Conv2d(m, o, 1, bias=False), nn.BatchNorm2d(o))
        self.short = nn.Sequential(nn.Conv2d(i, o, 1, s, bias=False), nn.BatchNorm2d(o))

    def forward(self, x):
        return F.relu(self.c(self.b(self.a(x))) + self.short(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Sequential(cbr(3, 8), Bottle(8, 4, 16), Bottle(16, 6, 24, 2)), nn.Linear(24, 4)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


class Model(Net):
    def __init__(self):
        super().__init__()
        self.eval()


def get_inputs():
    return [torch.randn(2, 3, 12, 12)]


def get_init_inputs():
    return []
