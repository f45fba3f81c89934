"""Two sets of inputs of different types, and no get_inputs(). The task of calls_test.sh."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x.clone()


def get_inputs_list():
    return [[torch.randn(1000)], [torch.randint(0, 9, (500,), dtype=torch.int32)]]


def get_init_inputs():
    return []
