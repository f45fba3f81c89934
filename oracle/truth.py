# SPDX-License-Identifier: Apache-2.0
"""Running a model: the reference as PyTorch runs it, and the same in float64.

Hides the traps: buffers a forward updates, plain attributes, casts inside the forward, types this PyTorch cannot compute in.

1. A run leaves the model and its arguments as they were.
2. In the float64 run every floating point tensor is float64, whatever the forward asks for.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import types
from collections.abc import Iterator
from typing import Any

import torch

from . import backward, derivatives, masks, recurrent
from .fault import is_out_of_memory, use
from .graph import BesideMeta, Graph, Tracer
from .mode import Mode, called
from .places import places_traced
from .task import Arguments, Task, flatten, held_tensors, is_record, plain_tensors, task_errors

NO_HALF = (
    "not implemented for 'Half'",
    "not implemented for 'BFloat16'",
    "not supported for Half",
    "expected scalar type Float but found",
)
NARROW = (torch.float16, torch.bfloat16, torch.float32)


# Where PyTorch may compute fp32 with TF32 factors: (in products, in convolutions).
SETTINGS = {"defaults": (False, True), "strict": (False, False), "tf32": (True, True)}


def set_arithmetic(products: bool, convolutions: bool) -> None:
    """fp32 means fp32 except where TF32 is explicitly allowed; no reduced-precision sums."""
    torch.backends.cuda.matmul.allow_tf32 = products
    torch.backends.cudnn.allow_tf32 = convolutions
    for name in ("allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction"):
        with contextlib.suppress(AttributeError, AssertionError):  # older releases lack one of them
            setattr(torch.backends.cuda.matmul, name, False)


def tf32_allowed() -> tuple[bool, bool]:
    """Where TF32 is switched on now, by whatever name this release has for it: in products, in convolutions."""
    return _allows(torch.backends.cuda.matmul), _allows(torch.backends.cudnn)


def _allows(where: Any) -> bool:
    try:
        return bool(where.allow_tf32)
    except RuntimeError:  # newer releases refuse the older name once the newer one was used
        part = getattr(where, "conv", where)
        return getattr(part, "fp32_precision", "") == "tf32"


def setting_name(allowed: tuple[bool, bool]) -> str:
    """The setting that allows just this; a task may switch TF32 on in products alone."""
    return next((name for name, allows in SETTINGS.items() if allows == allowed), "tf32 in products")


def default_device(device: torch.device) -> Any:
    """Inside `with`, tensors a forward makes without naming a device are on this one."""
    return device if device.type == "cuda" and hasattr(device, "__enter__") else contextlib.nullcontext()


def results_of(task: Task, value: Any) -> list[tuple[str, torch.Tensor]]:
    """The tensors a forward returned, named."""
    leaves: list[tuple[str, Any]] = []
    flatten(value, "", leaves)
    tensors = [(name or "out", leaf) for name, leaf in leaves if isinstance(leaf, torch.Tensor)]
    if not tensors:
        raise use(
            f"{task.path}: Model.forward returns no tensor ({type(value).__name__})",
            "return a tensor, or a tuple, list or dict of tensors",
        )
    task.returns = _arrangement(value, iter(range(len(tensors))))
    return [(f"out{name}" if name.isdigit() else name, tensor) for name, tensor in tensors]


def _arrangement(value: Any, numbers: Iterator[int]) -> Any:
    """How the result tensors are nested: 0, {"tuple": [0, 1]}, {"dict": {"y": 0}}; {"value": ...} for what is not a tensor."""
    if isinstance(value, torch.Tensor):
        return next(numbers)
    if isinstance(value, dict):
        return {"dict": {str(key): _arrangement(item, numbers) for key, item in value.items()}}
    if isinstance(value, (list, tuple)) or hasattr(value, "to_tuple"):
        items = value.to_tuple() if hasattr(value, "to_tuple") else value
        return {"list" if isinstance(value, list) else "tuple": [_arrangement(item, numbers) for item in items]}
    if is_record(value):
        return {"tuple": [_arrangement(getattr(value, f.name), numbers) for f in dataclasses.fields(value)]}
    return {"value": value if isinstance(value, (bool, int, float, str)) else None}


@contextlib.contextmanager
def attributes_kept(model: torch.nn.Module) -> Iterator[list[str]]:
    """Undoes what a forward makes of tensors as attributes (tables that it keeps, states); names the modules that have such."""
    changed: list[str] = []
    before = [(name, module, _attributes(module)) for name, module in model.named_modules()]
    try:
        yield changed
    finally:
        for name, module, parts in before:
            now = _attributes(module)
            if any(_tensors(a) != _tensors(b) for a, b in zip(parts, now)):
                changed.append(name)
                for held, kept in zip((module._buffers, vars(module)), parts):
                    held.clear()
                    held.update(kept)


def _attributes(module: torch.nn.Module) -> tuple[dict[str, Any], dict[str, Any]]:
    return dict(module._buffers), dict(vars(module))


def _tensors(held: dict[str, Any]) -> dict[str, int]:
    return {name: id(value) for name, value in held.items() if isinstance(value, torch.Tensor)}


def _once(tensor: torch.Tensor) -> torch.Tensor:
    """Each element of an expanded tensor once: nothing can be written into all of its copies."""
    for dim, stride in enumerate(tensor.stride() if tensor.layout == torch.strided else ()):
        if stride == 0:
            tensor = tensor.narrow(dim, 0, min(1, tensor.shape[dim]))
    return tensor


def run(
    task: Task, model: torch.nn.Module, arguments: Arguments, tensors: list[torch.Tensor]
) -> list[tuple[str, torch.Tensor]]:
    """The forward's result tensors for these inputs."""
    with attributes_kept(model):
        return run_on(task, model, arguments, tensors)


def run_on(
    task: Task, model: torch.nn.Module, arguments: Arguments, tensors: list[torch.Tensor]
) -> list[tuple[str, torch.Tensor]]:
    """The same, and the model keeps the attributes that the forward gives it."""
    saved = [(buffer, buffer.clone()) for buffer in map(_once, model.buffers())]
    args, kwargs = arguments.with_tensors(tensors)
    with torch.no_grad(), task_errors(
        task.path,
        "Model.forward fails",
        "try it with plain PyTorch first: Model(*get_init_inputs())(*get_inputs())",
    ):
        with default_device(task.device):
            if arguments.upstream:
                results = _gradients(task, model, arguments, [_leaf(t) for t in tensors])
            else:
                results = results_of(task, model(*args, **kwargs))
        for buffer, before in saved:
            buffer.copy_(before)
    return [(name, result.detach()) for name, result in results]


def trace(
    task: Task,
    model: torch.nn.Module,
    arguments: Arguments,
    tensors: list[torch.Tensor],
    limit: int | None = None,
) -> tuple[Graph, list[tuple[str, torch.Tensor]]]:
    """Runs the forward once and gives its operator graph as well."""
    inputs = [t.clone() for t in tensors]  # the forward may write into them
    leaves = inputs + [h.tensor for h in held_tensors(model)]
    args, kwargs = arguments.with_tensors(inputs)
    saved = [(buffer, buffer.clone()) for buffer in map(_once, model.buffers())]
    marks = _mark_held(model, len(inputs))
    with torch.no_grad(), task_errors(
        task.path,
        "Model.forward fails",
        "try it with plain PyTorch first: Model(*get_init_inputs())(*get_inputs())",
    ):
        beside = BesideMeta() if any(t.device.type == "meta" for t in leaves) else contextlib.nullcontext()
        with beside, default_device(task.device), _plain_operators(model), attributes_kept(model) as changed, Tracer(
            leaves, limit
        ) as tracer, recurrent.Recurrent(tracer), places_traced(tracer):
            for tensor, number in marks:
                tracer.mark(tensor, number, 0)
            if arguments.upstream:
                tracer.follow(derivatives.FORMULAS)
                results = _gradients(task, model, arguments, inputs)
            else:
                results = results_of(task, model(*args, **kwargs))
        outputs = [tracer.node_of(r) for _, r in results]
        for buffer, before in saved:
            buffer.copy_(before)
    graph = Graph(tracer.nodes, len(leaves), outputs, tracer.exact, tracer.mutated, tracer.gap, changed)
    recurrent.finish(graph)
    masks.finish(graph, task.counting)
    return graph, results


def _leaf(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach() if tensor.is_floating_point() else tensor


def _gradients(
    task: Task, model: torch.nn.Module, arguments: Arguments, tensors: list[torch.Tensor]
) -> list[tuple[str, torch.Tensor]]:
    """The backward of the forward, for upstream gradients that are the last of `tensors`."""
    count = len(tensors) - arguments.upstream
    args, kwargs = arguments.with_tensors(tensors[:count])
    leaves = [(n, t) for n, t in zip(arguments.names, tensors[:count]) if t.is_floating_point()]
    for _, tensor in leaves:
        tensor.requires_grad_(True)
    with backward.parameters_with_gradients(model) as parameters:
        made = backward.gradients(
            task.path, lambda: results_of(task, model(*args, **kwargs)), leaves + parameters, tensors[count:]
        )
    task.returns = {"tuple": list(range(len(made)))}
    return made


@contextlib.contextmanager
def _plain_operators(model: torch.nn.Module) -> Iterator[None]:
    """Disables fused operators of single libraries, so that a graph is the same on every machine."""
    recurrent = any(isinstance(module, torch.nn.RNNBase) for module in model.modules())
    with torch.backends.mkldnn.flags(enabled=False), torch.backends.cudnn.flags(
        enabled=not recurrent, allow_tf32=False
    ):
        yield


def _mark_held(model: torch.nn.Module, first: int) -> list[tuple[torch.Tensor, int]]:
    """The model's own tensor objects (held_tensors gives detached ones) with the leaf each of them is."""
    objects = [v for v in model.state_dict(keep_vars=True).values() if isinstance(v, torch.Tensor)]
    names = {n for n, v in model.state_dict(keep_vars=True).items() if isinstance(v, torch.Tensor)}
    objects += [b for n, b in model.named_buffers() if n not in names]
    objects += [getattr(owner, name) for owner, name in plain_tensors(model)]
    marks: dict[int, tuple[torch.Tensor, int]] = {}
    for i, tensor in enumerate(objects):
        marks.setdefault(id(tensor), (tensor, first + i))  # tied parameters: the first name wins
    return list(marks.values())


# ---- copies of a model ------------------------------------------------------------------------

_DEEP = 4  # functions that hold functions that hold a model


def twin_of(model: torch.nn.Module) -> torch.nn.Module:
    """A copy of its own. Functions that a module holds (hooks, activations) hold its parts in turn, which a deep copy leaves as
    they are: theirs would be the parts of the first model."""
    memo: dict[int, Any] = {}
    twin = copy.deepcopy(model, memo)
    for module in twin.modules():
        held = vars(module)
        for name, value in list(held.items()):
            if isinstance(value, types.FunctionType):
                held[name] = _holding_copies(value, memo, _DEEP)
            elif isinstance(value, dict):
                for key in [k for k, v in value.items() if isinstance(v, types.FunctionType)]:
                    value[key] = _holding_copies(value[key], memo, _DEEP)
            elif isinstance(value, list):
                value[:] = [_holding_copies(v, memo, _DEEP) for v in value]
    return twin


def _holding_copies(value: Any, memo: dict[int, Any], deep: int) -> Any:
    """A function with the copies of what it holds, where there are copies."""
    if not isinstance(value, types.FunctionType) or not deep:
        return memo.get(id(value), value)
    before: list[Any] = []
    for cell in value.__closure__ or ():
        try:
            before.append(cell.cell_contents)
        except ValueError:  # a name that has no value yet
            return value
    defaults = value.__defaults__ or ()
    after = [_holding_copies(v, memo, deep - 1) for v in before]
    given = tuple(_holding_copies(v, memo, deep - 1) for v in defaults)
    if all(a is b for a, b in zip([*before, *defaults], [*after, *given])):
        return value
    made = types.FunctionType(value.__code__, value.__globals__, value.__name__, given or None, tuple(types.CellType(v) for v in after))
    made.__kwdefaults__ = value.__kwdefaults__
    made.__dict__.update(value.__dict__)
    return made


# ---- float64 ----------------------------------------------------------------------------------


class _Promote(Mode):
    """Inside `with`, whatever asks for a narrower floating point type gets float64."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        func = called(func, args)
        kwargs = dict(kwargs or {})
        if kwargs.get("dtype") in NARROW:
            kwargs["dtype"] = torch.float64
        args = tuple(torch.float64 if isinstance(a, torch.dtype) and a in NARROW else a for a in args)
        result = func(*args, **kwargs)
        if isinstance(result, torch.Tensor) and result.dtype in NARROW and not func._schema.is_mutable:
            return result.double()
        return result


def doubled(model: torch.nn.Module) -> torch.nn.Module:
    twin = twin_of(model).double()
    for owner, name in plain_tensors(twin):
        value = getattr(owner, name)
        setattr(owner, name, value.double() if value.is_floating_point() else value)
    return twin


def run_double(
    task: Task,
    model: torch.nn.Module,
    arguments: Arguments,
    tensors: list[torch.Tensor],
    disturb: Any = None,
) -> list[torch.Tensor] | None:
    """The truth: results in float64 (integers as they come), or None where this task cannot be computed so. `disturb` is a mode
    that spoils operands on the way (noise.py)."""
    wide = [t.double() if t.is_floating_point() else t.clone() for t in tensors]
    twin = doubled(model)
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)
        with _Promote(), disturb or contextlib.nullcontext():
            return [value for _, value in run(task, twin, arguments, wide)]
    except Exception as err:  # a task that insists on its types; the caller says so
        if is_out_of_memory(err):
            raise
        return None
    finally:
        torch.set_default_dtype(before)


def run_double_on_host(
    task: Task, model: torch.nn.Module, arguments: Arguments, tensors: list[torch.Tensor], disturb: Any = None
) -> list[torch.Tensor] | None:
    """The truth where the device has no room for it."""
    here, twin = copy.copy(task), twin_of(model).cpu()
    here.device = torch.device("cpu")
    for owner, name in plain_tensors(twin):
        setattr(owner, name, getattr(owner, name).cpu())
    return run_double(here, twin, arguments, [t.cpu() for t in tensors], disturb)


def in_float32(
    model: torch.nn.Module, tensors: list[torch.Tensor]
) -> tuple[torch.nn.Module, list[torch.Tensor]]:
    """Stand-ins for a CPU PyTorch that has no arithmetic in a 16-bit type."""
    twin = twin_of(model).float()
    for owner, name in plain_tensors(twin):
        value = getattr(owner, name)
        setattr(owner, name, value.float() if value.is_floating_point() else value)
    return twin, [t.float() if t.dtype in (torch.float16, torch.bfloat16) else t for t in tensors]


class StandIn(Mode):
    """Inside `with`, an operator that has no arithmetic in a 16-bit type here gets float32, and its results are of the type
    they would have: for the types of a graph."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        func, kwargs = called(func, args), kwargs or {}
        try:
            return func(*args, **kwargs)
        except RuntimeError as err:
            leaves: list[tuple[str, Any]] = []
            flatten([list(args), list(kwargs.values())], "", leaves)
            given = {leaf.dtype for _, leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()}
            narrow = given & {torch.float16, torch.bfloat16}
            if len(narrow) != 1 or not any(words in str(err) for words in NO_HALF):
                raise
        kind = narrow.pop()

        def wide(value: Any) -> Any:
            if isinstance(value, (list, tuple)):
                return type(value)(wide(v) for v in value)
            return value.float() if isinstance(value, torch.Tensor) and value.dtype == kind else value

        made = func(*wide(args), **{k: wide(v) for k, v in kwargs.items()})
        if func._schema.is_mutable and made is not None and args[0].dtype == kind:
            return args[0].copy_(made)
        if len(given) > 1 or kwargs.get("dtype") is not None:
            return made  # wider than the 16-bit type
        if isinstance(made, (tuple, list)):
            return type(made)(self._back(m, kind) for m in made) if type(made) in (tuple, list) else tuple(self._back(m, kind) for m in made)
        return self._back(made, kind)

    @staticmethod
    def _back(value: Any, kind: torch.dtype) -> Any:
        return value.to(kind) if isinstance(value, torch.Tensor) and value.dtype == torch.float32 else value


def on_meta(model: torch.nn.Module) -> torch.nn.Module:
    """The model without values: shapes only."""
    twin = twin_of(model).to("meta")
    for owner, name in plain_tensors(twin):
        setattr(owner, name, getattr(owner, name).to("meta"))
    return twin
