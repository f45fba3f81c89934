# SPDX-License-Identifier: Apache-2.0
"""Attention of tensors without numbers as the one operator that it is on a GPU; without this it is a dozen, and others."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

ATTENTION = getattr(torch.nn.functional, "scaled_dot_product_attention", None)
WHOLE = getattr(torch.ops.aten, "_scaled_dot_product_efficient_attention", None)


def _added(mask: torch.Tensor, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """What is added to the scores, as PyTorch prepares it for its kernels."""
    if mask.dtype == torch.bool:
        nothing, never = (torch.scalar_tensor(x, dtype=q.dtype, device=mask.device) for x in (0.0, float("-inf")))
        mask = torch.where(mask, nothing, never)
    return mask.expand(q.shape[0], q.shape[1], q.shape[2], k.shape[2])


def _whole(q: Any, k: Any, v: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False, scale: Any = None, enable_gqa: bool = False) -> Any:
    """None: PyTorch's own way. That is also what a GPU takes for other shapes."""
    if any(t.device.type != "meta" or t.dim() != 4 for t in (q, k, v)) or dropout_p > 0 or q.shape[:2] != k.shape[:2] or (is_causal and attn_mask is not None):
        return None
    bias = None if attn_mask is None else _added(attn_mask.to("meta"), q, k)
    return WHOLE.default(q, k, v, bias, False, 0.0, is_causal, scale=scale)[0]  # type: ignore[union-attr]


class WholeAttention(TorchFunctionMode):
    """Inside `with`, scaled_dot_product_attention of shapes is one operator."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = _whole(*args, **(kwargs or {})) if func is ATTENTION and WHOLE is not None else None
        return func(*args, **(kwargs or {})) if made is None else made
