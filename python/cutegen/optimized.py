# SPDX-License-Identifier: Apache-2.0
"""optimized.py - a module in, a module with a verified, faster kernel out; or the same module, and why."""

from __future__ import annotations

import copy
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from cutegen.kernels import Outcome, device_of, find, key_of, load, note
from cutegen.picture import Progress, optimized_html, optimized_text, trajectory_svg
from cutegen.program import Json, environment, program
from cutegen.timing import medians, timed
from cutegen.trace import PLAIN, Returned, Task, Untraceable, autocast_state, flatten, state_of, task_of

AGREEMENT = {torch.float64: 1e-6, torch.float32: 1e-2, torch.float16: 5e-2, torch.bfloat16: 1e-1}


def _facts(module: torch.nn.Module) -> list[tuple[dict[str, Any], str, Any]]:
    """What a trace has taken for granted: where it is kept, its name, its value. Parts, modes and plain attributes."""
    found = []
    for part in module.modules():
        found += [(part._modules, name, inner) for name, inner in part._modules.items()]
        plain = [(name, v) for name, v in vars(part).items() if _is_plain(v) and not name.startswith("_")]
        found += [(part.__dict__, name, list(v) if isinstance(v, list) else v) for name, v in plain]
    return found


def _is_plain(value: Any) -> bool:
    return isinstance(value, PLAIN) or isinstance(value, (tuple, list)) and all(isinstance(v, PLAIN) for v in value)


class _Case:
    """One way of calling the module that a kernel was judged for."""

    def __init__(self, task: Task, outcome: Outcome, given: Any, returned: Returned, module: torch.nn.Module) -> None:
        self.task, self.outcome, self.returned, self.one = task, outcome, returned, returned.one
        self.plain, self.call_spec = given.plain, given.spec
        export = load(outcome)
        self.kernel = getattr(export, "run", export.operator)  # what an earlier cutegen exported has no `run`
        self.wanted = list(zip(task.inputs, task.shapes, task.dtypes))
        count = len(given.tensors)
        names = [name.split(".") for name in state_of(module)]
        self.arguments = count if flatten(given.tensors, {}).spec == given.spec else -1  # tensors alone; -1: something else
        self.places = [(i if i < count else names[i - count], s, d) for i, s, d in self.wanted]
        self.autocast = autocast_state()
        self._look_at(module)

    def _look_at(self, module: torch.nn.Module) -> None:
        self.facts = _facts(module)
        self.hooks = [h for m in module.modules() for h in (m._forward_hooks, m._forward_pre_hooks)]

    def unlike(self) -> str:
        """How the module differs from what was traced; "": it does not."""
        for held, name, value in self.facts:
            now = held.get(name)
            if now is not value and (isinstance(value, torch.nn.Module) or type(now) is not type(value) or now != value):
                return "it is in another mode (train or eval)" if name == "training" else f"its {name} was changed"
        if autocast_state() != self.autocast:
            return "autocast was turned on or off"
        return "it has hooks" if any(self.hooks) else ""

    def of(self, module: torch.nn.Module) -> _Case:
        """The same for a copy of the module."""
        made = copy.copy(self)
        made._look_at(module)
        return made

    def fits(self, given: Any, tensors: list[torch.Tensor]) -> bool:
        return (
            given.spec == self.call_spec
            and given.plain == self.plain
            and len(tensors) > max((i for i, _, _ in self.wanted), default=-1)
            and all(tensors[i].shape == s and tensors[i].dtype == d for i, s, d in self.wanted)
        )

    def gathered(self, args: tuple[Any, ...], module: torch.nn.Module) -> list[torch.Tensor] | None:
        """The kernel's inputs, of a call with tensors alone; None: it is another call, or not so simple."""
        if len(args) != self.arguments:
            return None
        found = []
        for place, shape, dtype in self.places:
            value: Any = module
            if isinstance(place, int):
                value = args[place]
            else:
                for name in place:
                    value = getattr(value, name, None)
            if not isinstance(value, torch.Tensor) or value.shape != shape or value.dtype != dtype:
                return None
            found.append(value)
        return found if all(isinstance(value, torch.Tensor) for value in args) and not self.unlike() else None

    def run(self, inputs: list[torch.Tensor]) -> Any:
        made = self.kernel(*inputs)
        return made if self.one else self.returned.nested([made] if self.task.outputs == 1 else list(made))


class Optimized(torch.nn.Module):
    """The module with its forward done by verified kernels, for the calls they were judged for.

    `verdict` says in a sentence what runs and why; `outcomes` has each run. Parameters and buffers are the original's own.
    """

    def __init__(self, original: torch.nn.Module, device: str) -> None:
        super().__init__()
        self.original = original
        self.device = device
        self.outcomes: list[Outcome] = []
        self.reasons: list[str] = []
        self._cases: list[_Case] = []
        self._warned = False

    @property
    def optimized(self) -> bool:
        """Whether any call runs a kernel; otherwise this is the original."""
        return bool(self._cases)

    @property
    def verdict(self) -> str:
        return "; ".join(self.reasons)

    @property
    def speedup(self) -> float | None:
        """Over PyTorch eager, measured beside it; None where times are modelled or there is no kernel."""
        if not self._cases:
            return None
        outcome = self._cases[0].outcome
        return outcome.eager_us / outcome.time_us if outcome.eager_us and outcome.time_us else None

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        for case in self._cases:  # the usual call: tensors alone
            inputs = case.gathered(args, self.original) if not kwargs else None
            if inputs is not None:
                return case.run(inputs)
        if self._cases:
            given = flatten(args, kwargs)
            tensors = [*given.tensors, *state_of(self.original).values()]
            for case in self._cases:
                if case.fits(given, tensors) and not case.unlike():
                    return case.run([tensors[i] for i in case.task.inputs])
            self._warn(given)
        return self.original(*args, **kwargs)

    def _warn(self, given: Any) -> None:
        """Once: why the original runs."""
        if self._warned:
            return
        self._warned = True
        shown = ", ".join(f"{tuple(t.shape)} {str(t.dtype).removeprefix('torch.')}" for t in given.tensors)
        why = self._cases[0].unlike()
        text = f"the module is not as it was when it was traced: {why}" if why else f"no kernel was judged for this call ({shown})"
        warnings.warn(f"cutegen: {text}: the original module runs", stacklevel=3)

    def __deepcopy__(self, memo: dict[int, Any]) -> Optimized:
        made = Optimized(copy.deepcopy(self.original, memo), self.device)
        made.outcomes, made.reasons, made.training = list(self.outcomes), list(self.reasons), self.training
        made._cases = [case.of(made.original) for case in self._cases]
        return made

    def trajectory(self) -> str:
        """The attempts of the first run as an SVG picture."""
        return trajectory_svg(self.outcomes[0]) if self.outcomes else ""

    def extra_repr(self) -> str:
        return optimized_text(self)

    def _repr_html_(self) -> str:
        return optimized_html(self)


def _agrees(got: Any, want: Any) -> bool:
    """A last look beside the judge: the kernel answers as the module itself does for the example."""
    mine, theirs = ([v for v in pytree.tree_flatten(r)[0] if isinstance(v, torch.Tensor)] for r in (got, want))
    for a, b in zip(mine, theirs):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        if not b.is_floating_point():
            continue  # an index may differ where values are equal: the judge knows
        x, y = a.double(), b.double()
        finite = torch.isfinite(y)
        x, y = x[finite], y[finite]
        limit = AGREEMENT.get(b.dtype, 1e-1)
        if y.numel() and float((x - y).square().mean().sqrt()) > limit * (float(y.square().mean().sqrt()) + 1e-12):
            return False
    return len(mine) == len(theirs)


def _reason(outcome: Outcome, keep: str) -> tuple[bool, str]:
    """Whether the kernel is used, and why, in a sentence."""
    if not outcome.found:
        return False, f"the original runs: {outcome.reason}"
    if outcome.modelled or outcome.eager_us is None:
        text = f"verified kernel, {outcome.time_us:.3g} us modelled" if outcome.time_us else "verified kernel"
        if keep == "faster" and not outcome.device.startswith("simt"):
            return False, f"the original runs: {text}, and no time of PyTorch to compare with"
        return True, f"{text}; it runs on simt here, which checks and does not hurry"
    ratio = outcome.eager_us / outcome.time_us if outcome.time_us else 0.0
    text = f"{outcome.time_us:.3g} us against {outcome.eager_us:.3g} us of PyTorch eager"
    if ratio <= 1 and keep == "faster":
        return False, f"the original runs: the best verified kernel is not faster ({text})"
    return True, f"verified kernel, {ratio:.2f} times as fast: {text}"


def optimize(
    module: torch.nn.Module,
    example_inputs: Sequence[Any] | dict[str, Any],
    budget: float | None = None,
    model: str = "builtin",
    device: str | None = None,
    shapes: Sequence[Sequence[Any]] | None = None,
    *,
    keep: str = "faster",
    fresh: bool = False,
    progress: bool | None = None,
    runs: str | None = None,
    **settings: Any,
) -> Optimized:
    """Runs the loop on a module and returns it with the best verified kernel inside.

    example_inputs    the forward's arguments: a tuple or list, or a dict of keyword arguments
    budget    minutes that the loop may take (per shape)
    model     who writes kernels: "builtin", "anthropic:MODEL", ... (docs/models.md)
    device    None: where the tensors are; tensors on the CPU are judged by simt
    shapes    further example inputs; each gets a kernel of its own
    keep      "faster": the original stays unless a kernel is verified and faster; "verified": unless one is verified
    settings  flags of `cutegen run`: depth=3, budget_usd=5.0, accept=True

    Where nothing verified is faster the original runs, and `verdict` says why. Results are cached (fresh=True: anew).
    """
    if keep not in ("faster", "verified"):
        raise ValueError(f"keep={keep!r}: faster or verified")
    calls = [example_inputs, *(shapes or [])]
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"a torch.nn.Module is wanted, not {type(module).__name__}: a function can be the forward of one")
    if any(not isinstance(inputs, (list, tuple, dict)) for inputs in calls):
        raise TypeError("example_inputs is a tuple or list of the forward's arguments, (x,), or a dict of keyword arguments")
    place = device or device_of(module, example_inputs)
    made = Optimized(module, place)
    asked = {"model": model, "budget_minutes": budget, **settings}
    _known_program()
    for inputs in calls:
        _add_case(made, inputs, {k: v for k, v in asked.items() if v is not None}, keep, fresh, progress, runs)
    if not made.optimized:
        print(f"cutegen: {made.verdict}", file=sys.stderr)
    return made


def _known_program() -> None:
    """Exports that were judged on simt run through the program: the one that judged them."""
    os.environ.setdefault("CUTEGEN_PROGRAM", program())
    os.environ.setdefault("CUTEGEN_STARTED_BY", environment()["CUTEGEN_STARTED_BY"])


def _add_case(made: Optimized, inputs: Sequence[Any] | dict[str, Any], asked: Json, keep: str, fresh: bool, progress: bool | None, runs: str | None) -> None:
    module = made.original
    args, kwargs = ((), inputs) if isinstance(inputs, dict) else (tuple(inputs), {})
    try:
        task, returned = task_of(module, args, kwargs)
    except Untraceable as why:
        made.reasons.append(f"the original runs: {why}")
        return
    with Progress(task.name, progress) as heard:
        outcome = find(task, made.device, asked, fresh, heard.event, runs)
    made.outcomes.append(outcome)
    used, reason = _reason(outcome, keep)
    if used:
        given = flatten(args, kwargs)
        case = _Case(task, outcome, given, returned, module)
        tensors = [*given.tensors, *state_of(module).values()]
        with torch.no_grad():
            agrees = _agrees(case.run([tensors[i] for i in task.inputs]), module(*args, **kwargs))
        slower = _slower(made, case, args, kwargs, key_of(task, made.device, asked)) if agrees and keep == "faster" else ""
        if not agrees:
            reason = "the original runs: the verified kernel of its trace does not answer as the module does"
        elif slower:
            reason = f"the original runs: {slower}"
        else:
            made._cases.append(case)
    made.reasons.append(reason)


def _slower(made: Optimized, case: _Case, args: tuple[Any, ...], kwargs: dict[str, Any], key: str) -> str:
    """Why the kernel is not used although it is faster by itself: called from Python it is not. Measured once, then kept."""
    place = next((t.device for t in flatten(args, kwargs).tensors if t.device.type == "cuda"), None)
    if place is None:
        return ""
    times = case.outcome.more.get("call_us")
    if times is None:
        trial = Optimized(made.original, made.device)
        trial._cases.append(case)
        with torch.no_grad():
            times = medians(timed({"eager": lambda: made.original(*args, **kwargs), "kernel": lambda: trial(*args, **kwargs)}, place))
        note(key, case.outcome, call_us=times)
    if times["kernel"] <= times["eager"]:
        return ""
    return f"the verified kernel is faster by itself, and a call of it is not ({times['kernel']:.3g} us against {times['eager']:.3g} us)"
