# torch_allowed: no cheat; with --allow-torch any right module passes
# verdict: pass, unattested
# flags: --allow-torch
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.silu(x)
