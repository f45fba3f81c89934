# SPDX-License-Identifier: Apache-2.0
"""Ensure that this process judges with one version of its modules: all are imported at once, and no file may change meanwhile.

Without this, an update or a checkout that runs while an oracle starts, or before it imports a module late, would leave a judge
made of two versions.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path

from .fault import machine

FOLDER = Path(__file__).resolve().parent
# Programs, and what only the composer imports: it needs Triton or the CuTe DSL, which not every machine has.
LATER = {"main", "copier", "guest", "__init__", "plan_guest", "plan_objects", "plan_ptx", "plan_launch", "plan_triton", "plan_cutedsl"}


def stamps() -> dict[str, tuple[int, int]]:
    """Every file of ours: when it was written, and its size."""
    found = {}
    for entry in os.scandir(FOLDER):
        if entry.name.endswith(".py"):
            state = entry.stat()
            found[entry.name] = (state.st_mtime_ns, state.st_size)
    return found


class Sources:
    def __init__(self) -> None:
        self.first = stamps()
        for name in sorted(self.first):
            if name[:-3] not in LATER:
                importlib.import_module(f"oracle.{name[:-3]}")

    def check(self) -> None:
        """At the beginning of a task."""
        if stamps() != self.first:
            raise machine(
                "the oracle's own files have changed since it was started: it is not of one version",
                "run the command again; while cutegen is being installed or updated, nothing can be judged",
            )
