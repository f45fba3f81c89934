"""Everything but tensors that a call or a module can hold: names in a dict, None, a text, a number, a flag; attributes. The task of calls_test.sh."""
import torch
import torch.nn as nn

N = 1000


class Config:
    def __init__(self):
        self.scale = 1.5


class Model(nn.Module):
    def __init__(self, then=torch.neg):
        super().__init__()
        self.shift = 1.0
        self.then = then
        self.config = {"deep": Config(), "sizes": [[1, 2], [3, 4]]}
        self._hidden = 2.0
        self.part = nn.PReLU()

    def forward(self, pair, maybe, mode="double", *, factor=2.0, flip=False):
        y = pair["a"] * factor - pair["b"] + self.shift
        y = y * 2 if mode == "double" else y * 3
        y = self.part(self.then(y)) * self.config["deep"].scale + self.config["sizes"][1][0] * self._hidden
        y = -y if flip else y
        return y if maybe[1] is None else y + maybe[1]


def get_inputs():
    return [{"a": torch.randn(N), "b": torch.randn(N)}, [1, None]]


def get_init_inputs():
    return []
