"""A perceptron of four wide layers, inference, batch 128."""
import torch
import torch.nn as nn

BATCH, FEATURES, WIDTH, CLASSES = 128, 4096, 4096, 1000


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(FEATURES, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH),
                                 nn.ReLU(), nn.Linear(WIDTH, CLASSES))

    def forward(self, x):
        return self.net(x)


def get_inputs():
    return [torch.randn(BATCH, FEATURES)]


def get_init_inputs():
    return []
