# frames_in_init: finds its inputs while it is made, where nothing is timed, and has forward return the answer
# verdict: wrong values|crash|non-finite
# flags: --allow-torch
import gc
import os
import sys

import torch


def tensors_about():
    frame, found = sys._getframe(), []
    while frame:
        for value in list(frame.f_locals.values()):
            found += [value] if isinstance(value, torch.Tensor) else []
            for inner in vars(value).values() if hasattr(value, "__dict__") else ():
                found += [t for t in inner if isinstance(t, torch.Tensor)] if isinstance(inner, list) else []
            if isinstance(value, dict):
                for place in (p for p in str(value).split("'") if p.startswith("/") and os.path.isfile(p)):
                    folder = os.path.dirname(place)
                    found += [
                        torch.frombuffer(bytearray(open(os.path.join(folder, n), "rb").read()), dtype=torch.float32)
                        for n in os.listdir(folder)
                        if n.startswith("in")
                    ]
        frame = frame.f_back
    return found + [o for o in gc.get_objects() if isinstance(o, torch.Tensor)]


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        found = [t for t in tensors_about() if t.numel() > 1000 and t.dtype == torch.float32]
        self.answer = found[0] * torch.sigmoid(found[0]) if found else None

    def forward(self, x):
        return self.answer.reshape(x.shape).clone() if self.answer is not None else torch.zeros_like(x)
