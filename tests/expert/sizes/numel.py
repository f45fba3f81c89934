"""Divided by the number of all elements."""
import torch
import torch.nn as nn

ROWS = 1024
COLUMNS = 2048


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x) / x.numel()


def get_inputs():
    return [torch.rand(ROWS, COLUMNS)]


def get_init_inputs():
    return []
