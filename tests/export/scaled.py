"""Two sets of inputs, each with a number of its own. The task of calls_test.sh."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, alpha: float):
        return x * alpha + 1


def get_inputs_list():
    return [[torch.randn(1000), 2.0], [torch.randn(500), 3.0], [torch.randn(500), 4.0]]


def get_inputs():
    return get_inputs_list()[0]


def get_init_inputs():
    return []
