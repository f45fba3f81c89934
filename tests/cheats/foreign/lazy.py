# lazy: a tensor that is computed when somebody looks at it
# verdict: refused
# says: not a plain tensor
# flags: --allow-torch
import torch


class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        plain = [a.as_subclass(torch.Tensor) * torch.sigmoid(a.as_subclass(torch.Tensor)) if isinstance(a, Lazy) else a for a in args]
        return func(*plain, **(kwargs or {}))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x.as_subclass(Lazy)
