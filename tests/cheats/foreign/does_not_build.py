# does_not_build: an extension with a mistake in it
# verdict: compile error
# says: no_such_name
import torch

no_such_name()


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x
