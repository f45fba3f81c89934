"""Gradient of a gate: two inputs."""
import torch
import torch.nn as nn

BACKWARD = True
ROWS = 64
COLUMNS = 256


class Model(nn.Module):
    def forward(self, x, y):
        return torch.nn.functional.silu(x) * y


def get_inputs():
    return [torch.randn(ROWS, COLUMNS), torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []
