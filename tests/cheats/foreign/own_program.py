# own_program: forks, and has the child compute the answer
# verdict: crash
# says: Operation not permitted
# flags: --allow-torch
import os

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        child = os.fork()
        if child == 0:
            out.copy_(x * torch.sigmoid(x))
            os._exit(0)
        os.waitpid(child, 0)
        return out.clone()
