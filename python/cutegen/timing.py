# SPDX-License-Identifier: Apache-2.0
"""timing.py - which of several ways is faster, called from Python as a user calls them: launches and Python included.

1. Ways are timed in turns, so that none profits from a quieter moment, and with the GPU leased (kernels.py).
2. One way beats another where both its median and its best round do: a busy machine alone decides nothing.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from cutegen.kernels import lease

GAIN = 0.97  # of the other's time: what takes longer is not faster
ROUNDS, CALLS, WARM = 9, 20, 3
Samples = dict[str, list[float]]


def timed(ways: dict[str, Callable[[], Any]], device: torch.device, before_us: float = 0.0) -> Samples:
    """Microseconds per call of each way, a sample per round. `before_us`: what the caller's Python takes before each."""
    samples: Samples = {name: [] for name in ways}
    with lease(device), torch.cuda.device(device), torch.random.fork_rng([device]):
        for run in ways.values():
            for _ in range(WARM):
                run()
        for _ in range(ROUNDS):
            for name, run in ways.items():
                torch.cuda.synchronize()
                begin = time.perf_counter()
                for _ in range(CALLS):
                    _pass_time(before_us)
                    run()
                torch.cuda.synchronize()
                samples[name].append((time.perf_counter() - begin) * 1e6 / CALLS)
    return samples


def _pass_time(us: float) -> None:
    end = time.perf_counter() + us * 1e-6
    while time.perf_counter() < end:
        pass


def medians(samples: Samples) -> dict[str, float]:
    return {name: statistics.median(values) for name, values in samples.items()}


def beats(samples: Samples, way: str, other: str, gain: float = GAIN) -> bool:
    mine, theirs = samples[way], samples[other]
    return statistics.median(mine) <= gain * statistics.median(theirs) and min(mine) <= gain * min(theirs)
