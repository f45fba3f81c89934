"""The maximum along the first dimension."""
import torch
import torch.nn as nn

BATCH = 128
DIM1 = 4096
DIM2 = 4095


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.max(x, dim=0)[0]  # (DIM1,DIM2)


def get_inputs():
    return [torch.rand(BATCH, DIM1, DIM2)]


def get_init_inputs():
    return []
