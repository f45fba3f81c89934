"""Two results in a dict, a list of inputs, a parameter and a scalar: everything an exported module must put back in place."""
import torch
import torch.nn as nn

N = 1000
KERNEL = SPEC = os = json = copy = 1  # names a task may have; the module must not trip over them


class Model(nn.Module):
    def __init__(self, n: int):
        super().__init__()
        self.inner = nn.Module()
        self.inner.weight = nn.Parameter(torch.rand(n) + 0.5)

    def forward(self, pair, alpha: float = 0.5):
        return {"sum": pair[0] + alpha * pair[1] * self.inner.weight, "difference": pair[0] - pair[1]}


def get_inputs():
    return [[torch.randn(N), torch.randn(N)]]


def get_init_inputs():
    return [N]
