"""Layer norm over three dimensions: sixteen rows of four million elements, with a weight and a bias for each."""
import torch
import torch.nn as nn

BATCH = 16
FEATURES = 64
DIM1 = 256
DIM2 = 256


class Model(nn.Module):
    def __init__(self, features: int, dim1: int, dim2: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm((features, dim1, dim2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)  # (BATCH,FEATURES,DIM1,DIM2)


def get_inputs():
    return [torch.rand(BATCH, FEATURES, DIM1, DIM2)]


def get_init_inputs():
    return [FEATURES, DIM1, DIM2]
