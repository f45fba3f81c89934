# host_thread: returns at once and has a thread compute
# verdict: refused|wrong values|non-finite
# flags: --allow-torch
import threading
import time

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)

        def later():
            time.sleep(0.05)
            out.copy_(x * torch.sigmoid(x))
            time.sleep(0.2)

        threading.Thread(target=later).start()
        return out
