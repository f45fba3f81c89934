# SPDX-License-Identifier: Apache-2.0
"""Formulas that count or walk: the most frequent value, bins, losses over label lists and over alignments."""

from __future__ import annotations

import math
from typing import Any

import torch

from .formulas_scatter import scatter_add

NONE, MEAN = 0, 1
IMPOSSIBLE = -1e30  # a logarithm of 0 that can be subtracted from itself


def _reduced(x: Any, reduction: int) -> Any:
    return x if reduction == NONE else x.mean() if reduction == MEAN else x.sum()


def mode(x: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """The smallest of the most frequent values, and its last index."""
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    moved = x.movedim(dim, -1)
    often = (moved.unsqueeze(-1) == moved.unsqueeze(-2)).to(torch.int64).sum(-1)
    top = math.inf if x.dtype.is_floating_point else torch.iinfo(x.dtype).max
    value = torch.where(often == often.amax(-1, keepdim=True), moved, torch.full_like(moved, top)).amin(-1, keepdim=True)
    at = torch.arange(moved.shape[-1], device=x.device)
    place = torch.where(moved == value, at, torch.full_like(at, -1)).amax(-1, keepdim=True)
    value, place = value.movedim(-1, dim), place.movedim(-1, dim)
    return (value, place) if keepdim else (value.squeeze(dim), place.squeeze(dim))


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """The number of bins must be given: otherwise the shape would depend on the values."""
    if minlength == 0:
        raise NotImplementedError("bins without minlength: their number depends on values")
    weights = torch.ones(x.shape, dtype=torch.int64, device=x.device) if weights is None else weights
    return scatter_add(torch.zeros([minlength], dtype=weights.dtype, device=x.device), 0, x, weights)


def multilabel_margin(x: Any, target: Any, reduction: int = MEAN) -> Any:
    """A row's labels end at the first -1."""
    rows, labels = (x, target) if x.dim() > 1 else (x.unsqueeze(0), target.unsqueeze(0))
    valid = torch.cumprod((labels >= 0).to(torch.int64), 1) > 0
    safe = torch.clamp(labels, min=0)
    classes = torch.arange(rows.shape[1], device=x.device)
    own = ((safe.unsqueeze(2) == classes) & valid.unsqueeze(2)).any(1)
    margin = torch.clamp(1 - torch.gather(rows, 1, safe).unsqueeze(2) + rows.unsqueeze(1), min=0)
    counted = valid.unsqueeze(2) & torch.logical_not(own).unsqueeze(1)
    loss = torch.where(counted, margin, torch.zeros_like(margin)).sum((1, 2)) / rows.shape[1]
    own = own.to(x.dtype)
    return _reduced(loss if x.dim() > 1 else loss.squeeze(0), reduction), own if x.dim() > 1 else own.squeeze(0)


# ---- alignments -----------------------------------------------------------------------------------------


def _lengths(values: Any, like: Any) -> Any:
    """A vector; of numbers that are known now, or a tensor."""
    if isinstance(values, torch.Tensor):
        return values.to(torch.int64)
    made = torch.full([len(values)], values[0], dtype=torch.int64, device=like.device)
    at = torch.arange(len(values), device=like.device)
    for k, value in enumerate(values):
        made = made if value == values[0] else torch.where(at == k, torch.full_like(made, value), made)
    return made


def _label_rows(targets: Any, lengths: list[int]) -> Any:
    """(batch, most labels); labels that stand one after the other are taken apart."""
    if targets.dim() == 2:
        return targets
    most, first, rows = max(lengths), 0, []
    for n in lengths:
        row = targets.narrow(0, first, n)
        rows.append(torch.cat([row, torch.zeros([most - n], dtype=targets.dtype, device=targets.device)]) if n < most else row)
        first += n
    return torch.stack(rows)


def _sum_of_logs(*terms: Any) -> Any:
    most = terms[0]
    for term in terms[1:]:
        most = torch.maximum(most, term)
    total = sum(torch.exp(term - most) for term in terms)
    return most + torch.log(total)


def _shifted(alpha: Any, by: int) -> Any:
    return torch.cat([torch.full_like(alpha[:, :by], IMPOSSIBLE), alpha[:, : alpha.shape[1] - by]], 1)


def ctc_loss(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0, zero_infinity: bool = False
) -> Any:
    """The forward variables over blank, label, blank, ..., one step after the other; without those of other calls."""
    steps, batch = log_probs.shape[0], log_probs.shape[1]
    if isinstance(target_lengths, torch.Tensor):
        if targets.dim() != 2:
            raise NotImplementedError("labels one after the other, with lengths that are not known before")
        labels = targets
    else:
        labels = _label_rows(targets, list(target_lengths))[:, : max(target_lengths)]
    width = 2 * labels.shape[1] + 1
    at = torch.arange(width, device=labels.device)
    if labels.shape[1]:
        places = torch.div(at, 2, rounding_mode="floor").clamp(max=labels.shape[1] - 1)
        word = torch.where(at % 2 == 1, torch.index_select(labels, 1, places), torch.full_like(at, blank))
    else:
        word = torch.full([batch, 1], blank, dtype=torch.int64, device=labels.device)
    last = (2 * _lengths(target_lengths, at)).unsqueeze(1)
    ends = _lengths(input_lengths, at).unsqueeze(1)
    before = torch.cat([torch.full_like(word[:, :2], -1), word[:, :-2]], 1) if width > 2 else torch.full_like(word, -1)
    jumps = (at % 2 == 1) & (word != before)
    spoken = torch.gather(log_probs, 2, word.unsqueeze(0).expand(steps, batch, width))
    alpha = torch.where((at < 2) & (at <= last), spoken[0], torch.full_like(spoken[0], IMPOSSIBLE))
    for t in range(1, steps):
        jumped = torch.where(jumps, _shifted(alpha, 2), torch.full_like(alpha, IMPOSSIBLE)) if width > 2 else None
        terms = [alpha] + ([_shifted(alpha, 1)] if width > 1 else []) + ([jumped] if width > 2 else [])
        alpha = torch.where(t < ends, _sum_of_logs(*terms) + spoken[t], alpha)
    final = torch.where((at == last) | (at == last - 1), alpha, torch.full_like(alpha, IMPOSSIBLE))
    most = final.amax(1, keepdim=True)
    loss = -(most + torch.log(torch.exp(final - most).sum(1, keepdim=True))).squeeze(1)
    loss = torch.where(loss > -0.1 * IMPOSSIBLE, torch.full_like(loss, 0.0 if zero_infinity else math.inf), loss)
    return loss, None
