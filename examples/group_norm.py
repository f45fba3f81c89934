"""Group norm of images: eight groups of channels, each normalised as one row."""
import torch
import torch.nn as nn

BATCH = 112
FEATURES = 64
HEIGHT = 512
WIDTH = 512
GROUPS = 8


class Model(nn.Module):
    def __init__(self, groups: int, features: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(groups, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)  # (BATCH,FEATURES,HEIGHT,WIDTH)


def get_inputs():
    return [torch.rand(BATCH, FEATURES, HEIGHT, WIDTH)]


def get_init_inputs():
    return [GROUPS, FEATURES]
