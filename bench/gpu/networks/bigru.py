"""GRU of both directions: 512 steps, 6 layers, hidden 256, batch 10."""
import torch
import torch.nn as nn

STEPS, LAYERS, HIDDEN, BATCH, FEATURES = 512, 6, 256, 10, 128


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.GRU(FEATURES, HIDDEN, LAYERS, bidirectional=True)

    def forward(self, x):
        return self.net(x)[0]


def get_inputs():
    return [torch.randn(STEPS, BATCH, FEATURES)]


def get_init_inputs():
    return []
