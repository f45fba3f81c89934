# SPDX-License-Identifier: Apache-2.0
"""Decompose an operator into primitives (its body) from which a kernel without a recipe can be written.

A node of the description whose operator has a formula here gets `body` (nodes with ids of their own, which read the
same tensors) and `made` (which of them are its results). Matchers that know the operator itself ignore them.

1. A formula is ordinary PyTorch; it is traced on shapes alone, so a body costs no arithmetic and no memory.
2. A formula that fails on shapes (a torch that has no such kernel) gives no body: the engineer then refuses the operator.
3. Our formulas are preferred to torch's decompositions: ours keep sums in one pass and use only available primitives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from . import (
    derivatives,
    formulas_complex,
    formulas_counts,
    formulas_gradients,
    formulas_images,
    formulas_linalg,
    formulas_more,
    formulas_rare,
    formulas_scatter,
    formulas_sort,
    formulas_special,
    recurrent,
)
from .graph import Graph, Node, Tracer
from .task import DTYPES

MAX_BODY = 3000  # nodes of one body
_TYPES = {name: dtype for dtype, name in DTYPES.items()}


# ---- softmax and norms ------------------------------------------------------------------------


def _softmax(x: Any, dim: int, half: bool = False, dtype: Any = None) -> Any:
    if x.dim() == 0:
        return torch.ones_like(x)
    e = torch.exp(x - x.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


def _safe_softmax(x: Any, dim: int, dtype: Any = None) -> Any:
    """Zeros where everything is masked."""
    top = x.amax(dim, keepdim=True)
    masked = top == -math.inf
    e = torch.where(masked, 0.0, torch.exp(x - torch.where(masked, 0.0, top)))
    return e / torch.where(masked, 1.0, e.sum(dim, keepdim=True))


def _log_softmax(x: Any, dim: int, half: bool = False) -> Any:
    if x.dim() == 0:
        return torch.zeros_like(x)
    y = x - x.amax(dim, keepdim=True)
    return y - torch.log(torch.exp(y).sum(dim, keepdim=True))


def _logsumexp(x: Any, dim: Any, keepdim: bool = False) -> Any:
    most = x.amax(dim, keepdim=True)
    most = torch.where(torch.abs(most) == math.inf, torch.zeros_like(most), most)
    total = torch.log(torch.exp(x - most).sum(dim, keepdim=True)) + most
    return total if keepdim else total.reshape(_without(x, dim))


def _without(x: Any, dim: Any) -> list[int]:
    dims = _dims(x, dim)
    return [s for k, s in enumerate(x.shape) if k not in dims]


def _dims(x: Any, dim: Any) -> list[int]:
    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        return list(range(x.dim()))
    return [d % max(x.dim(), 1) for d in (dim if isinstance(dim, (list, tuple)) else [dim])]


def _standardize(x: Any, dims: list[int], eps: float) -> tuple[Any, Any, Any]:
    mean = x.mean(dims, keepdim=True)
    centred = x - mean
    rstd = torch.rsqrt((centred * centred).mean(dims, keepdim=True) + eps)
    return centred * rstd, mean, rstd


def _layer_norm(x: Any, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    y, mean, rstd = _standardize(x, list(range(x.dim() - len(shape), x.dim())), eps)
    y = y if weight is None else y * weight
    return (y if bias is None else y + bias), mean, rstd


def _rms_norm(x: Any, shape: Any, weight: Any = None, eps: Any = None) -> Any:
    dims = list(range(x.dim() - len(shape), x.dim()))
    rstd = torch.rsqrt((x * x).mean(dims, keepdim=True) + (torch.finfo(x.dtype).eps if eps is None else eps))
    return (x * rstd if weight is None else x * rstd * weight), rstd


def _group_norm(x: Any, weight: Any, bias: Any, n: int, c: int, hw: int, groups: int, eps: float) -> Any:
    y, mean, rstd = _standardize(x.reshape(n, groups, c // groups * hw), [2], eps)  # n may be 0
    y = y.reshape(x.shape)
    shape = [1, c] + [1] * (x.dim() - 2)
    y = y if weight is None else y * weight.reshape(shape)
    return (y if bias is None else y + bias.reshape(shape)), mean.reshape(n, groups), rstd.reshape(n, groups)


def _batch_norm(
    x: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float
) -> Any:
    shape = [1, x.shape[1]] + [1] * (x.dim() - 2)
    if training:
        y, batch_mean, rstd = _standardize(x, [d for d in range(x.dim()) if d != 1], eps)
        made = (batch_mean.reshape(-1), rstd.reshape(-1))
    else:
        y = (x - mean.reshape(shape)) * torch.rsqrt(var.reshape(shape) + eps)
        made = (x.new_empty(0), x.new_empty(0))
    y = y if weight is None else y * weight.reshape(shape)
    return (y if bias is None else y + bias.reshape(shape)), *made


def _batch_norm_no_stats(x: Any, weight: Any, bias: Any, training: bool, momentum: float, eps: float) -> Any:
    return _batch_norm(x, weight, bias, None, None, True, momentum, eps)


def _batch_norm_eval(x: Any, weight: Any, bias: Any, mean: Any, var: Any, momentum: float, eps: float) -> Any:
    return _batch_norm(x, weight, bias, mean, var, False, momentum, eps)


def _var(x: Any, dim: Any = None, correction: Any = 1, keepdim: bool = False, unbiased: Any = None) -> Any:
    if isinstance(dim, bool):  # var(x, unbiased)
        dim, correction = None, int(dim)
    if isinstance(correction, bool):
        correction = int(correction)
    correction = 1 if correction is None else correction
    dims = _dims(x, dim)
    count = math.prod(x.shape[d] for d in dims)
    centred = x - x.mean(dims, keepdim=True)
    return (centred * centred).sum(dims, keepdim=keepdim) / max(count - correction, 0)


def _std(x: Any, *args: Any, **kwargs: Any) -> Any:
    return torch.sqrt(_var(x, *args, **kwargs))


def _var_mean(x: Any, dim: Any = None, correction: Any = 1, keepdim: bool = False) -> Any:
    return _var(x, dim, correction, keepdim), x.mean(_dims(x, dim), keepdim=keepdim)


def _std_mean(x: Any, dim: Any = None, correction: Any = 1, keepdim: bool = False) -> Any:
    return _std(x, dim, correction, keepdim), x.mean(_dims(x, dim), keepdim=keepdim)


def _vector_norm(x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    ord = 2 if ord is None else ord
    dims, x = _dims(x, dim), x if dtype is None else x.to(dtype)
    if ord == 2:
        return torch.sqrt((x * x).sum(dims, keepdim=keepdim))
    size = torch.abs(x)
    if ord == 1:
        return size.sum(dims, keepdim=keepdim)
    if ord == 0:
        return (x != 0).to(x.dtype).sum(dims, keepdim=keepdim)
    if ord == math.inf:
        return size.amax(dims, keepdim=keepdim)
    if ord == -math.inf:
        return size.amin(dims, keepdim=keepdim)
    return torch.pow(torch.pow(size, ord).sum(dims, keepdim=keepdim), 1.0 / ord)


def _norm(x: Any, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    return _vector_norm(x, 2 if p is None else p, dim, keepdim, dtype)


# ---- products ---------------------------------------------------------------------------------


def _scaled(x: Any, factor: Any) -> Any:
    return x if factor == 1 else x * factor


def _addmm(c: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    product = _scaled(torch.mm(a, b), alpha)
    return product if beta == 0 else product + _scaled(c, beta)


def _baddbmm(c: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    product = _scaled(torch.bmm(a, b), alpha)
    return product if beta == 0 else product + _scaled(c, beta)


def _addbmm(c: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return _scaled(torch.bmm(a, b).sum(0), alpha) + _scaled(c, beta)


def _mv(a: Any, v: Any) -> Any:
    return (a * v).sum(1)


def _addmv(c: Any, a: Any, v: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return _scaled(_mv(a, v), alpha) + _scaled(c, beta)


def _addr(c: Any, u: Any, v: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return _scaled(u.unsqueeze(1) * v, alpha) + _scaled(c, beta)


# ---- attention --------------------------------------------------------------------------------


def _attention(
    q: Any, k: Any, v: Any, mask: Any = None, p: float = 0.0, causal: bool = False, scale: Any = None
) -> Any:
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    if k.shape[1] != q.shape[1]:  # grouped heads
        k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
        v = v.repeat_interleave(q.shape[1] // v.shape[1], 1)
    scores = torch.matmul(q, k.transpose(-2, -1)) * scale
    if causal:
        rows = torch.arange(q.shape[-2], device=q.device).unsqueeze(1)
        keys = torch.arange(k.shape[-2], device=q.device)
        scores = torch.where(keys > rows, torch.full_like(scores, -math.inf), scores)
    if mask is not None:
        scores = torch.where(mask, scores, torch.full_like(scores, -math.inf)) if mask.dtype == torch.bool else scores + mask
    return torch.matmul(torch.softmax(scores, -1), v)


def _flash_cpu(q: Any, k: Any, v: Any, p: float = 0.0, causal: bool = False, *, attn_mask: Any = None, scale: Any = None) -> Any:
    return _attention(q, k, v, attn_mask, p, causal, scale), None


def _attention_math(
    q: Any, k: Any, v: Any, mask: Any = None, p: float = 0.0, causal: bool = False, dropout: Any = None, *, scale: Any = None, enable_gqa: bool = False
) -> Any:
    return _attention(q, k, v, mask, p, causal, scale), None


def _attention_113(q: Any, k: Any, v: Any, mask: Any = None, p: float = 0.0, weights: bool = False, causal: bool = False) -> Any:
    return _attention(q, k, v, mask, p, causal), None


def _multi_head(
    q: Any, k: Any, v: Any, dim: int, heads: int, weight: Any, bias: Any, out_weight: Any, out_bias: Any,
    mask: Any = None, need_weights: bool = True, average: bool = True, mask_type: Any = None,
) -> Any:
    """Batch first; the projections of q, k and v are rows of one weight."""
    parts = [
        (torch.matmul(x, weight[i * dim : (i + 1) * dim].t()) + bias[i * dim : (i + 1) * dim])
        .reshape(x.shape[0], x.shape[1], heads, dim // heads).transpose(1, 2)
        for i, x in enumerate((q, k, v))
    ]
    scores = torch.matmul(parts[0], parts[1].transpose(-2, -1)) / math.sqrt(dim // heads)
    if mask is not None:
        raise NotImplementedError("a mask in the fast path")
    weights = torch.softmax(scores, -1)
    y = torch.matmul(weights, parts[2]).transpose(1, 2).reshape(q.shape[0], q.shape[1], dim)
    y = torch.matmul(y, out_weight.t()) + out_bias
    if not need_weights:
        return y, None
    return y, weights.mean(1) if average else weights


def _encoder_layer(
    x: Any, dim: int, heads: int, qkv_weight: Any, qkv_bias: Any, out_weight: Any, out_bias: Any, gelu: bool,
    norm_first: bool, eps: float, w1: Any, b1: Any, w2: Any, b2: Any, f1: Any, c1: Any, f2: Any, c2: Any,
    mask: Any = None, mask_type: Any = None,
) -> Any:
    def attend(y: Any) -> Any:
        return _multi_head(y, y, y, dim, heads, qkv_weight, qkv_bias, out_weight, out_bias, mask, False)[0]

    def forward(y: Any) -> Any:
        inner = torch.matmul(y, f1.t()) + c1
        return torch.matmul(F.gelu(inner) if gelu else torch.relu(inner), f2.t()) + c2

    def norm(y: Any, w: Any, b: Any) -> Any:
        return _layer_norm(y, [dim], w, b, eps)[0]

    if norm_first:
        x = x + attend(norm(x, w1, b1))
        return x + forward(norm(x, w2, b2))
    x = norm(x + attend(x), w1, b1)
    return norm(x + forward(x), w2, b2)


# ---- losses -----------------------------------------------------------------------------------

NONE, MEAN, SUM = 0, 1, 2


def _reduced(x: Any, reduction: int) -> Any:
    return x if reduction == NONE else x.mean() if reduction == MEAN else x.sum()


def _smooth_l1(x: Any, y: Any, reduction: int = MEAN, beta: float = 1.0) -> Any:
    d = torch.abs(x - y)
    return _reduced(d if beta == 0 else torch.where(d < beta, d * d * (0.5 / beta), d - 0.5 * beta), reduction)


def _huber(x: Any, y: Any, reduction: int = MEAN, delta: float = 1.0) -> Any:
    d = torch.abs(x - y)
    return _reduced(torch.where(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta)), reduction)


def _bce(x: Any, y: Any, weight: Any = None, reduction: int = MEAN) -> Any:
    loss = -(y * torch.clamp(torch.log(x), min=-100) + (1 - y) * torch.clamp(torch.log1p(-x), min=-100))
    return _reduced(loss if weight is None else loss * weight, reduction)


def _bce_logits(x: Any, y: Any, weight: Any = None, pos_weight: Any = None, reduction: int = MEAN) -> Any:
    tail = torch.log1p(torch.exp(-torch.abs(x))) + torch.clamp(-x, min=0)
    loss = (1 - y) * x + (tail if pos_weight is None else (1 + (pos_weight - 1) * y) * tail)
    return _reduced(loss if weight is None else loss * weight, reduction)


def _nll(x: Any, target: Any, weight: Any, reduction: int, ignore: int) -> Any:
    """Classes in dimension 1 (0 of a vector)."""
    dim = 1 if x.dim() > 1 else 0
    valid = target != ignore
    safe = torch.where(valid, target, torch.zeros_like(target))
    picked = -torch.gather(x, dim, safe.unsqueeze(dim)).squeeze(dim)
    scale = valid.to(x.dtype) if weight is None else torch.where(valid, torch.index_select(weight, 0, safe.reshape(-1)).reshape(safe.shape), torch.zeros_like(picked))
    picked = torch.where(valid, picked if weight is None else picked * scale, torch.zeros_like(picked))
    total = scale.sum()
    if reduction == NONE:
        return picked, total
    return (picked.sum() / total if reduction == MEAN else picked.sum()), total


def _soft_margin(x: Any, y: Any, reduction: int = MEAN) -> Any:
    return _reduced(torch.log1p(torch.exp(-y * x)), reduction)


def _multi_margin(x: Any, target: Any, p: Any = 1, margin: Any = 1, weight: Any = None, reduction: int = MEAN) -> Any:
    rows = x if x.dim() > 1 else x.unsqueeze(0)
    target = target.reshape(-1, 1)
    z = torch.clamp(margin - torch.gather(rows, 1, target) + rows, min=0)
    z = z if p == 1 else z * z
    z = z if weight is None else z * weight[target]
    own = torch.arange(rows.shape[1], device=x.device) == target
    loss = torch.where(own, torch.zeros_like(z), z).sum(1) / rows.shape[1]
    return _reduced(loss if x.dim() > 1 else loss.squeeze(0), reduction)


def _cdist(x: Any, y: Any, p: float, mode: Any = None) -> Any:
    return _vector_norm(x.unsqueeze(-2) - y.unsqueeze(-3), p, [-1])


def _euclidean(x: Any, y: Any) -> Any:
    return _cdist(x, y, 2.0)


# ---- others -----------------------------------------------------------------------------------


def _glu(x: Any, dim: int = -1) -> Any:
    a, b = x.chunk(2, dim)
    return a * torch.sigmoid(b)


def _aminmax(x: Any, *, dim: Any = None, keepdim: bool = False) -> Any:
    dims = _dims(x, dim)
    return x.amin(dims, keepdim=keepdim), x.amax(dims, keepdim=keepdim)


def _count_nonzero(x: Any, dim: Any = None) -> Any:
    return (x != 0).to(torch.int64).sum(_dims(x, dim))


def _nansum(x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    return torch.where(torch.isnan(x), torch.zeros_like(x), x).sum(_dims(x, dim), keepdim=keepdim)


def _trace(x: Any) -> Any:
    return torch.diagonal(x).sum()


def _repeat_interleave(x: Any, repeats: int, dim: Any = None, **kwargs: Any) -> Any:
    x = x.reshape(-1) if dim is None else x
    dim = (0 if dim is None else dim) % x.dim()
    index = torch.arange(x.shape[dim] * repeats, device=x.device) // repeats
    return torch.index_select(x, dim, index)


def _searchsorted(sorted_: Any, values: Any, *, out_int32: bool = False, right: bool = False, side: Any = None, sorter: Any = None) -> Any:
    sorted_ = sorted_ if sorter is None else torch.gather(sorted_, -1, sorter)
    made = formulas_sort.search(sorted_, values, right or side == "right")
    return made.to(torch.int32) if out_int32 else made


def _bucketize(values: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Any:
    return _searchsorted(boundaries, values, out_int32=out_int32, right=right)


def _index_fill(x: Any, dim: int, index: Any, value: Any) -> Any:
    shape = [1] * x.dim()
    shape[dim] = x.shape[dim]
    hit = (torch.arange(x.shape[dim], device=x.device).unsqueeze(1) == index.reshape(1, -1)).any(1).reshape(shape)
    return torch.where(hit, value.to(x.dtype) if isinstance(value, torch.Tensor) else torch.full_like(x, value), x)


def _lstm_layer(x: Any, w: list[Any], h: Any, c: Any, reverse: bool) -> Any:
    """x (time, batch, features)."""
    gates = torch.matmul(x, w[0].t()) + (w[2] + w[3] if len(w) > 2 else 0)
    steps = range(x.shape[0] - 1, -1, -1) if reverse else range(x.shape[0])
    made: list[Any] = [None] * x.shape[0]
    for t in steps:
        i, f, g, o = (gates[t] + torch.mm(h, w[1].t())).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        made[t] = h
    return torch.stack(made), h, c


def _mkldnn_rnn(
    x: Any, w0: Any, w1: Any, w2: Any, w3: Any, h: Any, c: Any, reverse: bool, batch_sizes: Any, mode: int,
    hidden: int, layers: int, has_biases: bool, bidirectional: bool, batch_first: bool, train: bool,
) -> Any:
    if mode != 2 or batch_sizes:
        raise NotImplementedError("only LSTM")
    y, h, c = _lstm_layer(x, [w0, w1, w2, w3] if has_biases else [w0, w1], h.reshape(-1, hidden), c.reshape(-1, hidden), reverse)
    return y, h.unsqueeze(0), c.unsqueeze(0), x.new_empty(0)


def _resized(x: Any, size: Any, **kwargs: Any) -> Any:
    if math.prod(size) > x.numel():
        raise NotImplementedError("elements that were never written")
    return x.reshape(-1)[: math.prod(size)].reshape(list(size))


# views that are a tensor of their own
_COPIES: dict[str, Callable[..., Any]] = {
    "alias_copy": lambda x: x.clone(),
    "detach_copy": lambda x: x.clone(),
    "as_strided_copy": lambda x, *a, **k: torch.as_strided(x, *a, **k),
    "diagonal_copy": lambda x, *a, **k: torch.diagonal(x, *a, **k),
    "expand_copy": lambda x, size, **k: x.expand(list(size)),
    "permute_copy": lambda x, dims: x.permute(list(dims)),
    "transpose_copy": lambda x, a, b: x.transpose(a, b),
    "t_copy": lambda x: x.t(),
    "select_copy": lambda x, dim, index: x.select(dim, index),
    "slice_copy": lambda x, *a, **k: torch.ops.aten.slice(x, *a, **k),
    "squeeze_copy": lambda x, *dim: x.squeeze(*dim),
    "unsqueeze_copy": lambda x, dim: x.unsqueeze(dim),
    "unfold_copy": lambda x, *a: x.unfold(*a),
    "view_copy": lambda x, size: x.reshape(list(size)),
    "_reshape_copy": lambda x, size: x.reshape(list(size)),
    "split_copy": lambda x, *a, **k: torch.split(x, *a, **k),
    "split_with_sizes_copy": lambda x, *a, **k: torch.split_with_sizes(x, *a, **k),
    "unbind_copy": lambda x, dim=0: torch.unbind(x, dim),
}

BODIES: dict[str, Callable[..., Any]] = {
    **derivatives.FORMULAS,
    **formulas_gradients.BODIES,
    **formulas_rare.BODIES,
    **_COPIES,
    "resize_": _resized,
    "take": lambda x, i: torch.index_select(x.reshape(-1), 0, torch.where(i < 0, i + x.numel(), i).reshape(-1)).reshape(i.shape),
    "sort": formulas_sort.sorted,
    "topk": formulas_sort.topk,
    "kthvalue": formulas_sort.kth,
    "median": formulas_sort.median,
    "scatter": formulas_scatter.scatter,
    "scatter_add": formulas_scatter.scatter_add,
    "scatter_reduce": formulas_scatter.scatter_reduce,
    "index_add": formulas_scatter.index_add,
    "index_copy": formulas_scatter.index_copy,
    "index_put": formulas_scatter.index_put,
    "_index_put_impl": formulas_scatter.index_put,
    "_softmax": _softmax,
    "_safe_softmax": _safe_softmax,
    "_log_softmax": _log_softmax,
    "logsumexp": _logsumexp,
    "native_layer_norm": _layer_norm,
    "_fused_rms_norm": _rms_norm,
    "native_group_norm": _group_norm,
    "native_batch_norm": _batch_norm,
    "cudnn_batch_norm": lambda x, w, b, m, v, training, momentum, eps: (*_batch_norm(x, w, b, m, v, training, momentum, eps), None),
    "_native_batch_norm_legit": lambda *a: _batch_norm_no_stats(*a) if len(a) == 6 else _batch_norm(*a),
    "_native_batch_norm_legit_no_training": _batch_norm_eval,
    "_batch_norm_no_update": lambda *a: (*_batch_norm_eval(*a), None),
    "var": _var,
    "std": _std,
    "var_mean": _var_mean,
    "std_mean": _std_mean,
    "linalg_vector_norm": _vector_norm,
    "norm": _norm,
    "addmm": _addmm,
    "baddbmm": _baddbmm,
    "addbmm": _addbmm,
    "mv": _mv,
    "addmv": _addmv,
    "dot": lambda a, b: (a * b).sum(),
    "vdot": lambda a, b: (a * b).sum(),
    "addr": _addr,
    "ger": lambda u, v: u.unsqueeze(1) * v,
    "_scaled_dot_product_flash_attention_for_cpu": _flash_cpu,
    "_scaled_dot_product_attention_math": _attention_math,
    "_scaled_dot_product_attention": _attention_113,
    "_scaled_dot_product_flash_attention": lambda q, k, v, p=0.0, causal=False, debug=False, *, scale=None: (
        _attention(q, k, v, None, p, causal, scale), None, None, None, None, None, None, None, None),
    "_scaled_dot_product_efficient_attention": lambda q, k, v, mask, lse, p=0.0, causal=False, *, scale=None: (
        _attention(q, k, v, mask, p, causal, scale), None, None, None),
    "_scaled_dot_product_cudnn_attention": lambda q, k, v, mask, lse, p=0.0, causal=False, debug=False, *, scale=None: (
        _attention(q, k, v, mask, p, causal, scale), None, None, None, None, None, None, None, None),
    "_native_multi_head_attention": _multi_head,
    "_transformer_encoder_layer_fwd": _encoder_layer,
    "mse_loss": lambda x, y, reduction=MEAN: _reduced((x - y) * (x - y), reduction),
    "l1_loss": lambda x, y, reduction=MEAN: _reduced(torch.abs(x - y), reduction),
    "smooth_l1_loss": _smooth_l1,
    "huber_loss": _huber,
    "binary_cross_entropy": _bce,
    "binary_cross_entropy_with_logits": _bce_logits,
    "nll_loss_forward": _nll,
    "nll_loss2d_forward": _nll,
    "soft_margin_loss": _soft_margin,
    "multi_margin_loss": _multi_margin,
    "_cdist_forward": _cdist,
    "cdist": _cdist,
    "_euclidean_dist": _euclidean,
    "upsample_linear1d": formulas_images.linear(1),
    "upsample_bilinear2d": formulas_images.linear(2),
    "upsample_trilinear3d": formulas_images.linear(3),
    "upsample_nearest1d": formulas_images.nearest(1, False),
    "upsample_nearest2d": formulas_images.nearest(2, False),
    "upsample_nearest3d": formulas_images.nearest(3, False),
    "_upsample_nearest_exact1d": formulas_images.nearest(1, True),
    "_upsample_nearest_exact2d": formulas_images.nearest(2, True),
    "_upsample_nearest_exact3d": formulas_images.nearest(3, True),
    "upsample_bicubic2d": formulas_images.bicubic,
    "pixel_shuffle": formulas_images.pixel_shuffle,
    "pixel_unshuffle": formulas_images.pixel_unshuffle,
    "channel_shuffle": formulas_images.channel_shuffle,
    "native_channel_shuffle": formulas_images.channel_shuffle,
    "im2col": formulas_images.im2col,
    "glu": _glu,
    "aminmax": _aminmax,
    "count_nonzero": _count_nonzero,
    "nansum": _nansum,
    "trace": _trace,
    "repeat_interleave": _repeat_interleave,
    "searchsorted": _searchsorted,
    "bucketize": _bucketize,
    "index_fill": _index_fill,
    "mkldnn_rnn_layer": _mkldnn_rnn,
    "affine_grid_generator": formulas_more.affine_grid,
    "grid_sampler_2d": formulas_more.grid_sampler_2d,
    "cudnn_grid_sampler": lambda x, grid: formulas_more.grid_sampler_2d(x, grid, 0, 0, True),
    "col2im": formulas_more.col2im,
    "max_unpool2d": formulas_more.max_unpool,
    "max_unpool3d": formulas_more.max_unpool,
    "rot90": formulas_more.rot90,
    "_trilinear": formulas_more.trilinear,
    "linalg_cross": formulas_more.cross,
    "_pdist_forward": formulas_more.pdist,
    "renorm": formulas_more.renorm,
    "_weight_norm_interface": formulas_more.weight_norm,
    "triu_indices": formulas_more.triu_indices,
    "tril_indices": formulas_more.tril_indices,
    "isin": formulas_more.isin,
    "histc": formulas_more.histc,
    "masked_scatter": formulas_more.masked_scatter,
    "nanmedian": formulas_more.nanmedian,
    "_embedding_bag": formulas_more.embedding_bag,
    "_embedding_bag_forward_only": formulas_more.embedding_bag,
    "hann_window": formulas_more.hann_window,
    "hamming_window": formulas_more.hamming_window,
    "blackman_window": formulas_more.blackman_window,
    "bartlett_window": formulas_more.bartlett_window,
    "__lshift__": lambda x, n: torch.bitwise_left_shift(x, n),
    "__rshift__": lambda x, n: torch.bitwise_right_shift(x, n),
    "recurrent": recurrent.formula,
    "mode": formulas_counts.mode,
    "bincount": formulas_counts.bincount,
    "multilabel_margin_loss_forward": formulas_counts.multilabel_margin,
    "_ctc_loss": formulas_counts.ctc_loss,
    "digamma": formulas_special.digamma,
    "polygamma": formulas_special.polygamma,
    "special_zeta": formulas_special.zeta,
    "igamma": formulas_special.igamma,
    "igammac": formulas_special.igammac,
    "special_i0e": formulas_special.i0e,
    "special_i1e": formulas_special.i1e,
    "special_entr": formulas_special.entr,
    "special_xlog1py": formulas_special.xlog1py,
    "special_ndtr": formulas_special.ndtr,
    "special_log_ndtr": formulas_special.log_ndtr,
    "mvlgamma": formulas_special.mvlgamma,
    "logaddexp2": formulas_special.logaddexp2,
    "linalg_inv_ex": formulas_linalg.inverse,
    "_linalg_solve_ex": formulas_linalg.solve,
    "_linalg_det": formulas_linalg.determinant,
    "_linalg_slogdet": formulas_linalg.sign_and_log,
    "linalg_cholesky_ex": formulas_linalg.cholesky,
    "linalg_solve_triangular": formulas_linalg.solve_triangular,
    "triangular_solve": formulas_linalg.triangular_solve,
    "cholesky_solve": formulas_linalg.cholesky_solve,
    "cholesky_inverse": formulas_linalg.cholesky_inverse,
}


# ---- tracing them -----------------------------------------------------------------------------


def element_type(name: str) -> torch.dtype:
    return _TYPES[name]


def _name(node: Node) -> str:
    """What it writes in place is the same value."""
    return node.name if node.name in BODIES or not node.name.endswith("_") else node.name[:-1]


def is_complex(node: Node) -> bool:
    return any(part["dtype"].startswith("complex") for part in node.parts)


def _listed(made: Any) -> list[Any]:
    return list(made) if isinstance(made, (list, tuple)) and not isinstance(made, formulas_complex.Pair) else [made]


def arguments(node: Node, tensor: Callable[[dict[str, Any]], Any]) -> tuple[list[Any], dict[str, Any]]:
    """A node's arguments as the operator takes them; `tensor` gives those that are tensors."""

    def value(arg: Any) -> Any:
        if "node" in arg:
            return tensor(arg)
        if "none" in arg:
            return None
        for key in ("ints", "value"):
            if key in arg:
                return arg[key]
        if "list" in arg:
            return [value(a) for a in arg["list"]]
        if "dtype" in arg:
            return _TYPES.get(arg["dtype"])
        text = arg.get("text", "")
        if text in ("inf", "-inf", "nan"):
            return float(text)
        return complex(text) if text.endswith(("j", "j)")) else text

    kwargs = {k: value(v) for k, v in node.kwargs.items() if k not in ("device", "layout", "pin_memory", "memory_format")}
    return [value(a) for a in node.args], kwargs


class _Bodies:
    def __init__(self, graph: Graph, first_id: int) -> None:
        self.graph, self.next = graph, first_id

    def expand(self, node: Node) -> tuple[list[dict[str, Any]], list[dict[str, Any]]] | None:
        """(body, made) of a node; None: it has none."""
        leaves: list[torch.Tensor] = []
        refs: list[dict[str, Any]] = []

        def tensor(arg: dict[str, Any]) -> Any:
            ref: dict[str, Any] = {k: arg[k] for k in ("node", "part") if k in arg}
            if ref not in refs:
                source = self.graph.nodes[arg["node"]].parts[arg.get("part", 0)]
                refs.append(ref)
                leaves.append(
                    torch.empty_strided(source["shape"], source["strides"], dtype=_TYPES[source["dtype"]], device="meta")
                )
            return leaves[refs.index(ref)]

        needed = self._complex_before(node)
        for number in [*(n for n in needed if self.graph.nodes[n].op != "constant"), None]:
            arguments(node if number is None else self.graph.nodes[number], lambda arg: None if arg["node"] in needed else tensor(arg))
        pairs: dict[int, list[Any]] = {}

        def operand(arg: dict[str, Any]) -> Any:
            return pairs[arg["node"]][arg.get("part", 0)] if arg["node"] in pairs else tensor(arg)

        tracer = Tracer(leaves)
        tracer.formulas = BODIES
        formulas_sort.tracers.append(tracer)
        try:
            with torch.no_grad(), tracer:
                for number in needed:
                    if self.graph.nodes[number].op == "constant":
                        pairs[number] = [formulas_complex.constant(self.graph.nodes[number].kwargs["text"], self.graph.nodes[number].shape)]
                        continue
                    args, kwargs = arguments(self.graph.nodes[number], operand)
                    pairs[number] = _listed(formulas_complex.formula(self.graph.nodes[number].op)(*args, **kwargs))
                args, kwargs = arguments(node, operand)
                call = formulas_complex.formula(node.op) if needed else BODIES[_name(node)]
                results = _listed(call(*args, **kwargs))
        finally:
            formulas_sort.tracers.pop()
        for part, result in zip(node.parts, results):
            if isinstance(result, torch.Tensor) and list(result.shape) != list(part["shape"]):
                return None  # its sizes depend on values
        return self._write(tracer, refs, results, node)

    def _complex_before(self, node: Node) -> list[int]:
        """The complex values that a node is made of, back to real ones, in their order."""
        found: set[int] = set()
        todo = [n for n in node.sources() if is_complex(self.graph.nodes[n])]
        while todo:
            number = todo.pop()
            if number not in found:
                found.add(number)
                todo += [n for n in self.graph.nodes[number].sources() if is_complex(self.graph.nodes[n])]
        return sorted(found)

    def _write(
        self, tracer: Tracer, refs: list[dict[str, Any]], results: list[Any], node: Node
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]] | None:
        outputs = [tracer.node_of(r) if isinstance(r, torch.Tensor) else None for r in results]
        live = Graph(tracer.nodes, len(refs), [o for o in outputs if o], True, set()).live()
        if len(live) > MAX_BODY or not tracer.exact:
            return None
        numbers = {}
        for k in sorted(live):
            if k >= len(refs):
                numbers[k], self.next = self.next, self.next + 1

        def turn(arg: Any) -> Any:
            if not isinstance(arg, dict):
                return arg
            if "list" in arg:
                return {"list": [turn(a) for a in arg["list"]]}
            if "node" not in arg:
                return arg
            if arg["node"] < len(refs):
                return refs[arg["node"]]
            return {**arg, "node": numbers[arg["node"]]}

        body = []
        for k, number in numbers.items():
            inner = tracer.nodes[k]
            inner.args, inner.kwargs = [turn(a) for a in inner.args], {n: turn(a) for n, a in inner.kwargs.items()}
            body.append(inner.write(number))
        made: list[dict[str, Any]] = []
        for output in outputs:
            if output is None:
                made.append({"none": True})
                continue
            k, part = output
            ref: dict[str, Any] = dict(refs[k]) if k < len(refs) else {"node": numbers[k]}
            made.append({**ref, "part": part} if part else ref)
        return body, made


def expand(graph: Graph, nodes: list[dict[str, Any]]) -> None:
    """Adds `body` and `made` to the written nodes that have a formula."""
    bodies = _Bodies(graph, len(graph.nodes) + len(graph.outputs))
    after = {k for k, n in enumerate(graph.nodes) if any(is_complex(graph.nodes[s]) for s in n.sources())}
    for entry in nodes:
        if entry["op"] in ("input", "constant", "output"):
            continue
        node = graph.nodes[entry["id"]]
        if is_complex(node) or (_name(node) not in BODIES and entry["id"] not in after):
            continue
        try:
            found = bodies.expand(node)
        except Exception:  # this torch has no such kernel for shapes: no body
            found = None
        if found is not None:
            entry["body"], entry["made"] = found
    _leave_out_complex(graph, nodes, after)


def _leave_out_complex(graph: Graph, nodes: list[dict[str, Any]], after: set[int]) -> None:
    """Complex values that only bodies are made of have no node; what reads them is known by its body alone."""
    real = {e["id"] for e in nodes if e["op"] == "output" or not is_complex(graph.nodes[e["id"]])}
    exits = [e for e in nodes if e["op"] != "output" and e["id"] in after and e["id"] in real]
    leaves = any(is_complex(graph.nodes[k]) for k in range(graph.leaves))
    if leaves or any("body" not in e for e in exits) or any(is_complex(graph.nodes[n]) for n, _ in graph.outputs):
        return
    for entry in exits:
        known = {inner["id"] for inner in entry["body"]}
        reads = [a for inner in entry["body"] for a in inner.get("args", []) for a in (a, *a.get("list", [])) if "node" in a]
        entry["op"] = "generic.complex_" + graph.nodes[entry["id"]].name
        entry["args"], entry["kwargs"] = [], {}
        for ref in reads:
            if ref["node"] not in known and ref not in entry["args"]:
                entry["args"].append(ref)
    nodes[:] = [e for e in nodes if e["id"] in real]
