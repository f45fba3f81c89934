"""Constants that are no part of Model: drawn while the task is imported, and from the environment. The task of calls_test.sh."""
import os
import random

import torch
import torch.nn as nn

WEIGHTS = torch.randn(100)
SHIFT = random.random()
SCALE = float(os.environ.get("TASK_SCALE", "2"))
HERE = os.getpid()  # read by get_inputs alone


class Base(nn.Module):
    @property
    def scale(self):
        return SCALE


class Model(Base):
    def forward(self, x):
        return x * WEIGHTS * self.scale + SHIFT


def get_inputs():
    return [torch.randn(100) + 0 * HERE]


def get_init_inputs():
    return []
