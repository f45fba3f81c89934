"""The sum along the middle dimension."""
import torch
import torch.nn as nn

BATCH = 128
DIM1 = 4096
DIM2 = 4095


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sum(x, dim=1, keepdim=True)  # (BATCH,1,DIM2)


def get_inputs():
    return [torch.rand(BATCH, DIM1, DIM2)]


def get_init_inputs():
    return []
