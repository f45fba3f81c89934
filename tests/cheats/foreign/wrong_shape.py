# wrong_shape: one row too few
# verdict: wrong values
# says: shape|reference's
# flags: --allow-torch
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return (x * torch.sigmoid(x))[:-1]
