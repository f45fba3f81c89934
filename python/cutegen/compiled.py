# SPDX-License-Identifier: Apache-2.0
"""compiled.py - torch.compile(module, backend="cutegen").

Dynamo hands over a graph (several, where it breaks). Candidates for replacement are the whole graph, and in it each
product, convolution, attention, norm or softmax with the elementwise operators that follow it (groups.py). With the
verified kernels that the engineer finds, a graph can be run in three ways:

    whole      one kernel, called directly
    direct     kernels called directly, the rest by eager PyTorch: little Python around short kernels
    inductor   each kernel an operator, the rest compiled by Inductor around them

On a GPU they are timed beside Inductor's own, and then without each of their kernels in turn: what is not faster is
not taken. On the CPU (simt) nothing is timed, and what is verified is taken.

1. A graph with symbolic sizes is left alone: kernels are judged for the sizes they were judged at.
2. A failure here causes a warning and leaves the graph to Inductor; it never causes a wrong result or stops the program.
3. The plan is cached with the kernels (kernels.py), so that the next start neither searches nor times anything.
4. Timing calls a graph many times, so it does so with copies: a graph may write into its inputs.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Callable

import torch

from cutegen.groups import Group, groups_of, replaced, whole_of
from cutegen.kernels import Outcome, cache_folder, find, load
from cutegen.optimized import _known_program
from cutegen.picture import Progress
from cutegen.program import CutegenError, Json
from cutegen.timing import Samples, beats, medians, timed
from cutegen.trace import Task, Untraceable, autocast_state
from cutegen.version import __version__

FORMAT = 2  # of a plan
ALONE = "left alone"  # in a plan's times: Inductor without any kernel of ours
PRUNED = 6  # of more parts than this, all are taken or none
GUARDS_US = 20.0  # what Dynamo takes before each call of a graph: a kernel is not faster where Python is what one waits for
OPTIONS = ("budget", "progress", "whole", "anchors")  # ours; all others are flags of `cutegen run`
Compiled = Callable[..., Any]
Part = tuple[Group, Task, Any]  # and its export


@dataclass
class Plan:
    """What became of one graph."""

    take: str  # whole, direct, inductor or nothing
    why: str
    replaced: list[str] = field(default_factory=list)  # the operators of each replaced part
    left: list[str] = field(default_factory=list)  # parts without a kernel, or better without it, and why
    times_us: dict[str, float] = field(default_factory=dict)
    parts: list[int] = field(default_factory=list)  # which of the graph's groups are replaced
    cached: bool = False


PLANS: list[Plan] = []  # of this process, in order: what `report` shows


def report() -> list[Plan]:
    """Reports what was replaced in the graphs that this process compiled."""
    return list(PLANS)


def backend(graph: torch.fx.GraphModule, example_inputs: Sequence[Any], *, mode: str | None = None, options: Json | None = None) -> Compiled:
    """For torch.compile. mode: Inductor's. options: budget (minutes per kernel), whole (try whole graphs), anchors (which
    operators groups are built around: ["linear"]), progress; all others are flags of `cutegen run`."""
    rest = _Rest(mode)
    try:
        made = _compiled(graph, example_inputs, dict(options or {}), rest)
    except Exception as error:  # the user's program goes on, whatever it is
        text = str(error) if isinstance(error, (CutegenError, Untraceable)) else f"{type(error).__name__}: {error}"
        warnings.warn(f"cutegen: {text}; this graph is left to PyTorch", stacklevel=2)
        made = None
    return made or rest.compiled(graph, example_inputs)


class _Rest:
    """What compiles the operators that have no kernel: Inductor on a GPU, eager PyTorch on the CPU."""

    def __init__(self, mode: str | None) -> None:
        self.mode = mode

    def compiled(self, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
        if _on_gpu(inputs) is None:
            return graph.forward
        from torch._inductor import list_mode_options
        from torch._inductor.compile_fx import compile_fx

        patches = list_mode_options(self.mode) if self.mode else None
        return compile_fx(_copy(graph), list(inputs), config_patches=patches)  # it changes the graph it is given


def _on_gpu(inputs: Sequence[Any]) -> torch.device | None:
    return next((t.device for t in inputs if isinstance(t, torch.Tensor) and t.device.type == "cuda"), None)


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


def _compiled(graph: torch.fx.GraphModule, inputs: Sequence[Any], options: Json, rest: _Rest) -> Compiled | None:
    places = {t.device for t in inputs if isinstance(t, torch.Tensor)}
    if len(places) != 1 or not _static(graph, inputs):
        many = "tensors are on several devices" if places else "no tensor goes into it"
        PLANS.append(Plan("nothing", "sizes are symbolic" if len(places) == 1 else many))
        return None
    place = places.pop()
    if place.type not in ("cuda", "cpu"):
        PLANS.append(Plan("nothing", f"no kernels for {place}"))
        return None
    _known_program()
    device = f"cuda:{place.index or 0}" if place.type == "cuda" else "simt"
    path = os.path.join(cache_folder(), f"plan-{_key(graph, inputs, device, options, rest.mode)}.json")
    plan = _kept(path) or Plan("", "")
    PLANS.append(plan)
    if plan.take == "nothing":
        return None
    ways = _Ways(graph, inputs, rest, *_found(graph, inputs, device, options, plan))
    if plan.cached:
        return ways.made(plan.take, plan.parts)
    made = ways.chosen(plan, place)
    _keep(path, plan)
    return made


# ---- plans ---------------------------------------------------------------------------------------------


def _key(graph: torch.fx.GraphModule, inputs: Sequence[Any], device: str, options: Json, mode: str | None) -> str:
    shapes = [(tuple(t.shape), str(t.dtype), t.stride()) if isinstance(t, torch.Tensor) else t for t in inputs]
    where = torch.cuda.get_device_name(int(device[5:])) if device.startswith("cuda") else device
    ambient = [mode, _records(inputs), autocast_state()]  # what the code does not say
    told = [FORMAT, __version__, torch.__version__, graph.code, shapes, where, sorted(options.items(), key=str), ambient]
    return hashlib.sha256(repr(told).encode()).hexdigest()[:40]


def _records(inputs: Sequence[Any]) -> bool:
    """Whether autograd records the calls: then a backward is to be expected, and is timed too."""
    return torch.is_grad_enabled() and any(isinstance(t, torch.Tensor) and t.requires_grad for t in inputs)


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


# ---- kernels -------------------------------------------------------------------------------------------


def _found(graph: torch.fx.GraphModule, inputs: Sequence[Any], device: str, options: Json, plan: Plan) -> tuple[Part | None, dict[int, Part]]:
    """Which parts have a verified kernel: the whole graph, and its groups by their number."""
    whole = whole_of(graph, inputs) if options.get("whole", True) else None
    groups = dict(enumerate(groups_of(graph, inputs, options.get("anchors"))))
    if plan.cached:
        whole, groups = whole if plan.take == "whole" else None, {i: groups[i] for i in plan.parts if i in groups}
    found = _with_kernels([whole], device, options, plan.left) if whole else {}
    if found and device == "simt":
        return found[0], {}  # there is nothing to compare
    smaller = {i: g for i, g in groups.items() if whole is None or len(g.nodes) < len(whole.nodes)}
    numbers, parts = list(smaller), _with_kernels(list(smaller.values()), device, options, plan.left)
    return found.get(0), {numbers[i]: part for i, part in parts.items()}


def settings_of(device: str, options: Json) -> Json:
    """The flags of `cutegen run`, which are part of a kernel's key."""
    settings = {"budget_minutes": options.get("budget", 3), "model": "builtin"}
    if device != "simt":
        settings["compile"] = "none"  # Inductor is timed here, around the kernel
    return {**settings, **{k: v for k, v in options.items() if k not in OPTIONS}}


def _with_kernels(groups: list[Group], device: str, options: Json, left: list[str]) -> dict[int, Part]:
    """Those of the groups that have a kernel, by their place. Kernels are searched side by side; the GPU is leased by turns."""
    settings = settings_of(device, options)
    tasks: dict[int, Task] = {}
    for i, group in enumerate(groups):
        try:
            tasks[i] = group.task()
        except Untraceable as why:
            left.append(f"{group.text}: {why}")

    def search(task: Task) -> Outcome:
        with Progress(task.name, options.get("progress")) as heard:
            return find(task, device, settings, on_event=heard.event, runs=os.path.join(cache_folder(), "runs"))

    different = {task.key: task for task in tasks.values()}
    with ThreadPoolExecutor(max(1, min(len(different), (os.cpu_count() or 1) // 2))) as pool:
        outcomes = dict(zip(different, pool.map(search, different.values())))
    found = {}
    for i, task in tasks.items():
        outcome, group = outcomes[task.key], groups[i]
        if not outcome.found:
            left.append(f"{group.text}: {outcome.reason}")
        elif outcome.eager_us and outcome.time_us and outcome.time_us > outcome.eager_us:
            left.append(f"{group.text}: verified, and slower than PyTorch ({outcome.time_us:.3g} us, {outcome.eager_us:.3g} us)")
        else:
            found[i] = (group, task, load(outcome))
    return found


# ---- ways ----------------------------------------------------------------------------------------------


class _Ways:
    """How a graph can be run with the kernels that were found for it."""

    def __init__(self, graph: torch.fx.GraphModule, inputs: Sequence[Any], rest: _Rest, whole: Part | None, parts: dict[int, Part]) -> None:
        self.graph, self.inputs, self.rest, self.whole, self.parts = graph, inputs, rest, whole, parts

    def made(self, way: str, numbers: Sequence[int]) -> Compiled | None:
        """This way with these of the parts; None where a kernel that it needs is gone."""
        whole = [self.whole] if self.whole else []
        parts = whole if way == "whole" else [self.parts[i] for i in numbers if i in self.parts]
        if not parts or way != "whole" and len(parts) != len(numbers):
            return None
        calls = [(group, task, export.operator if way == "inductor" else export.run) for group, task, export in parts]
        new = replaced(_copy(self.graph), self.graph, calls)
        return self.rest.compiled(new, self.inputs) if way == "inductor" else new.forward

    def chosen(self, plan: Plan, place: torch.device) -> Compiled | None:
        """The fastest way, or None: as it was. Fills in the plan."""
        numbers = list(self.parts)
        ways = (["whole"] if self.whole else []) + (["direct", "inductor"] if numbers else [])
        if not ways:
            plan.take, plan.why = "nothing", "no part of it has a verified kernel"
            return None
        if place.type == "cpu":
            return self.taken(plan, ways[0], numbers, "verified on simt", self.made(ways[0], numbers))
        alone = self.rest.compiled(self.graph, self.inputs)
        runs = {way: self.made(way, numbers) for way in ways}
        samples = self.timed({ALONE: alone, **runs}, place)
        plan.times_us = medians(samples)
        best = min(ways, key=lambda way: plan.times_us[way])
        if best != "whole":
            fewer, run = self.pruned(best, numbers, runs[best], place, plan.left)
            if fewer != numbers:
                numbers, runs[best] = fewer, run
                samples = self.timed({ALONE: alone, best: run}, place)
                plan.times_us.update(medians(samples))
        if not beats(samples, best, ALONE):
            plan.take, plan.why = "nothing", "verified, and not faster than Inductor"
            return None
        return self.taken(plan, best, numbers, "faster than Inductor", runs[best])

    def pruned(self, way: str, numbers: list[int], run: Compiled | None, place: torch.device, left: list[str]) -> tuple[list[int], Compiled | None]:
        """Without the parts that are no slower when they are left to the rest."""
        for i in numbers if 1 < len(numbers) <= PRUNED else []:
            fewer = [n for n in numbers if n != i]
            other = self.made(way, fewer) if fewer else None
            if other is None:
                continue
            samples = self.timed({"with": run, "without": other}, place)
            if not beats(samples, "with", "without", 1.0):
                numbers, run = fewer, other
                times = medians(samples)
                left.append(f"{self.parts[i][0].text}: verified, and no gain in this graph ({times['with']:.3g} us with it, {times['without']:.3g} us without)")
        return numbers, run

    def taken(self, plan: Plan, way: str, numbers: list[int], why: str, run: Compiled | None) -> Compiled | None:
        plan.take, plan.why, plan.parts = way, why, [] if way == "whole" else numbers
        plan.replaced = [self.whole[0].text] if way == "whole" and self.whole else [self.parts[i][0].text for i in numbers]
        return run

    def timed(self, runs: dict[str, Compiled | None], place: torch.device) -> Samples:
        records = _records(self.inputs)
        copies = [_copied(t) if isinstance(t, torch.Tensor) else t for t in self.inputs]
        leaves = [t for t in copies if isinstance(t, torch.Tensor) and t.requires_grad]

        def call(run: Compiled) -> None:
            with torch.set_grad_enabled(records):
                made = run(*copies)
            ends = [t for t in made if isinstance(t, torch.Tensor) and t.requires_grad] if records else []
            if ends:
                torch.autograd.grad(ends, leaves, [torch.ones_like(t) for t in ends], allow_unused=True)

        ways: dict[str, Callable[[], Any]] = {n: functools.partial(call, run) for n, run in runs.items() if run is not None}
        return timed(ways, place, GUARDS_US)


def _copied(t: torch.Tensor) -> torch.Tensor:
    """The same values with the same strides, in memory of their own; an expanded tensor is used as it is."""
    if any(step == 0 for step in t.stride()):
        return t
    copy = torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device)
    return copy.copy_(t.detach()).requires_grad_(t.requires_grad)
