"""C = A B of positive numbers, with a K so long that errors of the factors average out."""
import torch
import torch.nn as nn

M = 16
N = 32
K = 8192


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b  # (M,N)


def get_inputs():
    return [torch.rand(M, K), torch.rand(K, N)]


def get_init_inputs():
    return []
