# SPDX-License-Identifier: Apache-2.0
"""cutegen from Python: faster, verified GPU kernels for PyTorch modules.

    fast = cutegen.optimize(module, example_inputs)       a module with the verdict attached
    cutegen.judge(task_or_module, kernel_source)          one candidate, one verdict
    cutegen.describe(task_or_module)                      operators, shapes, unavoidable bytes and flops
    cutegen.runs()                                        the store's runs: pandas.DataFrame(cutegen.runs())
    torch.compile(module, backend="cutegen")              subgraphs with a verified kernel are replaced

The program does the work; this package calls it over its documented JSON. docs/python.md has the whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cutegen.program import CutegenError, program
from cutegen.verdict import Runs, Verdict, describe, judge, runs
from cutegen.version import __version__

if TYPE_CHECKING:
    from cutegen.compiled import backend
    from cutegen.optimized import Optimized, optimize

__all__ = ["CutegenError", "Optimized", "Runs", "Verdict", "__version__", "backend", "describe", "judge", "optimize", "program", "runs"]
_LATER = {"optimize": "optimized", "Optimized": "optimized", "backend": "compiled"}  # these import torch


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'cutegen' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f"cutegen.{_LATER[name]}"), name)
    globals()[name] = value
    return value
