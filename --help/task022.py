"""Network 22: dcgan: a generator of transposed convolutions."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.ConvTranspose2d(16, 12, 4), nn.BatchNorm2d(12), nn.ReLU(), nn.ConvTranspose2d(12, 8, 4, 2, 1), nn.BatchNorm2d(8),
                                 nn.ReLU(), nn.ConvTranspose2d(8, 3, 4, 2, 1), nn.Tanh())

    def forward(self, x):
        return self.net(x)


class Model(Net):
    def __init__(self):
        super().__init__()
        self.eval()


def get_inputs():
    return [torch.randn(2, 16, 1, 1)]


def get_init_inputs():
    return []
