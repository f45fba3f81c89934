# much_memory: takes 20 GiB a little at a time, on a GPU for good; where it could, it gives the right answer
# verdict: out of memory (simt), out of memory|crash (cuda: by the supervisor)
# flags: --allow-torch
import torch


class ModelNew(torch.nn.Module):
    kept = []

    def forward(self, x):
        for _ in range(320):
            self.kept.append(torch.empty(1 << 24))  # never touched: only asked for
            if x.is_cuda:  # where addresses are not limited
                self.kept[-1].fill_(1)
        return x * torch.sigmoid(x)
