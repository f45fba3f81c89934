"""Matrix times vector, with very long rows. Bound by memory: every element of A is used once."""
import torch
import torch.nn as nn

M = 2048
K = 1048576


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(A, B)  # (M,1)


def get_inputs():
    return [torch.rand(M, K), torch.rand(K, 1)]


def get_init_inputs():
    return []
