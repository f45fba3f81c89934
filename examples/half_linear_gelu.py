"""Fused Linear and GELU in fp16."""
import torch
import torch.nn as nn

BATCH = 4096
FEATURES_IN = 2048
FEATURES_OUT = 8192


class Model(nn.Module):
    def __init__(self, features_in: int, features_out: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features_in, features_out, dtype=torch.float16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.gelu(self.linear(x))  # (BATCH,FEATURES_OUT)


def get_inputs():
    return [torch.randn(BATCH, FEATURES_IN, dtype=torch.float16)]


def get_init_inputs():
    return [FEATURES_IN, FEATURES_OUT]
