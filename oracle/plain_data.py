# SPDX-License-Identifier: Apache-2.0
"""Arguments as plain data, which a guest gets instead of objects. Never pickle.

A call and the arguments of a constructor become JSON; a tensor in them is a number, its bytes go through a file.
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from .fault import use

MAX_DEPTH = 16
MAX_ITEMS = 100_000


def encode(value: Any, tensor: Callable[[torch.Tensor], int], what: str, depth: int = 0) -> dict[str, Any]:
    """`tensor` notes a tensor and gives its number; `what` names the value in a fault."""
    if depth > MAX_DEPTH:
        raise use(f"{what} is nested more than {MAX_DEPTH} deep", "a ModelNew is handed plain data")
    if value is None:
        return {"none": True}
    if type(value) is bool:
        return {"bool": value}
    if type(value) is int:
        return {"int": str(value)}  # of any size
    if type(value) is float:
        return {"float": value.hex()}
    if type(value) is str:
        return {"text": value}
    if isinstance(value, torch.Tensor):
        return {"tensor": tensor(value)}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).replace("torch.", "")}
    if isinstance(value, torch.device):
        return {"device": True}
    if isinstance(value, (list, tuple, dict)) and len(value) > MAX_ITEMS:
        raise use(f"{what} has {len(value)} items, {MAX_ITEMS} at most", "a ModelNew is handed plain data")
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [encode(item, tensor, what, depth + 1) for item in value]}
    if isinstance(value, dict) and all(type(key) is str for key in value):
        return {"dict": {key: encode(item, tensor, what, depth + 1) for key, item in value.items()}}
    raise use(
        f"{what} holds a {type(value).__name__}, which cannot be handed to a ModelNew",
        "numbers, text, tensors, dtypes, lists, tuples and dicts can: a ModelNew runs in a process without the task",
    )


def decode(data: dict[str, Any], tensors: list[Any], device: torch.device) -> Any:
    ((kind, value),) = data.items()
    if kind == "none":
        return None
    if kind in ("bool", "text"):
        return value
    if kind == "int":
        return int(value)
    if kind == "float":
        return float.fromhex(value)
    if kind == "tensor":
        return tensors[value]
    if kind == "dtype":
        return getattr(torch, value)
    if kind == "device":
        return device
    if kind == "dict":
        return {key: decode(item, tensors, device) for key, item in value.items()}
    items = [decode(item, tensors, device) for item in value]
    return items if kind == "list" else tuple(items)
