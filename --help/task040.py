"""Network 40: rnn: plain cells, tanh and relu."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.RNN(10, 12, 2), nn.RNN(12, 9, 1, nonlinearity="relu")

    def forward(self, x):
        return self.b(self.a(x)[0])[0]


class Model(Net):
    def __init__(self):
        super().__init__()
        self.eval()


def get_inputs():
    return [torch.randn(8, 6, 10)]


def get_init_inputs():
    return []
