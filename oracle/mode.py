# SPDX-License-Identifier: Apache-2.0
"""What the oracle's modes have in common: they see operators as they are called, and bring no compiler with them."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_NAMED_WRONGLY = (torch.ops.aten.bitwise_or.Tensor, torch.ops.aten.bitwise_xor.Tensor)


def called(func: Any, args: Any) -> Any:
    """PyTorch 1.13 names the wrong overload of `x | 2` and `x ^ 2`: the one that takes a tensor."""
    if func in _NAMED_WRONGLY and len(args) > 1 and not isinstance(args[1], torch.Tensor):
        return func.overloadpacket.Scalar
    return func


def _legacy_constructor() -> None:
    """PyTorch 1.13 fails in torch.Tensor(sizes or values) inside a mode, where torch.FloatTensor(...) does not."""
    original = torch.Tensor.__new__
    kinds = {torch.float32: "Float", torch.float64: "Double", torch.float16: "Half", torch.bfloat16: "BFloat16"}

    def new(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if cls is not torch.Tensor or torch.device(kwargs.get("device") or "cpu").type != "cpu":
            return original(cls, *args, **kwargs)
        return getattr(torch, kinds[torch.get_default_dtype()] + "Tensor")(*args, **kwargs)

    torch.Tensor.__new__ = new  # type: ignore[method-assign, assignment]


if int(torch.__version__.split(".")[0]) < 2:
    _legacy_constructor()


class Mode(TorchDispatchMode):
    """PyTorch 2.11 keeps its compiler away from a mode's own code, and loads it for that at the first operator: four seconds."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False
