"""Normalisation: layer norm over the last dimension, with weight and bias of its own."""
import torch
import torch.nn as nn

TOKENS = 32768
DIM = 4096


class Model(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)  # (TOKENS,DIM)


def get_inputs():
    return [torch.randn(TOKENS, DIM)]


def get_init_inputs():
    return [DIM]
