"""Attention written out: the number of tokens comes from the call, the width is written into the kernel."""
import torch
import torch.nn as nn

TOKENS = 2048
WIDTH = 1024


class Model(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        scores = torch.softmax(q @ k.transpose(0, 1) * q.shape[1] ** -0.5, dim=1)
        return scores @ v


def get_inputs():
    return [torch.randn(TOKENS, WIDTH) for _ in range(3)]


def get_init_inputs():
    return []
