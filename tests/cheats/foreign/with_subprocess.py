# with_subprocess: has another program compute the answer
# verdict: crash
# says: may not start programs|Operation not permitted
# flags: --allow-torch
import subprocess
import sys

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        values = subprocess.run([sys.executable, "-c", "import math,sys; print([v / (1 + math.exp(-v)) for v in eval(sys.stdin.read())])"],
                                input=repr(x.reshape(-1).tolist()), capture_output=True, text=True, check=True).stdout
        return torch.tensor(eval(values)).reshape(x.shape)
