# SPDX-License-Identifier: Apache-2.0
"""kernels.py - from a traced task to a verified kernel, and the cache of what was found.

A kernel is kept in CACHE/python/KEY: the task, the export (the very code that was judged) and what the run said. The
key covers the task, the device, the versions and what was asked for, so a second start finds it and runs nothing.
A search without result is cached, too. Removing the folder is always safe. An export is used only if its seal holds (seal.py).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from cutegen import seal
from cutegen.program import CutegenError, Event, Json, call, flags
from cutegen.trace import Task, flatten, state_of
from cutegen.version import __version__

FORMAT = 2  # of outcome.json


@dataclass
class Outcome:
    """What came of a task: the run's result, its attempts, and the export if a kernel was verified."""

    task: str
    device: str
    found: bool
    reason: str
    result: Json = field(default_factory=dict)
    attempts: list[Json] = field(default_factory=list)
    folder: str | None = None
    cached: bool = False
    more: Json = field(default_factory=dict)  # what its user measured

    @property
    def measurement(self) -> Json:
        best = self.result.get("best") or {}
        return best.get("measurement") or {}

    @property
    def time_us(self) -> float | None:
        return self.measurement.get("time_us")

    @property
    def modelled(self) -> bool:
        return bool(self.measurement.get("modelled"))

    @property
    def eager_us(self) -> float | None:
        """PyTorch's own time, measured beside the kernel's; None on simt."""
        for baseline in self.measurement.get("baselines") or []:
            if baseline["name"] == "eager":
                return baseline["cold_us"]
        return None


def device_of(module: Any, inputs: Sequence[Any] | dict[str, Any]) -> str:
    """Where a module's kernels are judged: the GPU its tensors are on, or simt for those on the CPU."""
    tensors = [*flatten((inputs,), {}).tensors, *(state_of(module).values() if isinstance(module, torch.nn.Module) else [])]
    places = {t.device for t in tensors}
    if len(places) > 1:
        raise CutegenError(f"tensors on {' and '.join(sorted(map(str, places)))}", "move the module and its inputs to one device", "use", 2)
    place = next(iter(places), torch.device("cpu"))
    if place.type == "cuda":
        return f"cuda:{place.index or 0}"
    if place.type != "cpu":
        raise CutegenError(f"no kernels for {place}", "CUDA devices, or the CPU (simt)", "use", 2)
    return "simt"


def cache_folder() -> str:
    """The program's own cache folder, a room for this package in it."""
    own, xdg = os.environ.get("CUTEGEN_CACHE"), os.environ.get("XDG_CACHE_HOME", "")
    root = own or os.path.join(xdg if xdg.startswith("/") else os.path.expanduser("~/.cache"), "cutegen")
    path = os.path.join(root, "python")
    os.makedirs(path, mode=0o700, exist_ok=True)
    return path


def _hardware(device: str) -> str:
    if device.startswith("cuda"):
        return torch.cuda.get_device_name(int(device.partition(":")[2] or 0))
    return device


def key_of(task: Task, device: str, settings: Json) -> str:
    told = [FORMAT, __version__, torch.__version__, task.key, _hardware(device), sorted(settings.items(), key=str)]
    return hashlib.sha256(json.dumps(told, default=str).encode()).hexdigest()[:40]


def kept(key: str) -> Outcome | None:
    """What is in the cache, or None."""
    folder = os.path.join(cache_folder(), key)
    try:
        with open(os.path.join(folder, "outcome.json"), encoding="utf-8") as file:
            outcome = Outcome(**json.load(file))
    except (OSError, ValueError, TypeError):
        return None
    outcome.cached = True
    if outcome.found:
        outcome.folder = os.path.join(folder, "export")
        if not seal.holds(os.path.dirname(cache_folder()), key, outcome.folder):
            return None
    return outcome


def note(key: str, outcome: Outcome, **more: Any) -> None:
    """Adds what a user of the kernel measured, for the next start."""
    outcome.more.update(more)
    folder = os.path.join(cache_folder(), key)
    with contextlib.suppress(OSError):
        _write_outcome(folder, outcome)


def _write_outcome(folder: str, outcome: Outcome) -> None:
    plain = {k: v for k, v in vars(outcome).items() if k not in ("folder", "cached")}
    path = os.path.join(folder, "outcome.json")
    with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as file:
        json.dump(plain, file)
    os.replace(f"{path}.{os.getpid()}", path)


def _trimmed(event: Json) -> Json:
    """Of an attempt, what a trajectory shows."""
    judged, measured = event.get("judgement") or {}, event.get("measurement") or {}
    return {
        "attempt": event.get("attempt"),
        "depth": event.get("depth"),
        "change": event.get("change"),
        "verdict": judged.get("verdict"),
        "time_us": measured.get("time_us"),
    }


def find(task: Task, device: str, settings: Json, fresh: bool = False, on_event: Event | None = None, runs: str | None = None) -> Outcome:
    """The best verified kernel for a task: from the cache, else by `cutegen run` and `cutegen export`."""
    key = key_of(task, device, settings)
    known = None if fresh else kept(key)
    if known is not None:
        return known
    call(["config", *flags(settings)])  # a setting that does not exist is the caller's error, not the task's
    work = tempfile.mkdtemp(prefix=f"{key}.", dir=cache_folder())
    try:
        outcome = _made(task, device, settings, work, on_event, runs)
        _write_outcome(work, outcome)
        if outcome.found:
            seal.put(os.path.dirname(cache_folder()), key, os.path.join(work, "export"))
        _put(work, os.path.join(cache_folder(), key))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if outcome.found:
        outcome.folder = os.path.join(cache_folder(), key, "export")
    return outcome


def _put(work: str, place: str) -> None:
    """Moves it into its place instead of what is there; if another process is quicker meanwhile, that one's is kept."""
    old = f"{work}.old"
    with contextlib.suppress(OSError):
        os.replace(place, old)
    with contextlib.suppress(OSError):
        os.replace(work, place)
    shutil.rmtree(old, ignore_errors=True)


def _made(task: Task, device: str, settings: Json, work: str, on_event: Event | None, runs: str | None) -> Outcome:
    path = os.path.join(work, task.name + ".py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(task.source)
    attempts: list[Json] = []

    def heard(event: Json) -> None:
        if event.get("event") == "attempt":
            attempts.append(_trimmed(event))
        if on_event is not None:
            on_event(event)

    place = {"runs": runs} if runs else {}
    given = {"device": device, "scale": False, "report": False, **settings, **place}
    try:
        result = call(["run", path, *flags(given)], heard)
    except CutegenError as error:
        if error.kind == "use":  # the task, and not the machine: it will not be better next time
            return Outcome(task.name, device, False, re.sub(r"(describing |loading )?/\S+\.py(:\d+)?: ", "", error.text), {}, attempts)
        raise
    result = {k: v for k, v in result.items() if k not in ("event", "dir", "report")}
    if not result.get("found"):
        why = next((a["verdict"] for a in reversed(attempts) if a["verdict"]), None)
        reason = f"no kernel passed: {result.get('ended')}" + (f" (last verdict: {why})" if why else "")
        return Outcome(task.name, device, False, reason, result, attempts)
    call(["export", result["run"], "--output", os.path.join(work, "export"), *flags(place)])
    return Outcome(task.name, device, True, str(result.get("ended")), result, attempts)


@contextlib.contextmanager
def lease(device: torch.device) -> Iterator[None]:
    """The GPU for this process alone, as far as cutegen goes: its own lock (docs/architecture.md, The warm server)."""
    place = torch.cuda.get_device_properties(device)
    names = [f"{getattr(place, n, 0):0{w}x}" for n, w in (("pci_domain_id", 4), ("pci_bus_id", 2), ("pci_device_id", 2))]
    folder = "/run/lock" if os.access("/run/lock", os.W_OK) else "/tmp"
    path = os.path.join(folder, f"cutegen-gpu-{':'.join(names)}")
    with open(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666), "rb") as file:
        with contextlib.suppress(OSError):
            os.fchmod(file.fileno(), 0o666)  # another user's cutegen takes it too, whatever the umask
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def load(outcome: Outcome) -> Any:
    """The export of an outcome's kernel. Its `operator`, and its `run`, which is quicker to call, take the task's inputs in
    order (docs/export.md, The operator)."""
    assert outcome.folder is not None
    name = "cutegen_kernel_" + re.sub(r"\W", "_", os.path.basename(os.path.dirname(outcome.folder)))
    if name not in sys.modules:
        path = next(os.path.join(outcome.folder, f) for f in sorted(os.listdir(outcome.folder)) if f.endswith("_new.py"))
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # what is sealed stays as it is
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        finally:
            sys.dont_write_bytecode = writes
    return sys.modules[name]
