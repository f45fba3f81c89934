"""Matrix times a number that is an argument of forward: the kernel gets it as a host scalar."""
import torch
import torch.nn as nn

M = 65536
N = 16384


class Model(nn.Module):
    def forward(self, A: torch.Tensor, s: float) -> torch.Tensor:
        return A * s  # (M,N)


def get_inputs():
    return [torch.rand(M, N), 3.14]


def get_init_inputs():
    return []
