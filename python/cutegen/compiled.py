# SPDX-License-Identifier: Apache-2.0
"""compiled.py - torch.compile(module, backend="cutegen").

Dynamo hands over a graph (several, where it breaks). Candidates for replacement are the whole graph, and in it each
product, convolution, attention, norm or softmax with the elementwise operators that follow it (groups.py). Those that
the engineer finds a verified kernel for become one operator each; Inductor compiles the rest around them, and eager
PyTorch runs it on the CPU. On a GPU both ways are timed with the given inputs, and what is not faster is not taken.

1. A graph with symbolic sizes is left alone: kernels are judged for the sizes they were judged at.
2. Whatever fails here is a warning and a graph left to Inductor, never a wrong result or a program that stops.
3. The plan is kept with the kernels (kernels.py), so that the second start searches and times nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import statistics
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Callable

import torch

from cutegen.groups import Group, groups_of, replaced, whole_of
from cutegen.kernels import Outcome, cache_folder, find, lease, load
from cutegen.optimized import _known_program
from cutegen.picture import Progress
from cutegen.program import CutegenError, Json
from cutegen.trace import Task, Untraceable
from cutegen.version import __version__

GAIN = 0.99  # of Inductor's time: what is slower than this is not taken
ROUNDS, CALLS = 7, 20
OPTIONS = ("budget", "progress", "whole", "anchors")  # ours; all others are flags of `cutegen run`
Compiled = Callable[..., Any]
Part = tuple[Group, Task, Any]  # and its kernel, an operator


@dataclass
class Plan:
    """What became of one graph."""

    take: str  # whole, groups or nothing
    why: str
    replaced: list[str] = field(default_factory=list)  # the operators of each replaced part
    left: list[str] = field(default_factory=list)  # parts without a kernel, and why
    times_us: dict[str, float] = field(default_factory=dict)
    cached: bool = False


PLANS: list[Plan] = []  # of this process, in order: what `report` shows


def report() -> list[Plan]:
    """What was replaced in the graphs that this process compiled."""
    return list(PLANS)


def backend(graph: torch.fx.GraphModule, example_inputs: Sequence[Any], *, mode: Any = None, options: Json | None = None) -> Compiled:
    """For torch.compile. options: budget (minutes per kernel), whole (try whole graphs), anchors (which operators groups are
    built around: ["linear"]), progress; all others are flags of `cutegen run`."""
    try:
        made = _compiled(graph, example_inputs, dict(options or {}))
    except (CutegenError, Untraceable) as error:
        warnings.warn(f"cutegen: {error}; this graph is left to PyTorch", stacklevel=2)
        made = None
    if made is None:
        return _rest(graph, example_inputs)
    return made


def _rest(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
    """Inductor on a GPU, eager PyTorch on the CPU."""
    if any(isinstance(t, torch.Tensor) and t.device.type == "cuda" for t in inputs):
        from torch._inductor.compile_fx import compile_fx

        return compile_fx(_copy(graph), list(inputs))  # it changes the graph it is given
    return graph.forward


def _copy(graph: torch.fx.GraphModule) -> torch.fx.GraphModule:
    new = torch.fx.Graph()
    known: dict[torch.fx.Node, torch.fx.Node] = {}
    result = new.graph_copy(graph.graph, known)
    new.output(result)
    for old, copy in known.items():
        copy.meta = dict(old.meta)
    made = torch.fx.GraphModule(graph, new)
    made.meta = dict(graph.meta)
    return made


def _static(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> bool:
    if not all(isinstance(t, (torch.Tensor, bool, int, float)) and not isinstance(t, torch.SymInt) for t in inputs):
        return False
    sizes = [n for t in inputs if isinstance(t, torch.Tensor) for n in t.shape]
    held = [n.meta.get("example_value") for n in graph.graph.nodes if n.op == "placeholder"]
    sizes += [n for t in held if isinstance(t, torch.Tensor) for n in t.shape]
    return all(type(n) is int for n in sizes) and not any(isinstance(v, torch.SymInt) for v in held)


def _compiled(graph: torch.fx.GraphModule, inputs: Sequence[Any], options: Json) -> Compiled | None:
    tensors = [t for t in inputs if isinstance(t, torch.Tensor)]
    places = {t.device for t in tensors}
    if len(places) != 1 or not _static(graph, inputs):
        PLANS.append(Plan("nothing", "sizes are symbolic, or tensors are on several devices"))
        return None
    place = places.pop()
    if place.type not in ("cuda", "cpu"):
        return None
    _known_program()
    device = f"cuda:{place.index or 0}" if place.type == "cuda" else "simt"
    path = os.path.join(cache_folder(), f"plan-{_key(graph, inputs, device, options)}.json")
    plan = _kept(path) or Plan("", "")
    PLANS.append(plan)
    if plan.take == "nothing":
        return None
    ways = _ways(graph, inputs, device, options, plan)
    made = _chosen(graph, inputs, ways, plan)
    if not plan.cached:
        _keep(path, plan)
    return made


# ---- plans ---------------------------------------------------------------------------------------------


def _key(graph: torch.fx.GraphModule, inputs: Sequence[Any], device: str, options: Json) -> str:
    shapes = [(tuple(t.shape), str(t.dtype), t.stride()) if isinstance(t, torch.Tensor) else t for t in inputs]
    where = torch.cuda.get_device_name(int(device[5:])) if device.startswith("cuda") else device
    told = [__version__, torch.__version__, graph.code, shapes, where, sorted(options.items(), key=str)]
    return hashlib.sha256(repr(told).encode()).hexdigest()[:40]


def _kept(path: str) -> Plan | None:
    try:
        with open(path, encoding="utf-8") as file:
            plan = Plan(**json.load(file))
    except (OSError, ValueError, TypeError):
        return None
    plan.cached = True
    return plan


def _keep(path: str, plan: Plan) -> None:
    with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as file:
        json.dump(vars(plan), file)
    os.replace(f"{path}.{os.getpid()}", path)


def _ways(graph: torch.fx.GraphModule, inputs: Sequence[Any], device: str, options: Json, plan: Plan) -> dict[str, list[Part]]:
    """Which parts have a verified kernel: of the whole graph, and of its groups."""
    ways: dict[str, list[Part]] = {}
    whole = whole_of(graph, inputs) if options.get("whole", True) else None
    if plan.take in ("", "whole"):
        found = _with_kernels([whole], device, options, plan.left) if whole else []
        if found:
            ways["whole"] = found
    if plan.take in ("", "groups") and not (device == "simt" and "whole" in ways):
        groups = [g for g in groups_of(graph, inputs, options.get("anchors")) if whole is None or len(g.nodes) < len(whole.nodes)]
        found = _with_kernels(groups, device, options, plan.left)
        if found:
            ways["groups"] = found
    return ways


def settings_of(device: str, options: Json) -> Json:
    """The flags of `cutegen run`, which are part of a kernel's key."""
    settings = {"budget_minutes": options.get("budget", 3), "model": "builtin"}
    if device != "simt":
        settings["compile"] = "none"  # Inductor is timed here, around the kernel
    return {**settings, **{k: v for k, v in options.items() if k not in OPTIONS}}


def _with_kernels(groups: list[Group], device: str, options: Json, left: list[str]) -> list[Part]:
    """Those of the groups that have a kernel. Kernels are searched side by side; the GPU is leased by turns."""
    settings = settings_of(device, options)
    tasks: list[tuple[Group, Task]] = []
    for group in groups:
        try:
            tasks.append((group, group.task()))
        except Untraceable as why:
            left.append(f"{group.text}: {why}")

    def search(task: Task) -> Outcome:
        with Progress(task.name, options.get("progress")) as heard:
            return find(task, device, settings, on_event=heard.event, runs=os.path.join(cache_folder(), "runs"))

    different = {task.key: task for _, task in tasks}
    with ThreadPoolExecutor(max(1, min(len(different), (os.cpu_count() or 1) // 2))) as pool:
        outcomes = dict(zip(different, pool.map(search, different.values())))
    found = []
    for group, task in tasks:
        outcome = outcomes[task.key]
        if not outcome.found:
            left.append(f"{group.text}: {outcome.reason}")
        elif outcome.eager_us and outcome.time_us and outcome.time_us > outcome.eager_us:
            left.append(f"{group.text}: verified, and slower than PyTorch ({outcome.time_us:.3g} us, {outcome.eager_us:.3g} us)")
        else:
            found.append((group, task, load(outcome).operator))
    return found


def _chosen(graph: torch.fx.GraphModule, inputs: Sequence[Any], ways: dict[str, list[Part]], plan: Plan) -> Compiled | None:
    """The fastest way, or None: as it was. Fills in the plan."""
    made: dict[str, Compiled] = {}
    for way, parts in ways.items():
        made[way] = _rest(replaced(_copy(graph), graph, parts), inputs)
    if plan.take:
        return made.get(plan.take)
    if not made:
        plan.take, plan.why = "nothing", "no part of it has a verified kernel"
        return None
    on_gpu = any(isinstance(t, torch.Tensor) and t.device.type == "cuda" for t in inputs)
    plan.times_us = _timed({"inductor": _rest(graph, inputs), **made}, inputs) if on_gpu else {}
    best = min(made, key=lambda way: plan.times_us.get(way, 0.0))
    if on_gpu and plan.times_us[best] > GAIN * plan.times_us["inductor"]:
        plan.take, plan.why = "nothing", "verified, and not faster than Inductor"
        return None
    plan.take, plan.why = best, "faster than Inductor" if on_gpu else "verified on simt"
    plan.replaced = [group.text for group, _, _ in ways[best]]
    return made[best]


def _timed(ways: dict[str, Compiled], inputs: Sequence[Any]) -> dict[str, float]:
    """Microseconds per call of each, interleaved so that none has the better minute."""
    samples: dict[str, list[float]] = {name: [] for name in ways}
    with torch.no_grad(), lease(next(t.device for t in inputs if isinstance(t, torch.Tensor))):
        for run in ways.values():
            for _ in range(3):
                run(*inputs)
        for _ in range(ROUNDS):
            for name, run in ways.items():
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                torch.cuda.synchronize()
                begin.record()
                for _ in range(CALLS):
                    run(*inputs)
                end.record()
                torch.cuda.synchronize()
                samples[name].append(begin.elapsed_time(end) * 1e3 / CALLS)
    return {name: statistics.median(values) for name, values in samples.items()}
