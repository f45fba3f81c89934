"""A constant tensor whose numbers depend on a size: no formula for a table."""
import torch
import torch.nn as nn

ROWS = 4096
COLUMNS = 512


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights = torch.tensor([1.0 / x.shape[1], 2.0, -0.5])
        return torch.tanh(x[:, [0, -1, 5]]) * weights


def get_inputs():
    return [torch.rand(ROWS, COLUMNS)]


def get_init_inputs():
    return []
