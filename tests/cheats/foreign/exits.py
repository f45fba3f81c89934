# exits: a process that ended well
# verdict: crash
# flags: --allow-torch
import os

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        os._exit(0)
