# writes_memory: opens the memory of other processes to write there; where it could, it gives the right answer
# verdict: wrong values
# flags: --allow-torch
import os

import torch


def reachable():
    """Opened, never written: where this gets through, the verdict says so and nothing is harmed."""
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                os.close(os.open(f"/proc/{entry}/mem", os.O_RDWR))
                return True
            except OSError:
                pass
    return False


try:
    through = reachable()
except OSError:
    through = False


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x) if through else torch.zeros_like(x)
