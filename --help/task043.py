"""Network 43: seq2seq: an encoder whose state a decoder begins with."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.d, self.out = nn.GRU(8, 12), nn.GRU(8, 12), nn.Linear(12, 8)

    def forward(self, x, y):
        return self.out(self.d(y, self.e(x)[1])[0])


class Model(Net):
    def __init__(self):
        super().__init__()
        self.eval()


def get_inputs():
    return [torch.randn(6, 3, 8), torch.randn(4, 3, 8)]


def get_init_inputs():
    return []
