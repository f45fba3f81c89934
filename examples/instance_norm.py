"""Instance norm of images: every channel of every image is a row of its own."""
import torch
import torch.nn as nn

BATCH = 112
FEATURES = 64
HEIGHT = 512
WIDTH = 512


class Model(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.norm = nn.InstanceNorm2d(features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)  # (BATCH,FEATURES,HEIGHT,WIDTH)


def get_inputs():
    return [torch.rand(BATCH, FEATURES, HEIGHT, WIDTH)]


def get_init_inputs():
    return [FEATURES]
