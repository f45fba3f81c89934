"""Convolution: 3 x 3, stride 1, with bias; the same size in and out."""
import torch
import torch.nn as nn

BATCH = 16
CHANNELS_IN = 64
CHANNELS_OUT = 128
SIZE = 256
KERNEL = 3


class Model(nn.Module):
    def __init__(self, channels_in: int, channels_out: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, kernel, padding=kernel // 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x)  # (BATCH,CHANNELS_OUT,SIZE,SIZE)


def get_inputs():
    return [torch.rand(BATCH, CHANNELS_IN, SIZE, SIZE)]


def get_init_inputs():
    return [CHANNELS_IN, CHANNELS_OUT, KERNEL]
