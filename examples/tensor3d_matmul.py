"""A three-dimensional tensor times a matrix: (BATCH,M,K) by (K,N), one product of BATCH * M rows."""
import torch
import torch.nn as nn

BATCH = 16
M = 1024
K = 2048
N = 768


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(A, B)  # (BATCH,M,N)


def get_inputs():
    return [torch.rand(BATCH, M, K), torch.rand(K, N)]


def get_init_inputs():
    return []
