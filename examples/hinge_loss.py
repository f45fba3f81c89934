"""Loss: mean hinge loss; the targets, 1 or -1, are one per row."""
import torch
import torch.nn as nn

BATCH = 32768
DIM = 32768


class Model(nn.Module):
    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return torch.mean(torch.clamp(1 - predictions * targets, min=0))  # ()


def get_inputs():
    return [torch.rand(BATCH, DIM), torch.randint(0, 2, (BATCH, 1)).float() * 2 - 1]


def get_init_inputs():
    return []
