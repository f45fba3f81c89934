"""Network 17: squeezenet: fire modules."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Fire(nn.Module):
    def __init__(self, i, s, o):
        super().__init__()
        self.s, self.a, self.b = nn.Conv2d(i, s, 1), nn.Conv2d(s, o, 1), nn.Conv2d(s, o, 3, padding=1)

    def forward(self, x):
        x = F.relu(self.s(x))
        return torch.cat([F.relu(self.a(x)), F.relu(self.b(x))], 1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.MaxPool2d(3, 2), Fire(8, 4, 8), Fire(16, 4, 8), nn.Conv2d(16, 6, 1))

    def forward(self, x):
        return self.net(x).mean((2, 3))


class Model(Net):
    def __init__(self):
        super().__init__()
        self.eval()


def get_inputs():
    return [torch.randn(2, 3, 15, 15)]


def get_init_inputs():
    return []
