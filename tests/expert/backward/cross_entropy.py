"""Gradient of a cross entropy."""
import torch
import torch.nn as nn

BACKWARD = True
ROWS = 64
COLUMNS = 256


class Model(nn.Module):
    def forward(self, x, target):
        return torch.nn.functional.cross_entropy(x, target)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS), torch.randint(0, COLUMNS, (ROWS,))]


def get_init_inputs():
    return []
