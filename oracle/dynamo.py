# SPDX-License-Identifier: Apache-2.0
"""Keeps `import torch._dynamo` out of processes that compile nothing: more than a second of each.

PyTorch's shape functions in Python (torch._refs, called for tensors without data) import it when one of them is first called, to
wrap it against being compiled. A function that already has its wrapper, here itself, needs no import.
"""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Iterator
from typing import Any

import torch

WRAPPER = "__dynamo_disable"  # torch/_compile.py


def _wrapped() -> Iterator[Any]:
    where = getattr(torch, "_compile", None)  # PyTorch 2.1 and later
    for f in gc.get_objects() if where else ():
        if type(f) is types.FunctionType and f.__globals__ is vars(where) and f.__code__.co_freevars[:1] == ("fn",):
            fn = (f.__closure__ or ())[0].cell_contents
            if isinstance(fn, types.FunctionType):
                yield fn


def unused() -> None:
    """Nothing is compiled so far."""
    if "torch._dynamo" not in sys.modules:
        for fn in list(_wrapped()):
            vars(fn).setdefault(WRAPPER, fn)


def used() -> None:
    """torch.compile follows: functions are wrapped as PyTorch has it."""
    for fn in list(_wrapped()):
        if vars(fn).get(WRAPPER) is fn:
            del vars(fn)[WRAPPER]
