# SPDX-License-Identifier: Apache-2.0
"""verdict.py - one candidate, one verdict; the description of a task; the runs in the store."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

from cutegen.program import CutegenError, Json, call, flags

TaskOrModule = Union[str, "os.PathLike[str]", Any]  # Any: a torch.nn.Module, and torch is not imported for a path


@dataclass(frozen=True)
class Verdict:
    """What the judge found. `kind` is "pass" or why not; `data` is the program's whole answer (docs/commands.md)."""

    kind: str
    summary: str
    detail: str = ""
    advice: str | None = None
    findings: list[Json] = field(default_factory=list)
    data: Json = field(default_factory=dict, repr=False)

    @property
    def passed(self) -> bool:
        return self.kind == "pass"

    @property
    def time_us(self) -> float | None:
        """The kernel's time; of a model of the GPU where `modelled`."""
        measured = self.data.get("measurement")
        return measured["time_us"] if measured else None

    @property
    def modelled(self) -> bool:
        measured = self.data.get("measurement")
        return bool(measured and measured["modelled"])

    def __bool__(self) -> bool:
        return self.passed

    def _repr_html_(self) -> str:
        from cutegen.picture import verdict_html

        return verdict_html(self)

    @staticmethod
    def of(data: Json) -> Verdict:
        return Verdict(data["verdict"], data["summary"], data.get("detail") or "", data.get("advice"), data.get("findings") or [], data)


@contextlib.contextmanager
def task_file(given: TaskOrModule, example_inputs: Sequence[Any] | None) -> Iterator[tuple[str, bool]]:
    """The path of a task, and whether it was traced from a module. The file of a module is gone afterwards."""
    if isinstance(given, (str, os.PathLike)):
        yield os.fspath(given), False
        return
    from cutegen.trace import Untraceable, task_of

    if example_inputs is None:
        raise CutegenError("a module needs example_inputs", "judge(module, kernel, example_inputs=(x,))", "use", 2)
    try:
        task, _ = task_of(given, example_inputs)
    except Untraceable as why:
        raise CutegenError(f"{type(given).__name__}: {why}", "write a task file instead: docs/tasks.md", "use", 2) from why
    with tempfile.TemporaryDirectory(prefix="cutegen-task-") as work:
        path = os.path.join(work, task.name + ".py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(task.source)
        yield path, True


@contextlib.contextmanager
def _kernel_file(source: str | os.PathLike[str]) -> Iterator[str]:
    if isinstance(source, os.PathLike) or "\n" not in source:
        yield os.fspath(source)
        return
    with tempfile.TemporaryDirectory(prefix="cutegen-kernel-") as work:
        path = os.path.join(work, "candidate.py" if "class ModelNew" in source else "candidate.cu")
        with open(path, "w", encoding="utf-8") as file:
            file.write(source)
        yield path


def _device(given: TaskOrModule, traced: bool, example_inputs: Sequence[Any] | None, settings: Json) -> Json:
    """A traced module is judged where its tensors are, at the sizes they have."""
    if not traced:
        return settings
    from cutegen.kernels import device_of

    return {"device": device_of(given, example_inputs or ()), "scale": False, **settings}


def judge(
    task_or_module: TaskOrModule,
    kernel_source: str | os.PathLike[str],
    example_inputs: Sequence[Any] | None = None,
    **settings: Any,
) -> Verdict:
    """Builds, tests and times one candidate. `kernel_source`: the text of a kernel, or the path of one.

    `settings` are the flags of `cutegen eval`: device="cuda:0", draws=2, shapes=["BATCH=1,8"]. A kernel that is wrong
    is a Verdict; CutegenError is raised only where nothing could be judged.
    """
    with task_file(task_or_module, example_inputs) as (task, traced), _kernel_file(kernel_source) as kernel:
        return Verdict.of(call(["eval", task, kernel, *flags(_device(task_or_module, traced, example_inputs, settings))]))


def describe(task_or_module: TaskOrModule, example_inputs: Sequence[Any] | None = None, **settings: Any) -> Json:
    """The task's operators, shapes, class, unavoidable bytes and flops (docs/architecture.md, DESCRIPTION)."""
    with task_file(task_or_module, example_inputs) as (task, traced):
        return call(["describe", task, *flags(_device(task_or_module, traced, example_inputs, settings))])


class Runs(list[Json]):
    """Runs, newest first, as plain rows: pandas.DataFrame(cutegen.runs())."""

    total: int = 0

    def _repr_html_(self) -> str:
        from cutegen.picture import runs_html

        return runs_html(self)


def runs(limit: int = 100, **settings: Any) -> Runs:
    """The runs in the store (runs="DIR" or store="postgres://..." for another than the default)."""
    answer = call(["runs", "--limit", str(limit), *flags(settings)])
    found = Runs(answer["runs"])
    found.total = answer["total"]
    return found
