"""Matrix product with a small result and a long sum: few tiles, so K must be split to fill a device."""
import torch
import torch.nn as nn

M = 256
N = 256
K = 524288


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(A, B)  # (M,N)


def get_inputs():
    return [torch.rand(M, K), torch.rand(K, N)]


def get_init_inputs():
    return []
