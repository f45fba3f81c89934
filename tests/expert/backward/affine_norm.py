"""Gradients of a layer norm with weight and bias."""
import torch
import torch.nn as nn

BACKWARD = True
ROWS = 64
COLUMNS = 256


class Model(nn.Module):
    def __init__(self, columns: int):
        super().__init__()
        self.norm = nn.LayerNorm(columns)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return [COLUMNS]
