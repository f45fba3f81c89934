"""Network 14: mobilenet2: inverted residuals."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

def cbr(i, o, k=3, s=1, g=1, act=nn.ReLU):
    return nn.Sequential(nn.Conv2d(i, o, k, s, k // 2, groups=g, bias=False), nn.BatchNorm2d(o), act())


class Inverted(nn.Module):
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


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Sequential(cbr(3, 8, s=2, act=nn.ReLU6), Inverted(8, 8), Inverted(8, 12, 2)), nn.Linear(12, 5)

    def forward(self, x):
        return self.head(self.body(x).mean([2, 3]))


class Model(Net):
    def __init__(self):
        super().__init__()
        self.eval()


def get_inputs():
    return [torch.randn(2, 3, 16, 16)]


def get_init_inputs():
    return []
