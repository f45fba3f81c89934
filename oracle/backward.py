# SPDX-License-Identifier: Apache-2.0
"""Gradients as a task: what is judged are the gradients of inputs and parameters for a drawn upstream gradient.

The upstream gradients are inputs like any other (names grad_OUTPUT, after the forward's), so that every distribution
reaches them too. The gradients come from torch's autograd, in float64 for the truth.

1. Operators of the backward pass that only autograd uses are traced as the formulas below, made of ordinary operators.
2. What has no gradient (integers, what the outputs do not depend on) is not an output.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .fault import use


def upstream(results: list[tuple[str, torch.Tensor]], seed: int) -> list[tuple[str, torch.Tensor]]:
    """A gradient for each floating point output."""
    made = []
    for k, (name, result) in enumerate(results):
        if result.is_floating_point():
            generator = torch.Generator("cpu").manual_seed(seed + 7 * k + 1)
            if result.device.type == "meta":
                value = torch.empty(result.shape, dtype=result.dtype, device="meta")
            else:
                value = torch.randn(result.shape, generator=generator).to(result.device, result.dtype)
            made.append((f"grad_{name}", value))
    return made


@contextlib.contextmanager
def parameters_with_gradients(model: torch.nn.Module) -> Iterator[list[tuple[str, torch.Tensor]]]:
    named = [(n, p) for n, p in model.named_parameters() if p.is_floating_point()]
    for _, parameter in named:
        parameter.requires_grad_(True)
    try:
        yield named
    finally:
        for _, parameter in named:
            parameter.requires_grad_(False)


def gradients(
    path: Any,
    forward: Callable[[], list[tuple[str, torch.Tensor]]],
    leaves: list[tuple[str, torch.Tensor]],
    given: list[torch.Tensor],
) -> list[tuple[str, torch.Tensor]]:
    """Of the leaves that matter, in their order; `given` are the upstream gradients."""
    with torch.enable_grad():
        results = [r for _, r in forward() if r.is_floating_point()]
        used = [(r, g) for r, g in zip(results, given) if r.requires_grad]
        if not used:
            raise use(f"{path}: no output of forward depends on a floating point input or parameter", "a backward needs one")
        found = torch.autograd.grad(
            [r for r, _ in used], [t for _, t in leaves], [g for _, g in used], allow_unused=True
        )
    return [(f"grad_{name}", g.detach()) for (name, _), g in zip(leaves, found) if g is not None]


# ---- formulas ---------------------------------------------------------------------------------


def _softmax(g: Any, y: Any, dim: int, *_: Any) -> Any:
    return (g - (g * y).sum(dim, keepdim=True)) * y


def _log_softmax(g: Any, y: Any, dim: int, *_: Any) -> Any:
    return g - torch.exp(y) * g.sum(dim, keepdim=True)


def _gelu(g: Any, x: Any, approximate: str = "none") -> Any:
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
        t = torch.tanh(inner)
        slope = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x)
        return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope)
    cdf = 0.5 * torch.erfc(-x * math.sqrt(0.5))  # 1 + erf(x) would cancel
    return g * (cdf + x * torch.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi)))


def _silu(g: Any, x: Any) -> Any:
    s = torch.sigmoid(x)
    return g * s * (1 + x * (1 - s))


def _layer_norm(x: Any, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    dims = list(range(x.dim() - len(shape), x.dim()))
    mean = x.mean(dims, keepdim=True)
    centred = x - mean
    rstd = torch.rsqrt((centred * centred).mean(dims, keepdim=True) + eps)
    y = centred * rstd
    y = y if weight is None else y * weight
    return (y if bias is None else y + bias), mean, rstd


def _layer_norm_backward(
    g: Any, x: Any, shape: Any, mean: Any, rstd: Any, weight: Any, bias: Any, mask: Any
) -> Any:
    dims = list(range(x.dim() - len(shape), x.dim()))
    outer = list(range(x.dim() - len(shape)))
    y = (x - mean) * rstd
    inner = g if weight is None else g * weight
    made: list[Any] = [None, None, None]
    if mask[0]:
        made[0] = rstd * (
            inner - inner.mean(dims, keepdim=True) - y * (inner * y).mean(dims, keepdim=True)
        )
    if mask[1] and weight is not None:
        made[1] = (g * y).sum(outer) if outer else g * y
    if mask[2] and bias is not None:
        made[2] = g.sum(outer) if outer else g
    return tuple(made)


def _threshold(g: Any, x: Any, threshold: float) -> Any:
    return torch.where(x > threshold, g, torch.zeros_like(g))


def _leaky_relu(g: Any, x: Any, slope: float, _: Any = False) -> Any:
    return torch.where(x > 0, g, g * slope)


def _hardtanh(g: Any, x: Any, low: float, high: float) -> Any:
    return torch.where((x > low) & (x < high), g, torch.zeros_like(g))


def _softplus(g: Any, x: Any, beta: float, threshold: float) -> Any:
    return torch.where(x * beta > threshold, g, g * torch.sigmoid(x * beta))


FORMULAS: dict[str, Callable[..., Any]] = {
    "_softmax_backward_data": _softmax,
    "_log_softmax_backward_data": _log_softmax,
    "sigmoid_backward": lambda g, y: g * (1 - y) * y,
    "tanh_backward": lambda g, y: g * (1 - y * y),
    "threshold_backward": _threshold,
    "leaky_relu_backward": _leaky_relu,
    "hardtanh_backward": _hardtanh,
    "softplus_backward": _softplus,
    "gelu_backward": _gelu,
    "silu_backward": _silu,
    "native_layer_norm": _layer_norm,
    "native_layer_norm_backward": _layer_norm_backward,
}
