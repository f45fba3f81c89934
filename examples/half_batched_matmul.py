"""Batched matrix product in fp16."""
import torch
import torch.nn as nn

BATCH = 128
M = 512
K = 1024
N = 2048


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.bmm(A, B)  # (BATCH,M,N)


def get_inputs():
    return [torch.rand(BATCH, M, K, dtype=torch.float16), torch.rand(BATCH, K, N, dtype=torch.float16)]


def get_init_inputs():
    return []
