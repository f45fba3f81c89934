"""Divided by the square root of a dimension, as attention does with its scores."""
import math

import torch
import torch.nn as nn

ROWS = 8
COLUMNS = 4194304


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) / math.sqrt(x.size(-1))


def get_inputs():
    return [torch.rand(ROWS, COLUMNS)]


def get_init_inputs():
    return []
