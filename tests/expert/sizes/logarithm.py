"""Scaled by the logarithm of a size, which is no formula the description looks for."""
import math

import torch
import torch.nn as nn

ROWS = 4096
COLUMNS = 32768


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x) * math.log(x.shape[1])


def get_inputs():
    return [torch.rand(ROWS, COLUMNS)]


def get_init_inputs():
    return []
