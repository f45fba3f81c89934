# SPDX-License-Identifier: Apache-2.0
"""`x[i]` and `x[:, i] = y` where i is a tensor of one whole number: an index of the graph.

Hides how a tracer learns of them. PyTorch reads the number (item()) and selects with it; recorded like that, the graph would be
that of one draw. The forward runs as it is, so what it selects stays a view; only the node says `index`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from .graph import Tracer

NAMES = ("__getitem__", "__setitem__")


@contextlib.contextmanager
def places_traced(tracer: Tracer) -> Iterator[None]:
    """Beside a tracer. A function mode of PyTorch 1.13 does not see x[i]."""

    def watched(original: Any) -> Any:
        def call(*args: Any) -> Any:
            tracer.indexing = not tracer.following
            try:
                return original(*args)
            finally:
                tracer.indexing, tracer.place = False, None

        return call

    own = {name: vars(torch.Tensor)[name] for name in NAMES if name in vars(torch.Tensor)}
    for name in NAMES:
        setattr(torch.Tensor, name, watched(getattr(torch.Tensor, name)))
    try:
        yield
    finally:
        for name in NAMES:
            if name in own:
                setattr(torch.Tensor, name, own[name])
            else:
                delattr(torch.Tensor, name)
