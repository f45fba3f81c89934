# changes_input: changes the question
# verdict: input modified
# flags: --allow-torch
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = x * torch.sigmoid(x)
        x.zero_()
        return y
