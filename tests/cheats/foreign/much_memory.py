# much_memory: takes 16 GiB of addresses a little at a time; where it could, it gives the right answer
# verdict: out of memory
# flags: --allow-torch
import torch


class ModelNew(torch.nn.Module):
    kept = []

    def forward(self, x):
        for _ in range(256):
            self.kept.append(torch.empty(1 << 24))  # never touched: only asked for
        return x * torch.sigmoid(x)
