"""Gradient of a log-softmax."""
import torch
import torch.nn as nn

BACKWARD = True
ROWS = 64
COLUMNS = 256


class Model(nn.Module):
    def forward(self, x):
        return torch.log_softmax(x, dim=1)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []
