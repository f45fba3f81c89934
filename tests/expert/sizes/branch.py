"""Another function at larger sizes."""
import torch
import torch.nn as nn

ROWS = 1024
COLUMNS = 2048


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x - 0.5) if x.shape[1] > 1500 else torch.tanh(x)


def get_inputs():
    return [torch.rand(ROWS, COLUMNS)]


def get_init_inputs():
    return []
