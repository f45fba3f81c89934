"""Network 20: unet_resize: a U-Net that resizes, with group norm."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.n, self.b, self.c = nn.Conv2d(4, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.Conv2d(8, 8, 3, 2, 1), nn.Conv2d(16, 3, 3, padding=1)

    def forward(self, x):
        a = F.silu(self.n(self.a(x)))
        return self.c(torch.cat([a, F.interpolate(F.silu(self.b(a)), scale_factor=2, mode="nearest")], 1))


class Model(Net):
    def __init__(self):
        super().__init__()
        self.eval()


def get_inputs():
    return [torch.randn(1, 4, 12, 12)]


def get_init_inputs():
    return []
