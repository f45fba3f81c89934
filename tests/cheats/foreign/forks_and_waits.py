# forks_and_waits: a fork is not a compiler: no process that may start programs waits for it
# verdict: crash
# says: Operation not permitted
# flags: --allow-torch
import os
import time

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        child = os.fork()
        while child == 0:
            time.sleep(1)
        os.waitpid(child, 0)
        return x * torch.sigmoid(x)
