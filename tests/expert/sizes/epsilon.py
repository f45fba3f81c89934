"""An epsilon that grows with the size, in a layer norm."""
import torch
import torch.nn as nn

ROWS = 4096
COLUMNS = 32768


class Model(nn.Module):
    def __init__(self, columns: int):
        super().__init__()
        self.norm = nn.LayerNorm(columns, eps=1e-3 * columns)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return [COLUMNS]
