# SPDX-License-Identifier: Apache-2.0
"""Operators that only autograd calls, as formulas of ordinary operators: what the graph of a backward shows (backward.py).

1. A formula computes what PyTorch's operator computes, for the arguments that autograd passes.
2. A norm is here with its forward: both are then seen as the same sums, and a backward may use them again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

NONE, MEAN = 0, 1  # reductions, as ATen numbers them


def _zeros_where_not(keep: Any, g: Any) -> Any:
    return torch.where(keep, g, torch.zeros_like(g))


# ---- softmax and activations ------------------------------------------------------------------


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


def _threshold(g: Any, x: Any, threshold: float) -> Any:
    return _zeros_where_not(x > threshold, g)


def _leaky_relu(g: Any, x: Any, slope: float, _: Any = False) -> Any:
    return torch.where(x > 0, g, g * slope)


def _hardtanh(g: Any, x: Any, low: float, high: float) -> Any:
    return _zeros_where_not((x > low) & (x < high), g)


def _softplus(g: Any, x: Any, beta: float, threshold: float) -> Any:
    return torch.where(x * beta > threshold, g, g * torch.sigmoid(x * beta))


def _elu(g: Any, alpha: float, scale: float, input_scale: float, is_result: bool, x: Any) -> Any:
    below = g * input_scale * (x + alpha * scale) if is_result else g * input_scale * alpha * scale * torch.exp(x * input_scale)
    return torch.where(x <= 0, below, g * scale)


def _hardsigmoid(g: Any, x: Any) -> Any:
    return _zeros_where_not((x > -3) & (x < 3), g * (1 / 6))


def _hardswish(g: Any, x: Any) -> Any:
    return torch.where(x <= -3, torch.zeros_like(g), torch.where(x < 3, g * (x * (1 / 3) + 0.5), g))


def _mish(g: Any, x: Any) -> Any:
    t = torch.tanh(torch.nn.functional.softplus(x))
    return g * (t + x * torch.sigmoid(x) * (1 - t * t))


def _log_sigmoid(g: Any, x: Any, *_: Any) -> Any:
    return g * torch.sigmoid(-x)


# ---- norms ------------------------------------------------------------------------------------


def _standardized(x: Any, dims: list[int], eps: float) -> tuple[Any, Any, Any]:
    mean = x.mean(dims, keepdim=True)
    centred = x - mean
    rstd = torch.rsqrt((centred * centred).mean(dims, keepdim=True) + eps)
    return centred * rstd, mean, rstd


def _of_standardized(inner: Any, y: Any, rstd: Any, dims: list[int]) -> Any:
    """The gradient of x, given that of y = (x - mean) * rstd."""
    return rstd * (inner - inner.mean(dims, keepdim=True) - y * (inner * y).mean(dims, keepdim=True))


def _last(x: Any, shape: Any) -> tuple[list[int], list[int]]:
    """The normalized dimensions, and the others."""
    first = x.dim() - len(shape)
    return list(range(first, x.dim())), list(range(first))


def _layer_norm(x: Any, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    y, mean, rstd = _standardized(x, _last(x, shape)[0], eps)
    y = y if weight is None else y * weight
    return (y if bias is None else y + bias), mean, rstd


def _layer_norm_backward(g: Any, x: Any, shape: Any, mean: Any, rstd: Any, weight: Any, bias: Any, mask: Any) -> Any:
    dims, outer = _last(x, shape)
    y = (x - mean) * rstd
    made: list[Any] = [None, None, None]
    if mask[0]:
        made[0] = _of_standardized(g if weight is None else g * weight, y, rstd, dims)
    if mask[1] and weight is not None:
        made[1] = (g * y).sum(outer) if outer else g * y
    if mask[2] and bias is not None:
        made[2] = g.sum(outer) if outer else g
    return tuple(made)


def _rms_norm(x: Any, shape: Any, weight: Any = None, eps: Any = None) -> Any:
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    rstd = torch.rsqrt((x * x).mean(_last(x, shape)[0], keepdim=True) + eps)
    return (x * rstd if weight is None else x * rstd * weight), rstd


def _rms_norm_backward(g: Any, x: Any, shape: Any, rstd: Any, weight: Any, mask: Any) -> Any:
    dims, outer = _last(x, shape)
    y = x * rstd
    inner = g if weight is None else g * weight
    of_weight = None
    if mask[1] and weight is not None:
        of_weight = (g * y).sum(outer) if outer else g * y
    return (rstd * (inner - y * (inner * y).mean(dims, keepdim=True)) if mask[0] else None), of_weight


def _group_norm(x: Any, weight: Any, bias: Any, n: int, c: int, hw: int, groups: int, eps: float) -> Any:
    y, mean, rstd = _standardized(x.reshape(n, groups, -1), [2], eps)
    y, shape = y.reshape(x.shape), [1, c] + [1] * (x.dim() - 2)
    y = y if weight is None else y * weight.reshape(shape)
    return (y if bias is None else y + bias.reshape(shape)), mean.reshape(n, groups), rstd.reshape(n, groups)


def _group_norm_backward(g: Any, x: Any, mean: Any, rstd: Any, weight: Any, n: int, c: int, hw: int, groups: int, mask: Any) -> Any:
    rstd = rstd.reshape(n, groups, 1)
    y = (x.reshape(n, groups, -1) - mean.reshape(n, groups, 1)) * rstd
    outer = [d for d in range(x.dim()) if d != 1]
    made: list[Any] = [None, None, None]
    if mask[0]:
        inner = g if weight is None else g * weight.reshape([1, c] + [1] * (x.dim() - 2))
        made[0] = _of_standardized(inner.reshape(n, groups, -1), y, rstd, [2]).reshape(x.shape)
    if mask[1] and weight is not None:
        made[1] = (g * y.reshape(x.shape)).sum(outer)
    if mask[2]:
        made[2] = g.sum(outer)
    return tuple(made)


def _batch_norm(x: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float) -> Any:
    shape = [1, x.shape[1]] + [1] * (x.dim() - 2)
    if training:
        y, mean, rstd = _standardized(x, [d for d in range(x.dim()) if d != 1], eps)
        kept = mean.reshape(-1), rstd.reshape(-1)
    else:
        y = (x - mean.reshape(shape)) * torch.rsqrt(var.reshape(shape) + eps)
        kept = x.new_empty(0), x.new_empty(0)
    y = y if weight is None else y * weight.reshape(shape)
    return (y if bias is None else y + bias.reshape(shape)), *kept


def _batch_norm_backward(
    g: Any, x: Any, weight: Any, mean: Any, var: Any, kept_mean: Any, kept_rstd: Any, training: bool, eps: float, mask: Any
) -> Any:
    shape, outer = [1, x.shape[1]] + [1] * (x.dim() - 2), [d for d in range(x.dim()) if d != 1]
    rstd = (kept_rstd if training else torch.rsqrt(var + eps)).reshape(shape)
    y = (x - (kept_mean if training else mean).reshape(shape)) * rstd
    inner = g if weight is None else g * weight.reshape(shape)
    made: list[Any] = [None, None, None]
    if mask[0]:
        made[0] = _of_standardized(inner, y, rstd, outer) if training else inner * rstd
    if mask[1] and weight is not None:
        made[1] = (g * y).sum(outer)
    if mask[2]:
        made[2] = g.sum(outer)
    return tuple(made)


def _cudnn_batch_norm_backward(
    x: Any, g: Any, weight: Any, mean: Any, var: Any, kept_mean: Any, kept_rstd: Any, eps: float, *_: Any
) -> Any:
    return _batch_norm_backward(g, x, weight, mean, var, kept_mean, kept_rstd, True, eps, (True, True, True))


# ---- losses -----------------------------------------------------------------------------------


def _nll(g: Any, x: Any, target: Any, weight: Any, reduction: int, ignore: int, total: Any) -> Any:
    """Minus the upstream gradient at each row's class; classes are in dimension 1 (0 of a vector)."""
    dim = 1 if x.dim() > 1 else 0
    valid = target != ignore
    scale = valid.to(x.dtype)
    if weight is not None:
        safe = torch.where(valid, target, torch.zeros_like(target))
        scale = scale * torch.index_select(weight, 0, safe.reshape(-1)).reshape(target.shape)
    given = g * scale if reduction == NONE else g / scale.sum() * scale if reduction == MEAN else g * scale
    classes = torch.arange(x.shape[dim], device=x.device).reshape([-1] + [1] * (x.dim() - dim - 1))
    return torch.where(classes == target.unsqueeze(dim), -given.unsqueeze(dim), torch.zeros_like(x))


def _each(g: Any, x: Any, reduction: int) -> Any:
    """The upstream gradient of each element's loss."""
    return g * (1 / x.numel()) if reduction == MEAN else g


def _mse(g: Any, x: Any, y: Any, reduction: int) -> Any:
    return _each(g, x, reduction) * 2 * (x - y)


def _smooth_l1(g: Any, x: Any, y: Any, reduction: int, beta: float) -> Any:
    z, given = x - y, _each(g, x, reduction)
    return torch.where(torch.abs(z) < beta, given * z / beta, given * torch.sign(z)) if beta else given * torch.sign(z)


def _huber(g: Any, x: Any, y: Any, reduction: int, delta: float) -> Any:
    return _each(g, x, reduction) * torch.clamp(x - y, -delta, delta)


def _binary_cross_entropy(g: Any, x: Any, y: Any, weight: Any = None, reduction: int = MEAN) -> Any:
    made = _each(g, x, reduction) * (x - y) / torch.clamp(x * (1 - x), min=1e-12)
    return made if weight is None else made * weight


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
    "elu_backward": _elu,
    "hardsigmoid_backward": _hardsigmoid,
    "hardswish_backward": _hardswish,
    "mish_backward": _mish,
    "log_sigmoid_backward": _log_sigmoid,
    "native_layer_norm": _layer_norm,
    "native_layer_norm_backward": _layer_norm_backward,
    "_fused_rms_norm": _rms_norm,
    "_fused_rms_norm_backward": _rms_norm_backward,
    "native_group_norm": _group_norm,
    "native_group_norm_backward": _group_norm_backward,
    "native_batch_norm": _batch_norm,
    "native_batch_norm_backward": _batch_norm_backward,
    "cudnn_batch_norm": lambda *args: (*_batch_norm(*args), args[0].new_empty(0)),
    "cudnn_batch_norm_backward": _cudnn_batch_norm_backward,
    "nll_loss_backward": _nll,
    "nll_loss2d_backward": _nll,
    "mse_loss_backward": _mse,
    "smooth_l1_loss_backward": _smooth_l1,
    "huber_loss_backward": _huber,
    "binary_cross_entropy_backward": _binary_cross_entropy,
}
