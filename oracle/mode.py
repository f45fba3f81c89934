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


class Mode(TorchDispatchMode):
    """PyTorch 2.11 keeps its compiler away from a mode's own code, and loads it for that at the first operator: four seconds."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False
