"""Network 49: experts: a mixture of experts, all of them computed."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.w1, self.w2 = nn.Linear(12, 4), nn.Parameter(torch.randn(4, 12, 16) * 0.2), nn.Parameter(torch.randn(4, 16, 12) * 0.2)

    def forward(self, x):
        g = torch.softmax(self.gate(x), -1)
        y = torch.einsum("enf,efd->end", F.relu(torch.einsum("nd,edf->enf", x, self.w1)), self.w2)
        return torch.einsum("ne,end->nd", g, y)


class Model(Net):
    def __init__(self):
        super().__init__()
        self.eval()


def get_inputs():
    return [torch.randn(6, 12)]


def get_init_inputs():
    return []
