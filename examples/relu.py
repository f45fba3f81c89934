"""ReLU: y = max(x, 0), elementwise.

Bound by memory: each element is read once and written once.
"""
import torch
import torch.nn as nn

BATCH = 4096
DIM = 131072


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)  # (BATCH,DIM)


def get_inputs():
    return [torch.rand(BATCH, DIM)]


def get_init_inputs():
    return []
