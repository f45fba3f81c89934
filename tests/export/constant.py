"""A constant that inputs and the forward use: --shapes N=... makes another function of it. The task of calls_test.sh."""
import torch
import torch.nn as nn

N = 1000


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) / N**0.5


def get_inputs():
    return [torch.randn(16, N)]


def get_init_inputs():
    return []
