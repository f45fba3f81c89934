# computes_in_thread: leaves the work to PyTorch in a thread, where a tracer of this one sees nothing
# verdict: pass, unattested (simt), refused (cuda: its launches are recorded)
import threading

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        worker = threading.Thread(target=lambda: torch.mul(x, torch.sigmoid(x), out=out))
        worker.start()
        worker.join()
        return out
