"""ELU: x where positive, alpha * (exp(x) - 1) elsewhere; alpha comes from get_init_inputs.

Bound by memory: each element is read once and written once.
"""
import torch
import torch.nn as nn

BATCH = 4096
DIM = 131072


class Model(nn.Module):
    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.elu(x, alpha=self.alpha)  # (BATCH,DIM)


def get_inputs():
    return [torch.rand(BATCH, DIM)]


def get_init_inputs():
    return [1.0]
