"""A four-dimensional tensor times a matrix: (B,I,J,L) by (L,K), as einsum writes it."""
import torch
import torch.nn as nn

B = 8
I = 256
J = 512
L = 256
K = 768


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.einsum("bijl,lk->bijk", A, B)  # (B,I,J,K)


def get_inputs():
    return [torch.rand(B, I, J, L), torch.rand(L, K)]


def get_init_inputs():
    return []
