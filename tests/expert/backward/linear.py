"""Gradients of a Linear: input, weight and bias."""
import torch
import torch.nn as nn

BACKWARD = True
ROWS = 64
COLUMNS = 256
WIDTH = 96


class Model(nn.Module):
    def __init__(self, columns: int, width: int):
        super().__init__()
        self.linear = nn.Linear(columns, width)

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return [COLUMNS, WIDTH]
