# SPDX-License-Identifier: Apache-2.0
"""What a model has besides tensors, which a kernel may have been built with. The same file in every export.

1. Two models of the same facts compute the same function of their inputs, parameters and buffers.
2. To compare costs microseconds: watched() says what to compare again, and unchanged() compares it.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import hashlib
import inspect
import logging
import random
import sys
import types
from collections.abc import Iterator
from typing import Any

import torch

_IMPORT_SEED = 0  # the judge's
_DEEPEST, _WIDEST = 6, 256  # of an attribute
_OPAQUE = (torch.device, torch.Generator, types.ModuleType, logging.Logger)
_OF_MODE = (torch.nn.modules.dropout._DropoutNd, torch.nn.modules.batchnorm._NormBase, torch.nn.RReLU)
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_READ = (bool, int, float, str, bytes, type(None), torch.dtype, types.FunctionType)  # of what a function looks up in its module
GONE = object()
_CHANGE = (list, dict, set)
_CONSTANT = (str, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type, enum.Enum, logging.Logger)
_OF_MODULE = frozenset(vars(torch.nn.Module())) | {"training", "_cutegen_unjudged"}


@contextlib.contextmanager
def drawn_alike() -> Iterator[None]:
    """The reference is imported in here: what it draws then (`W = torch.randn(64)` beside Model) are the numbers that the kernel
    was judged with. The program's own generators stay where they are."""
    numpy = getattr(sys.modules.get("numpy"), "random", None)
    before = random.getstate(), numpy and numpy.get_state()
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(_IMPORT_SEED)
        random.seed(_IMPORT_SEED)
        if numpy:
            numpy.seed(_IMPORT_SEED)
        try:
            yield
        finally:
            random.setstate(before[0])
            if numpy:
                numpy.set_state(before[1])


def _essence(value: Any, seen: tuple[Any, ...] = ()) -> Any:
    """What an attribute says, so that two of them can be compared: numbers, texts, functions, and what objects hold of them.
    Of a tensor no values: those that a model holds are inputs of the kernel."""
    if isinstance(value, (bool, int, float, str, bytes, type(None), torch.dtype)):
        return value
    if len(seen) > _DEEPEST or any(value is other for other in seen):
        return "..."
    seen = (*seen, value)
    if isinstance(value, torch.Tensor):
        return "tensor", value.dtype, tuple(value.shape)
    if isinstance(value, (list, tuple, dict, set, frozenset)) and len(value) > _WIDEST:
        return type(value).__qualname__, len(value), _wide(value)
    if isinstance(value, (list, tuple)):
        return tuple(_essence(item, seen) for item in value)
    if isinstance(value, dict):
        return "dict", tuple((_essence(key, seen), _essence(item, seen)) for key, item in value.items())
    if isinstance(value, (set, frozenset)):
        return "set", tuple(sorted(map(repr, value)))
    if isinstance(value, functools.partial):
        return "partial", _essence((value.func, value.args, value.keywords), seen)
    if isinstance(value, types.MethodType):
        of = value.__self__  # a part of the model has its facts already
        return "method", _essence(value.__func__, seen), None if isinstance(of, torch.nn.Module) else _essence(of, seen)
    if isinstance(value, types.FunctionType):
        cells = tuple(_essence(cell.cell_contents, seen) for cell in value.__closure__ or () if cell != types.CellType())
        own = {name: value.__globals__[name] for name in _names(value) if isinstance(value.__globals__.get(name, ...), _READ)}
        given = value.__defaults__, value.__kwdefaults__, own
        return "function", value.__qualname__, _code(value.__code__), _essence(given, seen), cells
    if isinstance(value, type) or callable(value) and hasattr(value, "__qualname__"):
        return getattr(value, "__module__", None), value.__qualname__
    if type(value).__module__ == "numpy":
        return "numpy", repr(value), hashlib.sha256(value.tobytes()).hexdigest() if hasattr(value, "tobytes") else ""
    if isinstance(value, enum.Enum):
        return type(value).__qualname__, value.name
    if isinstance(value, torch.nn.Module):
        return plain_facts(value, seen)
    objects = sum(hasattr(other, "__dict__") for other in seen)
    if isinstance(value, _OPAQUE) or not hasattr(value, "__dict__") or objects > 2:
        return type(value).__qualname__
    return type(value).__qualname__, _essence(vars(value), seen)


def _wide(value: Any) -> int | None:
    """Of a long list of numbers or texts: compared at every call, so not one by one. None of anything else."""
    items = (*value, *value.values()) if isinstance(value, dict) else tuple(value)
    types_of = tuple(map(type, items))
    if not set(types_of) <= {bool, int, float, str, bytes, type(None)}:
        return None
    return hash(frozenset(items)) if isinstance(value, (set, frozenset)) else hash((items, types_of))


def _code(code: types.CodeType) -> Any:
    """What it computes: which names it calls, too, since `torch.relu(x)` and `torch.tanh(x)` differ in nothing else. Not where it
    was written: that of a function inside of it is in its repr."""
    return code.co_code, code.co_names, tuple(_code(c) if isinstance(c, types.CodeType) else (type(c), repr(c)) for c in code.co_consts)


def _names(function: types.FunctionType) -> list[str]:
    """All names that it and the functions inside of it look up; none for PyTorch's own, whose modules are the same for both."""

    def inside(code: types.CodeType) -> set[str]:
        return {*code.co_names}.union(*(inside(c) for c in code.co_consts if isinstance(c, types.CodeType)))

    return [] if (function.__module__ or "").partition(".")[0] == "torch" else sorted(inside(function.__code__))


def numbers_read(task: types.ModuleType) -> dict[str, str]:
    """The numbers beside Model that its methods look up, as texts: a task may have them from the environment, a file or a clock,
    and the kernel has those of its judgement."""
    found: dict[str, str] = {}
    todo, seen = [getattr(task, name, None) for name in ("Model", "get_init_inputs")], set()
    while todo:
        thing = todo.pop()
        thing = getattr(thing, "__func__", getattr(thing, "fget", thing))  # of a static method, a property
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, type) and thing.__module__ == task.__name__:
            todo += [*vars(thing).values(), *thing.__bases__]
        elif isinstance(thing, types.FunctionType) and thing.__globals__ is vars(task):
            for name in _names(thing):
                value = vars(task).get(name)
                if type(value) in (bool, int, float):
                    found[f"the task's {name}"] = repr(value)
                todo.append(value)
    return found


def has_modes(part: torch.nn.Module) -> bool:
    """Is it another function when it is trained?"""
    dropout = getattr(part, "dropout", 0.0)
    return isinstance(part, _OF_MODE) and getattr(part, "p", 1) != 0 or isinstance(dropout, float) and dropout > 0


def plain_facts(model: torch.nn.Module, seen: tuple[Any, ...] = ()) -> dict[str, Any]:
    """What a kernel may have been built with: the attributes of all parts of a model that are no tensors, and hooks of its
    parts, which ModelNew does not call."""
    facts: dict[str, Any] = {}
    for path, part in model.named_modules():
        facts[f"{path or 'Model'} is a"] = type(part).__name__ if path else "Model"
        for name, value in vars(part).items():
            if name in _OF_MODULE or isinstance(value, (torch.Tensor, torch.nn.Module)) or name == "forward" and not path:
                continue
            facts[f"{path}.{name}" if path else name] = _essence(value, seen)
        hooks = sum(len(getattr(part, name, ())) for name in _HOOKS) if path else 0
        if hooks:
            facts[f"the number of hooks of {path}"] = hooks
    facts.update((f"{path}._tied_to", first) for path, first, _, _ in _tied(model))
    return facts


def _tied(model: torch.nn.Module) -> Iterator[tuple[str, str, Any, str]]:
    """Tensors that a model has under a second name: (its path, the first one, where it is held, as what)."""
    seen: dict[int, str] = {}
    for path, part in model.named_modules():
        for store in (part._parameters, part._buffers):
            for name, tensor in store.items():
                full = f"{path}.{name}" if path else name
                if tensor is not None and seen.setdefault(id(tensor), full) != full:
                    yield full, seen[id(tensor)], store, name


def shown(fact: Any) -> str:
    """A fact in an error's text."""
    if fact is GONE:
        return "nothing"
    if isinstance(fact, tuple) and fact and fact[0] == "function":
        return str(fact[1])
    if isinstance(fact, tuple) and fact and fact[0] == "dict":
        return f"{{{', '.join(f'{key!r}: {shown(value)}' for key, value in fact[1])}}}"[:200]
    return repr(fact)[:200]


def watched(model: torch.nn.Module) -> list[tuple[Any, Any, Any, Any]]:
    """What plain_facts would say, to be compared sooner: (dictionary, key, value, what the value holds if it may change in
    place), key "" of its length, dictionary None of the hooks that were ever registered."""
    found: list[tuple[Any, Any, Any, Any]] = [(None, "", _hooks_so_far(), None)]
    found += [(store, name, store[name], None) for _, _, store, name in _tied(model)]
    deep: set[int] = set()  # an object that many parts have is followed once
    for path, part in model.named_modules():
        facts = vars(part)
        found.append((facts, "", len(facts), None))
        for name, value in facts.items():
            if name in _OF_MODULE or isinstance(value, (torch.Tensor, torch.nn.Module)):
                continue
            changes = isinstance(value, _CHANGE) or hasattr(value, "__dict__") and not isinstance(value, _CONSTANT)
            changes = changes or type(value).__module__ == "numpy" and getattr(value, "nbytes", 0) <= 1 << 16
            follow = changes and id(value) not in deep
            found.append((facts, name, value, _essence(value) if follow else None))
            deep.add(id(value))
        found += [(part._modules, name, child, None) for name, child in part._modules.items()]
        found += [(hooks, "", len(hooks), None) for hooks in (getattr(part, name, None) for name in _HOOKS) if path and hooks]
    return found


def _hooks_so_far() -> Any:
    return getattr(torch.utils.hooks.RemovableHandle, "next_id", None)


def unchanged(watched: list[tuple[Any, Any, Any, Any]]) -> bool:
    for facts, key, value, deep in watched:
        if key == "":
            if (_hooks_so_far() if facts is None else len(facts)) != value:
                return False
        elif facts.get(key, GONE) is not value or deep is not None and _essence(value) != deep:
            return False
    return True


def init_by_name(model: Any, made: Any) -> Any:
    """What get_init_inputs() gives; `[[arguments], {name: argument}]`, as KernelBook writes it, as a dict, unless Model takes the two
    as they are."""
    pair = isinstance(made, (list, tuple)) and [type(part) for part in made] in ([list, dict], [tuple, dict])
    if not pair or not all(isinstance(name, str) for name in made[1]):
        return made
    signature = inspect.signature(model)
    try:
        named = signature.bind(*made[0], **made[1]).arguments
    except TypeError:
        return made
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for n, p in signature.parameters.items() if n in named):
        return made
    with contextlib.suppress(TypeError):
        if not made[1] and signature.bind(*made):
            return made
    return dict(named)
