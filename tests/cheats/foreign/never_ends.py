# never_ends: waits for ever
# verdict: hang
# flags: --allow-torch --run-deadline 6
import time

import torch

calls = 0


class ModelNew(torch.nn.Module):
    def forward(self, x):
        time.sleep(3600)
        return x
