"""Network 19: unet: a U-Net of two levels."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

def cbr(i, o, k=3, s=1, g=1, act=nn.ReLU):
    return nn.Sequential(nn.Conv2d(i, o, k, s, k // 2, groups=g, bias=False), nn.BatchNorm2d(o), act())


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


class Model(Net):
    def __init__(self):
        super().__init__()
        self.eval()


def get_inputs():
    return [torch.randn(1, 3, 16, 16)]


def get_init_inputs():
    return []
