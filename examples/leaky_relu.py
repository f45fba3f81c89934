"""Leaky ReLU: x where positive, slope * x elsewhere; the slope comes from get_init_inputs.

Bound by memory: each element is read once and written once.
"""
import torch
import torch.nn as nn

BATCH = 4096
DIM = 131072


class Model(nn.Module):
    def __init__(self, slope: float = 0.01) -> None:
        super().__init__()
        self.slope = slope

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.leaky_relu(x, negative_slope=self.slope)  # (BATCH,DIM)


def get_inputs():
    return [torch.rand(BATCH, DIM)]


def get_init_inputs():
    return [0.01]
