"""Twice the input: the task of attacks_test.sh."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x * 2 + 1


def get_inputs():
    return [torch.randn(1000)]


def get_init_inputs():
    return []
