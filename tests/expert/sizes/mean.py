"""A mean written as a sum over a size."""
import torch
import torch.nn as nn

ROWS = 4096
COLUMNS = 32768


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x - torch.sum(x, dim=1, keepdim=True) / x.shape[1]


def get_inputs():
    return [torch.rand(ROWS, COLUMNS)]


def get_init_inputs():
    return []
