# SPDX-License-Identifier: Apache-2.0
"""Find constants of a graph that depend on sizes, by tracing the task at other sizes, and write them as formulas of the sizes.

`relu(x) / sqrt(x.size(-1))` is traced as a division by 32.0, which is right at one size only. Here the number gets its
formula, so that a plan can compute it from the call's tensors.

1. A formula is factor * product of (size + shift)**power, and holds at every size that was tried, the full one included.
2. A number that varies without such a formula is marked as unknown; it is never treated as a constant. So is a graph whose
   operators themselves depend on sizes (a branch, a loop), and a window whose numbers do.
3. Sizes are those of the inputs and parameters. Where two dimensions were equal at every size tried, either may be meant:
   both are named, and the user of the formula requires them to be equal.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from .graph import Graph, Node, OnMeta
from .operators import VIEWS
from .scale import NO_SHAPES
from .task import Task
from .truth import trace

MAX_NAMES = 6  # constants of the task that are varied
MAX_ELEMENTS = 1 << 24  # of an input: above, only shapes are traced
NOT_SIZES = ("seed",)
CLOSE = 1e-9  # relative
POWERS = (1.0, -1.0, 0.5, -0.5, 2.0, -2.0)
SHIFTS = (0, -1, 1)
# a task's text that may choose its operators by a size
CHOICES = re.compile(r"\b(if|for|while|match|min|max|range)\b"), re.compile(r"\.shape\b|\.size\(|\.numel\(|\.dim\(|\blen\(")
# operators whose whole numbers are operands, not dimensions or sizes
ARITHMETIC = frozenset("""
    mul div add sub rsub pow clamp clamp_min clamp_max lt gt le ge eq ne where remainder fmod
    floor_divide masked_fill scalar_tensor full addcmul addcdiv lerp threshold maximum minimum
    """.split())
# operators whose whole numbers are windows or choices, besides the pools
WINDOWS = frozenset("topk kthvalue im2col col2im pixel_shuffle pixel_unshuffle constant_pad_nd".split())


@dataclass
class Point:
    """The task at one set of sizes."""

    sizes: dict[tuple[int, int], int]  # (leaf, dimension) -> size
    nodes: list[Node]
    way: str = ""  # how it was traced
    single: bool = False  # one constant was changed


def annotate(
    task: Task, fixed: dict[str, int], values: dict[str, int], graph: Graph, seed: int
) -> list[dict[str, Any]]:
    """Marks every number in the graph's arguments that varies with sizes; returns the list of them."""
    base = _point(graph)
    live = graph.live()
    chooses = all(words.search(task.source.text) for words in CHOICES)
    if not chooses and not any(_has_numbers(node) for number, node in enumerate(base.nodes) if number in live):
        return []  # nothing can follow from sizes: other sizes need not be tried
    points = list(_points(task, values, fixed, base, seed))
    others = [p for p in points if _same_operators(base, p)]
    found: list[dict[str, Any]] = []
    if chooses and _operators_vary(task, values, base, points, seed):
        _mark_node(next((n for k, n in enumerate(base.nodes) if k in live and n.sources()), None), found, operators=True)
    alone = not others  # it runs at this size only: every number may depend on it
    if alone and not values:
        return found
    for number, node in enumerate(base.nodes):
        if number not in live:
            continue
        if _windows(node) and any(p.single and _windows(p.nodes[number]) != _windows(node) for p in others):
            _mark_node(node, found, window=_windows(node))
        if "values" in node.kwargs and (alone or any(_table(p.nodes[number]) != _table(node) for p in others)):
            found.append({"id": len(found), "node": number, "op": node.op, "table": node.shape})
            node.kwargs["of_sizes"] = {"id": found[-1]["id"], "unknown": True}
        for path, value in _numbers(node):
            series = [value, *(_at(p.nodes[number], path) for p in others)]
            if not alone and all(s is not None and _close(s, value) for s in series):
                continue
            known = not alone and all(s is not None for s in series)
            arg = _argument(node, path)
            formula = _fit([s for s in series if s is not None], [base, *others]) if known else None
            entry: dict[str, Any] = {"id": len(found), "node": number, "op": node.op, "value": value}
            same = [f for f in found if formula and f.get("formula") == formula]
            if formula:
                entry.update(formula=formula, text=_words(formula))
            if same:
                entry["id"] = same[0]["id"]
            found.append(entry)
            arg["of_sizes"] = {"id": entry["id"], **(formula or {"unknown": True})}
    return found


def _mark_node(node: Node | None, found: list[dict[str, Any]], **what: Any) -> None:
    """Marks an operator whose kernel holds at these sizes only."""
    for arg in [*node.args, *node.kwargs.values()] if node else ():
        if "node" in arg or "list" in arg:
            found.append({"id": len(found), "op": node.op if node else "", **what})
            arg["of_sizes"] = {"id": found[-1]["id"], "unknown": True}
            return


def _windows(node: Node) -> list[Any]:
    """The numbers of a window, a shift or a choice that are not sizes of tensors: those of a pool, of topk."""
    if "pool" not in node.name and node.name not in WINDOWS or "adaptive" in node.name or node.op == "input":
        return []
    return [arg.get("ints", arg.get("value")) for arg in [*node.args, *node.kwargs.values()] if "ints" in arg or "value" in arg]


def _operators_vary(task: Task, values: dict[str, int], base: Point, points: list[Point], seed: int) -> bool:
    """Does the task do something else at another size? Compared with a trace of the same kind; sizes of 1 have operators of
    their own in PyTorch. With several constants changed it may be one that is no size: the number of steps of a loop."""
    again = _run(task, dict(values), seed, _numbers_known(base.nodes))
    if again is None or not _same_operators(base, again):
        return False
    return any(
        p.single and p.way == again.way and p.sizes.keys() == base.sizes.keys() and not _same_operators(base, p)
        and not any(size == 1 != base.sizes[place] for place, size in p.sizes.items())
        for p in points
    )  # fmt: skip


def facts(found: list[dict[str, Any]]) -> list[str]:
    """What a kernel's author must know about them."""
    lines = []
    for f in found:
        if "operators" in f:
            lines.append("the operators themselves depend on sizes: the plan must require the shapes it was written for")
        elif "window" in f:
            lines.append(f"the window of {f['op']} depends on sizes: the plan must require the shapes it was written for")
        elif "table" in f:
            lines.append(
                f"the numbers of the constant tensor of shape {f['table']} depend on sizes: the plan must require the shapes "
                "it was written for"
            )
        elif "text" in f:
            lines.append(
                f"the number {f['value']:.9g} in {f['op']} is {f['text']}: compute it in the plan from the call's shapes and "
                "pass it to the kernel as an argument"
            )
        else:
            lines.append(
                f"the number {f['value']:.9g} in {f['op']} depends on sizes in a way that was not found: the plan must "
                "require the shapes it was written for"
            )
    return list(dict.fromkeys(lines))


# ---- other sizes ------------------------------------------------------------------------------


def _point(graph: Graph) -> Point:
    sizes = {
        (k, d): size
        for k, node in enumerate(graph.nodes[: graph.leaves])
        for d, size in enumerate(node.shape)
    }
    return Point(sizes, graph.nodes)


def _points(
    task: Task, values: dict[str, int], fixed: dict[str, int], base: Point, seed: int
) -> Iterator[Point]:
    """The task with one constant changed at a time, with all of them doubled, and as it is written."""
    source = task.source
    now = {**(source.constants or source.literals), **values}
    constants = _numbers_known(base.nodes)
    names = [
        n
        for n, v in sorted(now.items(), key=lambda item: -item[1])
        if v > 1 and not any(w in n.lower() for w in NOT_SIZES)
    ][:MAX_NAMES]

    def tried(changed: dict[str, int]) -> Point | None:
        point = _run(task, {**values, **changed}, seed, constants)
        return point if point and point.sizes != base.sizes else None

    for name in names:
        count = 0
        for other in (now[name] + 1, 2 * now[name], 3 * now[name], now[name] // 2):
            point = tried({name: other}) if count < 2 and other > 0 else None
            if point:
                count += 1
                point.single = True
                yield point
    together = tried({name: 2 * now[name] for name in names}) if len(names) > 1 else None
    if together:
        yield together
    if any(values.get(n) != v for n, v in fixed.items()) or set(values) - set(fixed):
        written = _run(task, dict(fixed), seed, constants)
        if written:
            yield written


def _numbers_known(nodes: list[Node]) -> int:
    """Of how many constants."""
    return sum(1 for n in nodes if n.op == "constant" and n.kwargs)


def same_forward(task: Task, seed: int) -> bool:
    """Does the file's own Model, its constants as they are written, compute on this task's inputs what the task does? Not where
    forward uses a constant that was changed: x / N."""
    written = {**task.source.literals, **task.source.constants}
    if all(written[name] == value for name, value in task.values.items()):
        return True
    for real in (False, True):
        try:
            if real and _elements(task, task.values, seed) > MAX_ELEMENTS:
                return False
            changed, plain = (_nodes(task, values, task.values, seed, real) for values in (task.values, {}))
        except Exception:  # whatever a task does at sizes it was not written for
            continue
        if real or not any(node["op"] == "constant" for node in changed):
            return changed == plain
    return False


def _nodes(of: Task, values: dict[str, int], sizes: dict[str, int], seed: int, real: bool) -> list[dict[str, Any]]:
    """The graph of the Model of these constants, made for and given inputs of those sizes."""
    device = torch.device("cpu" if real else "meta")
    with contextlib.nullcontext() if real else OnMeta():
        inputs = of.at(sizes)
        task = of.at(values)
        task.module.get_init_inputs = getattr(inputs.module, "get_init_inputs", list)  # type: ignore[attr-defined]
        arguments, model = inputs.arguments(seed, device), task.model(seed, device)
    return trace(task, model, arguments, arguments.tensors)[0].write()


def _run(task: Task, values: dict[str, int], seed: int, constants: int) -> Point | None:
    """From shapes alone; on numbers, where they are few, if shapes alone are not enough, or leave fewer `constants` known."""
    found = None
    for way in (_trace_shapes, _trace_real):
        try:
            graph = way(task, values, seed)
        except Exception as err:  # whatever a task does at sizes it was not written for
            if way is _trace_shapes and not NO_SHAPES.search(f"{type(err).__name__} {err} {getattr(err, 'text', '')}"):
                return None  # it would not run on numbers either
            continue
        if graph is not None:
            found = _point(graph)
            found.way = way.__name__
        if found and _numbers_known(found.nodes) >= constants:
            break
    return found


def _trace_real(of: Task, values: dict[str, int], seed: int) -> Graph | None:
    if _elements(of, values, seed) > MAX_ELEMENTS:
        return None
    task = of.at(values)
    arguments = task.arguments(seed)
    return trace(task, task.model(seed), arguments, arguments.tensors, limit=8 * MAX_ELEMENTS)[0]


def _elements(of: Task, values: dict[str, int], seed: int) -> int:
    with OnMeta():
        arguments = of.at(values).arguments(seed, torch.device("meta"))
    return max((t.numel() for t in arguments.tensors), default=0)


def _trace_shapes(of: Task, values: dict[str, int], seed: int) -> Graph:
    meta = torch.device("meta")
    with OnMeta():
        task = of.at(values)
        arguments = task.arguments(seed, meta)
        model = task.model(seed, meta)
    return trace(task, model, arguments, arguments.tensors)[0]


def _same_operators(a: Point, b: Point) -> bool:
    return [n.op for n in a.nodes] == [n.op for n in b.nodes] and a.sizes.keys() == b.sizes.keys()


# ---- the numbers of a graph -------------------------------------------------------------------

Path = tuple[Any, ...]


def _numbers(node: Node) -> Iterator[tuple[Path, float]]:
    """Every number that is an operand, with the way to it."""
    if node.op == "constant":
        if _number(node.kwargs.get("value"), True):
            yield ("constant",), float(node.kwargs["value"])
        return
    if node.name in VIEWS or node.op == "input":
        return
    whole = node.name.rstrip("_") in ARITHMETIC
    for kind, items in (("args", enumerate(node.args)), ("kwargs", node.kwargs.items())):
        for key, arg in items:
            if isinstance(arg, dict) and _number(arg.get("value"), whole):
                yield (kind, key), float(arg["value"])


def _has_numbers(node: Node) -> bool:
    return "values" in node.kwargs or bool(_windows(node)) or next(_numbers(node), None) is not None


def _table(node: Node) -> Any:
    return node.kwargs.get("values") if node.op == "constant" else None


def _number(value: Any, whole: bool) -> bool:
    return (isinstance(value, float) or (whole and isinstance(value, int))) and not isinstance(value, bool)


def _argument(node: Node, path: Path) -> dict[str, Any]:
    if path[0] == "constant":
        return node.kwargs
    return node.args[path[1]] if path[0] == "args" else node.kwargs[path[1]]


def _at(node: Node, path: Path) -> float | None:
    try:
        value = _argument(node, path)["value"]
    except (LookupError, TypeError):
        return None
    return float(value) if isinstance(value, (int, float)) else None


def _close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=CLOSE, abs_tol=0.0)


# ---- formulas ---------------------------------------------------------------------------------


def _fit(series: list[float], points: list[Point]) -> dict[str, Any] | None:
    """The simplest formula that gives the number at every point; None: there is none of this kind."""
    variables: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for place in sorted(points[0].sizes, key=lambda p: (p[0], -p[1])):
        sizes = tuple(p.sizes[place] for p in points)
        if len(set(sizes)) > 1 and min(sizes) > 0:
            variables.setdefault(sizes, []).append(place)
    for terms in _candidates(variables):
        factor = _factor(series, [_product(terms, k) for k in range(len(points))])
        if factor is not None:
            return {
                "factor": factor,
                "terms": [
                    {"places": [list(p) for p in variables[sizes]], "shift": shift, "power": power}
                    for sizes, shift, power in terms
                ],
            }
    return None


Choice = tuple[tuple[int, ...], int, float]


def _candidates(variables: dict[tuple[int, ...], list[tuple[int, int]]]) -> Iterator[list[Choice]]:
    one = [(v, s, p) for v in variables for s in SHIFTS for p in POWERS if s == 0 or min(v) + s > 0]
    for choice in one:
        yield [choice]
    for a, b in itertools.combinations(one, 2):
        if a[0] != b[0]:
            yield [a, b]
    for count in range(3, len(variables) + 1):
        for group in itertools.combinations(variables, count):
            for power in POWERS:
                yield [(v, 0, power) for v in group]


def _product(terms: list[Choice], k: int) -> float:
    value = 1.0
    for sizes, shift, power in terms:
        value *= float(sizes[k] + shift) ** power
    return value


def _factor(series: list[float], made: list[float]) -> float | None:
    if made[0] == 0.0 or series[0] == 0.0:
        return None
    factor = series[0] / made[0]
    if all(_close(s, factor * m) for s, m in zip(series, made)):
        return float(f"{factor:.15g}")
    return None


def _words(formula: dict[str, Any]) -> str:
    """factor * sqrt(in0.shape[1]), for people and models."""
    above: list[str] = [] if formula["factor"] == 1.0 else [f"{formula['factor']:.9g}"]
    below: list[str] = []
    forms: dict[float, Callable[[str], str]] = {
        1.0: lambda s: s,
        0.5: lambda s: f"sqrt({s})",
        2.0: lambda s: f"{s} * {s}",
    }
    for term in formula["terms"]:
        leaf, dim = term["places"][0]
        size = f"in{leaf}.shape[{dim}]"
        if term["shift"]:
            size = f"({size} {'-' if term['shift'] < 0 else '+'} {abs(term['shift'])})"
        (above if term["power"] > 0 else below).append(forms[abs(term["power"])](size))
    text = " * ".join(above) or "1"
    if not below:
        return text
    return f"{text} / {below[0] if len(below) == 1 and ' * ' not in below[0] else '(' + ' * '.join(below) + ')'}"
