"""Network 30: encoder_layer: PyTorch's own encoder layer."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(24, 3, 40, batch_first=True, norm_first=True)

    def forward(self, x):
        return self.layer(x)


class Model(Net):
    def __init__(self):
        super().__init__()
        self.eval()


def get_inputs():
    return [torch.randn(2, 9, 24)]


def get_init_inputs():
    return []
