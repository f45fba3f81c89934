"""A small multilayer perceptron: two hidden layers with ReLU; six parameters are handed to the kernel."""
import torch
import torch.nn as nn

BATCH = 1024
FEATURES = 512
HIDDEN = 1024
CLASSES = 16


class Model(nn.Module):
    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.first = nn.Linear(features, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.last = nn.Linear(hidden, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.first(x))  # (BATCH,HIDDEN)
        x = torch.relu(self.second(x))  # (BATCH,HIDDEN)
        return self.last(x)  # (BATCH,CLASSES)


def get_inputs():
    return [torch.randn(BATCH, FEATURES)]


def get_init_inputs():
    return [FEATURES, HIDDEN, CLASSES]
