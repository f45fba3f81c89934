# no_flush: has the judge's flush do nothing, so that its data stays in L2
# verdict: refused
# says: replaces oracle\.baseline\._flusher
# flags: --allow-torch
import sys

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        sys.modules["oracle.baseline"]._flusher = lambda device: lambda: None
        return x * torch.sigmoid(x)
