"""Scaled by a power of a size that no formula of the description has."""
import torch
import torch.nn as nn

ROWS = 1024
COLUMNS = 2048


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(x) * x.size(-1) ** -0.25


def get_inputs():
    return [torch.rand(ROWS, COLUMNS)]


def get_init_inputs():
    return []
