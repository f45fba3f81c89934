"""SELU: scale * (x where positive, alpha * (exp(x) - 1) elsewhere), elementwise.

Bound by memory: each element is read once and written once.
"""
import torch
import torch.nn as nn

BATCH = 4096
DIM = 131072


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.selu(x)  # (BATCH,DIM)


def get_inputs():
    return [torch.rand(BATCH, DIM)]


def get_init_inputs():
    return []
