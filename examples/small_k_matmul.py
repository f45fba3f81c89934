"""Matrix product with a short sum and a huge result: bound by writing it."""
import torch
import torch.nn as nn

M = 32768
N = 32768
K = 64


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(A, B)  # (M,N)


def get_inputs():
    return [torch.rand(M, K), torch.rand(K, N)]


def get_init_inputs():
    return []
