"""Largest of each 3 x 3 window, at half the resolution."""
import torch
import torch.nn as nn

BATCH = 32
CHANNELS = 64
SIZE = 256


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pool(x)  # (BATCH,CHANNELS,SIZE/2,SIZE/2)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIZE, SIZE)]


def get_init_inputs():
    return []
