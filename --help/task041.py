"""Network 41: rnn_by_hand: a cell of two products, step by step."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.i, self.o = nn.Linear(18, 8), nn.Linear(8, 5)

    def forward(self, x, h):
        made = []
        for t in range(x.shape[0]):
            h = torch.tanh(self.i(torch.cat((x[t], h), 1)))
            made.append(self.o(h))
        return torch.stack(made)


class Model(Net):
    def __init__(self):
        super().__init__()
        self.eval()


def get_inputs():
    return [torch.randn(4, 6, 10), torch.randn(6, 8)]


def get_init_inputs():
    return []
