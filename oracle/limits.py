# SPDX-License-Identifier: Apache-2.0
"""Limits for a task or a module: memory, and time for its import.

Hides rlimits and the alarm.

1. Memory beyond the limit is an ordinary MemoryError where it was asked for: the process lives on and says which task it was.
2. An import that does not return is interrupted. Code that swallows the interruption gets one more; then the process ends with a prepared
   answer, so that the client need not wait for its own deadline.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

from .fault import Fault, use

IMPORT_S = 60.0
GRACE_S = 2.0


class Overtime(BaseException):
    """Not an Exception, so that `except Exception` does not catch it."""


class Limits:
    """Of this process; `last_word` answers the request under way in place of code that does not return."""

    def __init__(self) -> None:
        self.import_s = IMPORT_S
        self.last_word: Callable[[Fault], Any] | None = None


LIMITS = Limits()


def limit_memory(size: int) -> None:
    """Private memory of this process, for good. Files that are mapped do not count, nor does what a driver reserves."""
    if size > 0:
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        size = size if hard == resource.RLIM_INFINITY else min(size, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))


@contextlib.contextmanager
def import_deadline(path: Path) -> Iterator[None]:
    seconds, strikes = LIMITS.import_s, 0
    fault = use(
        f"the task does not load: importing {path} took more than {seconds:g} s",
        "a task is imported in a moment: nothing in it may wait; --task-deadline gives it longer",
    )

    def late(signum: int, frame: Any) -> None:
        nonlocal strikes
        strikes += 1
        if strikes > 1 and LIMITS.last_word:
            LIMITS.last_word(fault)
            os._exit(1)
        raise Overtime

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds, GRACE_S)
    try:
        yield
    except Overtime:
        raise fault from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
