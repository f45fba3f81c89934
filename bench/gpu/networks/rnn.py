"""RNN: 512 steps, 6 layers, hidden 256, batch 10."""
import torch
import torch.nn as nn

STEPS, LAYERS, HIDDEN, BATCH, FEATURES = 512, 6, 256, 10, 128


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.RNN(FEATURES, HIDDEN, LAYERS, bidirectional=False)

    def forward(self, x):
        return self.net(x)[0]


def get_inputs():
    return [torch.randn(STEPS, BATCH, FEATURES)]


def get_init_inputs():
    return []
