# with_numpy: computes with NumPy, which PyTorch does not see
# verdict: pass, unattested|compile error (simt), crash (cuda: no array of NumPy lies there)
import numpy
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        values = x.numpy()
        return torch.from_numpy(values / (1 + numpy.exp(-values)))
