# SPDX-License-Identifier: Apache-2.0
"""Formulas of small linear systems: elimination step by step, for all matrices of a batch at once.

Rows are exchanged as LAPACK does it (the largest element of the column leads). A step is a few kernels, so matrices stay
small; larger ones, and decompositions that iterate (QR, SVD, eigenvalues), are refused.
"""

from __future__ import annotations

from typing import Any

import torch

from .formulas_images import wide

MOST = 64  # rows


def _column(x: Any, k: int) -> Any:
    return x.narrow(-1, k, 1)


def _row(x: Any, k: int) -> Any:
    return x.narrow(-2, k, 1)


def _small(a: Any) -> int:
    if a.shape[-1] != a.shape[-2] or a.shape[-1] > MOST:
        raise NotImplementedError(f"matrices of more than {MOST} rows")
    return a.shape[-1]


def _exchanged(x: Any, k: int, pivot: Any) -> Any:
    """Swaps rows k and pivot (.., 1, 1)."""
    at = torch.arange(x.shape[-2], device=x.device).reshape(-1, 1)
    from_row = torch.where(at == k, pivot, torch.where(at == pivot, torch.full_like(pivot, k), at))
    return torch.gather(x, -2, from_row.expand(x.shape))


def _eliminated(a: Any, right: Any, whole: bool) -> tuple[Any, Any, Any]:
    """(upper triangle, right hand side, sign of the exchanges); `whole`: what is above the diagonal is eliminated, too."""
    n = _small(a)
    sign = torch.ones_like(a[..., :1, :1])
    at = torch.arange(n, device=a.device).reshape(-1, 1)
    for k in range(n):
        if k < n - 1:
            size = torch.where(at >= k, torch.abs(_column(a, k)), torch.full_like(_column(a, k), -1.0))
            pivot = size.argmax(-2, keepdim=True)
            sign = torch.where(pivot == k, sign, -sign)
            a = _exchanged(a, k, pivot)
            right = None if right is None else _exchanged(right, k, pivot)
        lead = a[..., k : k + 1, k : k + 1]
        others = (at != k if whole else at > k) & (lead != 0)  # of a singular matrix nothing is left
        factor = torch.where(others, _column(a, k) / lead, torch.zeros_like(_column(a, k)))
        right = None if right is None else right - factor * _row(right, k)
        a = a - factor * _row(a, k)
    return a, right, sign


def _diagonal(a: Any) -> Any:
    return torch.diagonal(a, 0, -2, -1)


def _solved(a: Any, b: Any) -> Any:
    lead = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = a.expand(*lead, *a.shape[-2:]), b.expand(*lead, *b.shape[-2:])
    a, b, _ = _eliminated(a.to(wide(a)), b.to(wide(b)), True)
    return b / _diagonal(a).unsqueeze(-1)


def _success(a: Any) -> Any:
    return torch.zeros(a.shape[:-2], dtype=torch.int32, device=a.device)


def _identity(a: Any) -> Any:
    at = torch.arange(a.shape[-1], device=a.device)
    return (at.reshape(-1, 1) == at).to(a.dtype).expand(a.shape)


def inverse(a: Any, *, check_errors: bool = False) -> Any:
    return _solved(a, _identity(a)), _success(a)


def solve(a: Any, b: Any, *, left: bool = True, check_errors: bool = False) -> Any:
    vector = b.dim() == 1 or (b.dim() == a.dim() - 1 and b.shape == a.shape[:-1])
    if not left:
        if vector:
            raise NotImplementedError("a row vector")
        return _solved(a.transpose(-2, -1), b.transpose(-2, -1)).transpose(-2, -1), None, None, _success(a)
    made = _solved(a, b.unsqueeze(-1) if vector else b)
    return (made.squeeze(-1) if vector else made), None, None, _success(a)


def determinant(a: Any) -> Any:
    upper, _, sign = _eliminated(a, None, False)
    return _diagonal(upper).prod(-1) * sign.reshape(a.shape[:-2]), None, None


def sign_and_log(a: Any) -> Any:
    upper, _, sign = _eliminated(a, None, False)
    diagonal = _diagonal(upper)
    return torch.sign(diagonal).prod(-1) * sign.reshape(a.shape[:-2]), torch.log(torch.abs(diagonal)).sum(-1), None, None


def cholesky(a: Any, *, upper: bool = False, check_errors: bool = False) -> Any:
    """Column by column; what is left of a symmetric matrix stays symmetric. Only one triangle is read."""
    n = _small(a)
    at = torch.arange(n, device=a.device).reshape(-1, 1)
    rest = a.transpose(-2, -1) if upper else a
    columns = []
    for k in range(n):
        column = _column(rest, k) * torch.rsqrt(rest[..., k : k + 1, k : k + 1])
        column = torch.where(at >= k, column, torch.zeros_like(column))
        columns.append(column)
        rest = rest - column * column.transpose(-2, -1)
    lower = torch.cat(columns, -1)
    return (lower.transpose(-2, -1) if upper else lower), _success(a)


def solve_triangular(a: Any, b: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    if not left:
        made = solve_triangular(a.transpose(-2, -1), b.transpose(-2, -1), upper=not upper, unitriangular=unitriangular)
        return made.transpose(-2, -1)
    n = _small(a)
    lead = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = a.expand(*lead, *a.shape[-2:]), b.expand(*lead, *b.shape[-2:])
    at = torch.arange(n, device=a.device).reshape(-1, 1)
    for k in range(n - 1, -1, -1) if upper else range(n):
        if not unitriangular:
            b = torch.where(at == k, b / a[..., k : k + 1, k : k + 1], b)
        later = at < k if upper else at > k
        b = b - torch.where(later, _column(a, k), torch.zeros_like(_column(a, k))) * _row(b, k)
    return b


def triangular_solve(b: Any, a: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False) -> Any:
    if transpose:
        return solve_triangular(a.transpose(-2, -1), b, upper=not upper, unitriangular=unitriangular), a
    return solve_triangular(a, b, upper=upper, unitriangular=unitriangular), a


def cholesky_solve(b: Any, factor: Any, upper: bool = False) -> Any:
    lower = factor.transpose(-2, -1) if upper else factor
    inner = solve_triangular(lower, b, upper=False)
    return solve_triangular(lower.transpose(-2, -1), inner, upper=True)


def cholesky_inverse(factor: Any, upper: bool = False) -> Any:
    return cholesky_solve(_identity(factor), factor, upper)
