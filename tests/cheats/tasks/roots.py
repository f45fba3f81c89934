"""Square roots of numbers that are never negative: what is the answer where they are?"""
import torch
import torch.nn as nn

BATCH = 64
DIM = 1001


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sqrt(x)  # (BATCH, DIM)


def get_inputs():
    return [torch.rand(BATCH, DIM)]


def get_init_inputs():
    return []
