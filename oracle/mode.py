# SPDX-License-Identifier: Apache-2.0
"""What the oracle's modes have in common: they see operators as they are called, and bring no compiler with them."""

from __future__ import annotations

from torch.utils._python_dispatch import TorchDispatchMode


class Mode(TorchDispatchMode):
    """PyTorch 2.11 keeps its compiler away from a mode's own code, and loads it for that at the first operator: four seconds."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False
