"""Twice the input: the task of attacks_test.sh."""
import torch
import torch.nn as nn

N = 1000


class Model(nn.Module):
    def forward(self, x):
        return x * 2 + 1


def get_inputs():
    return [torch.randn(N)]


def get_init_inputs():
    return []
