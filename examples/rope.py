"""Rotary position embedding: the two halves of each head turned against each other, side by side again.

Bound by memory: each element is read once and written once; the table of angles is shared by batch and heads.
"""
import torch
import torch.nn as nn

BATCH = 16
HEADS = 32
LENGTH = 4096
WIDTH = 128  # of a head


class Model(nn.Module):
    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        a, b = x.chunk(2, dim=-1)  # (BATCH,HEADS,LENGTH,WIDTH/2) each
        return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def get_inputs():
    angles = torch.rand(LENGTH, WIDTH // 2) * 6.28
    return [torch.randn(BATCH, HEADS, LENGTH, WIDTH), angles.cos(), angles.sin()]


def get_init_inputs():
    return []
