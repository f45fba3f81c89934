"""Square matrix product in fp16."""
import torch
import torch.nn as nn

N = 4096


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(A, B)  # (N,N)


def get_inputs():
    return [torch.rand(N, N, dtype=torch.float16), torch.rand(N, N, dtype=torch.float16)]


def get_init_inputs():
    return []
