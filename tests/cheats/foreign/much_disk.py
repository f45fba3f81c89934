# much_disk: writes a file of a quarter of a gigabyte; where it could, it gives the right answer
# verdict: crash
# says: too large|No space|quota|may not
# flags: --allow-torch
import tempfile

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        with tempfile.TemporaryFile() as file:
            for _ in range(16):
                file.write(b"\1" * (1 << 24))
                file.flush()
        return x * torch.sigmoid(x)
