# SPDX-License-Identifier: Apache-2.0
"""A task file: find its size constants, execute it with other values, make its model and inputs.

Hides that a task is Python: every mistake of a task becomes a Fault with the task's own line.

1. The file is executed from its syntax tree; a constant is replaced where it is assigned, so that whatever
   the file computes from it follows.
2. The same seed gives the same model and the same arguments on the same device, and every import the same constants.
3. Arguments are kept flat: a tensor inside a list, tuple or dict argument is an input of its own.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import dataclasses
import errno
import functools
import importlib.abc
import importlib.util
import inspect
import os
import random
import re
import stat
import sys
import traceback
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from .exported.facts import init_by_name, numbers_read
from .fault import is_out_of_memory, memory, use
from .limits import import_deadline

MODULE = "cutegen_task"
REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENETUNREACH, errno.ENOENT}
CONFINED = (
    "a task is confined: it reads its own folder and Python's, writes into its TMPDIR, and has no network "
    "without --task-network (docs/security.md); put what it needs beside it"
)
NO_GPU = ("Found no NVIDIA driver", "not compiled with CUDA enabled", "No CUDA GPUs are available")
FORMAT = "a task defines class Model(nn.Module), get_inputs() and get_init_inputs(); see docs/tasks.md"
FIRST_SEED = 20  # of the draw a task is known by
IMPORT_SEED = 0  # also that of exported/facts.py
MAX_TENSORS = 512
MAX_DIMS = 8
MAX_SOURCE_BYTES = 1 << 20
DTYPES = {
    torch.float64: "f64",
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.bool: "bool",
}


# ---- source and its constants -----------------------------------------------------------------


@dataclass
class Source:
    path: Path
    text: str
    constants: dict[str, int]  # "N", or "shape[1]" for an element of a tuple
    literals: dict[str, int]  # sizes written out where tensors are made: "4096"; the same number is the same size everywhere

    def execute(self, values: dict[str, int]) -> types.ModuleType:
        """Runs the file with the named constants replaced."""
        tree = _Replace(values).visit(ast.parse(self.text, str(self.path)))
        module = types.ModuleType(MODULE)
        module.__file__ = str(self.path)
        sys.modules[MODULE] = module
        if not neighbours_unchanged():
            _forget_neighbours()
        before = set(sys.modules)
        with import_deadline(self.path), task_errors(self.path, "the task does not load"), _folder_on_path(self.path):
            _seed_import()
            exec(compile(ast.fix_missing_locations(tree), str(self.path), "exec"), module.__dict__)
        _remember_neighbours(set(sys.modules) - before, self.path.parent)
        _check_format(self.path, module)
        return module

    def rewritten(self, values: dict[str, int]) -> str:
        """The text of what execute(values) runs, its other lines as they are: the reference of an export."""
        replace = _Replace(values)
        replace.visit(ast.parse(self.text, str(self.path)))
        lines = [line.encode() for line in self.text.split("\n")]  # columns are counted in bytes
        for node, value in sorted(replace.done, key=lambda d: (d[0].lineno, d[0].col_offset), reverse=True):
            first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
            tail = lines[last][node.end_col_offset :]
            lines[first : last + 1] = [lines[first][: node.col_offset] + str(value).encode() + tail]
        return b"\n".join(lines).decode()


def _seed_import() -> None:
    """What a task draws while it is imported is a constant of its kernels: the same in every oracle, and in an export
    (drawn_alike() of exported/facts.py)."""
    torch.default_generator.manual_seed(IMPORT_SEED)
    random.seed(IMPORT_SEED)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(IMPORT_SEED)


def read_source(path: Path) -> Source:
    data = _regular_bytes(path)
    try:
        text = data.decode("utf-8-sig")  # some editors begin a file with a mark
        tree = ast.parse(text, str(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as err:
        where = f":{err.lineno}" if isinstance(err, SyntaxError) and err.lineno else ""
        raise use(
            f"the task does not load: {path}{where}: {type(err).__name__}: {getattr(err, 'msg', err)}", FORMAT
        ) from err
    return Source(path, text, _constants(tree), _written_out(tree))


def _regular_bytes(path: Path) -> bytes:
    """Reads only regular files: a device has no end, and opening a FIFO would block."""
    hint = "name a Python file in KernelBench's format"
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            mode = os.fstat(fd).st_mode
            if not stat.S_ISREG(mode):
                kind = "a folder" if stat.S_ISDIR(mode) else "a FIFO" if stat.S_ISFIFO(mode) else "a device"
                raise use(f"{path} is not a regular file but {kind}", hint)
            with open(fd, "rb", closefd=False) as file:
                data = file.read(MAX_SOURCE_BYTES + 1)
        finally:
            os.close(fd)
    except OSError as err:
        raise use(f"cannot read {path}: {err.strerror}", hint) from err
    if len(data) > MAX_SOURCE_BYTES:
        raise use(f"{path} has more than {MAX_SOURCE_BYTES} bytes", FORMAT)
    return data


def _constants(tree: ast.Module) -> dict[str, int]:
    """Top-level names assigned once, from integer literals only. What is computed from them follows by itself."""
    found: dict[str, int] = {}
    seen: dict[str, int] = {}
    for statement in tree.body:
        for target, value in _assigned(statement):
            seen[target] = seen.get(target, 0) + 1
            for name, node in _literals(target, value):
                found[name] = _literal(node) or 0
    return {name: value for name, value in found.items() if seen[name.split("[")[0]] == 1}


LEAST_LITERAL = 33  # smaller numbers are heads, groups, dimensions to sum over


def _makers(tree: ast.Module) -> Iterator[ast.AST]:
    """Where a task without constants writes its sizes: get_inputs, get_init_inputs, and how the model is made."""
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef) and statement.name in ("get_inputs", "get_init_inputs"):
            yield statement
        if isinstance(statement, ast.ClassDef):
            for part in statement.body:
                if isinstance(part, ast.FunctionDef) and part.name == "__init__":
                    yield part


def _written_out(tree: ast.Module) -> dict[str, int]:
    found = {
        node.value
        for maker in _makers(tree)
        for node in ast.walk(maker)
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value >= LEAST_LITERAL
    }
    return {str(value): value for value in sorted(found)}


def _assigned(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value:
        yield statement.target.id, statement.value
    if not isinstance(statement, ast.Assign):
        return
    for target in statement.targets:
        if isinstance(target, ast.Name):
            yield target.id, statement.value
        elif (
            isinstance(target, ast.Tuple)
            and isinstance(statement.value, ast.Tuple)
            and len(target.elts) == len(statement.value.elts)
        ):
            for name, value in zip(target.elts, statement.value.elts):
                if isinstance(name, ast.Name):
                    yield name.id, value


def _literals(name: str, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(value, (ast.Tuple, ast.List)):
        yield from ((f"{name}[{i}]", item) for i, item in enumerate(value.elts) if _literal(item) is not None)
    elif _literal(value) is not None:
        yield name, value


def _literal(node: ast.expr) -> int | None:
    """The value of an expression of integer literals (2048 * 2, 1 << 12), or None."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _literal(node.left), _literal(node.right)
    if left is None or right is None or not (0 <= left < 1 << 40 and 0 <= right < 1 << 40):
        return None
    if isinstance(node.op, (ast.Pow, ast.LShift)) and right > 40:
        return None
    if isinstance(node.op, ast.FloorDiv) and right == 0:
        return None
    table = {
        ast.Add: lambda: left + right,
        ast.Sub: lambda: left - right,
        ast.Mult: lambda: left * right,
        ast.FloorDiv: lambda: left // right,
        ast.Pow: lambda: left**right,
        ast.LShift: lambda: left << right,
    }
    return table[type(node.op)]() if type(node.op) in table else None


class _Replace(ast.NodeTransformer):
    """Puts other values where constants are assigned at top level."""

    def __init__(self, values: dict[str, int]) -> None:
        self.values = values
        self.done: list[tuple[ast.expr, int]] = []  # what stood there, and its new value

    def visit_Module(self, tree: ast.Module) -> ast.Module:
        for maker in _makers(tree) if any(name.isdigit() for name in self.values) else ():
            for node in ast.walk(maker):
                if isinstance(node, ast.Constant) and type(node.value) is int and str(node.value) in self.values:
                    node.value = self.values[str(node.value)]
                    self.done.append((node, node.value))
        for statement in tree.body:
            if isinstance(statement, ast.Assign):
                pairs = list(_assigned(statement))
                if isinstance(statement.targets[0], ast.Tuple) and isinstance(statement.value, ast.Tuple):
                    names = [getattr(t, "id", "") for t in statement.targets[0].elts]
                    statement.value.elts = [self._new(n, v) for n, v in zip(names, statement.value.elts)]
                elif pairs:
                    statement.value = self._new(pairs[0][0], statement.value)
            elif (
                isinstance(statement, ast.AnnAssign)
                and isinstance(statement.target, ast.Name)
                and statement.value
            ):
                statement.value = self._new(statement.target.id, statement.value)
        return tree

    def _new(self, name: str, value: ast.expr) -> ast.expr:
        if name in self.values:
            self.done.append((value, self.values[name]))
            return ast.copy_location(ast.Constant(self.values[name]), value)
        if isinstance(value, (ast.Tuple, ast.List)):
            value.elts = [
                self._new(f"{name}[{i}]", item) if _literal(item) is not None else item
                for i, item in enumerate(value.elts)
            ]
        return value


_neighbours: dict[str, tuple[str, tuple[int, int]]] = {}  # modules that tasks brought in: file and its stamp


def _stamp(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)


def _remember_neighbours(names: set[str], folder: Path) -> None:
    for name in names:
        file = getattr(sys.modules.get(name), "__file__", None)
        if file and Path(file).is_relative_to(folder):
            _neighbours[name] = (file, _stamp(file))


def neighbours_unchanged() -> bool:
    """Are the modules that tasks imported from their own folder unchanged?"""
    return all(_stamp(file) == stamp for file, stamp in _neighbours.values())


def _forget_neighbours() -> None:
    """Makes the next import read the files again."""
    for name in _neighbours:
        sys.modules.pop(name, None)
    _neighbours.clear()


class _Unlisted(importlib.abc.MetaPathFinder):
    """Modules of a folder that may not be listed: a task in a user's home sees the modules beside it and nothing else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        for file in (self.folder / f"{name}.py", self.folder / name / "__init__.py"):
            if path is None and os.access(file, os.R_OK):
                return importlib.util.spec_from_file_location(name, file)
        return None


@contextlib.contextmanager
def _folder_on_path(path: Path) -> Iterator[None]:
    """Lets a task import modules beside it."""
    unlisted = _Unlisted(path.parent)
    sys.path.insert(0, str(path.parent))
    try:
        os.listdir(path.parent)
    except OSError:
        sys.meta_path.append(unlisted)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(str(path.parent))
        with contextlib.suppress(ValueError):
            sys.meta_path.remove(unlisted)


MODERN_TORCH = (2, 4)  # has what tasks of today use: scaled_dot_product_attention with all its arguments, compile, ...


def _newer_torch_hint(err: BaseException) -> str | None:
    """What to do where the task names something of torch that an old torch does not have."""
    missing = re.search(r"'(torch[\w.]*|Tensor)'.* has no attribute|from 'torch[\w.]*'|No module named 'torch\.", str(err))
    version = re.match(r"(\d+)\.(\d+)", torch.__version__)
    old = version is not None and (int(version[1]), int(version[2])) < MODERN_TORCH
    if not (old and missing and isinstance(err, (AttributeError, ImportError))):
        return None
    return (
        f"this is PyTorch {torch.__version__}; a newer one may have it: `make torch` in cutegen's folder installs one, "
        "or name a Python that has one: --python PATH"
    )


@contextlib.contextmanager
def task_errors(path: Path, what: str, hint: str = FORMAT) -> Iterator[None]:
    """Turns any exception of the task's own code into a Fault with the task's line."""
    try:
        yield
    except BaseException as err:  # SystemExit, KeyboardInterrupt, what else is no Exception
        if type(err).__module__.startswith("oracle."):
            raise
        lines = [
            frame.lineno for frame in traceback.extract_tb(err.__traceback__) if frame.filename == str(path)
        ]
        where = f"{path}:{lines[-1]}" if lines else str(path)
        text = (str(err).strip().splitlines() or [""])[0]
        if is_out_of_memory(err):
            raise memory(f"the task needs more memory than there is: {where}: {text}") from err
        newer = _newer_torch_hint(err)
        if newer:
            hint = newer
        elif isinstance(err, ModuleNotFoundError) and err.name:
            hint = f"install it for the Python that runs tasks: {sys.executable} -m pip install {err.name.partition('.')[0]}"
        elif isinstance(err, OSError) and err.errno in REFUSED:
            hint = CONFINED
        elif any(words in text for words in NO_GPU):
            hint = "leave out .cuda() and device=\"cuda\": what the task makes is put on the device that judges, which is a CPU here"
        raise use(f"{what}: {where}: {type(err).__name__}: {text}", hint) from err


def _check_format(path: Path, module: types.ModuleType) -> None:
    model = getattr(module, "Model", None)
    if not (isinstance(model, type) and issubclass(model, torch.nn.Module)):
        raise use(f"{path} has no class Model(nn.Module)", FORMAT)
    if callable(getattr(module, "get_inputs_list", None)) and not hasattr(module, "get_inputs"):
        module.__dict__["get_inputs"] = lambda: module.__dict__["get_inputs_list"]()[0]
    if not callable(getattr(module, "get_inputs", None)):
        raise use(f"{path} has no function get_inputs()", FORMAT)


# ---- flat arguments and results ---------------------------------------------------------------


def flatten(value: Any, name: str, out: list[tuple[str, Any]]) -> None:
    """Appends (name, leaf) for everything in nested lists, tuples and dicts."""
    if isinstance(value, dict):
        for key, item in value.items():
            flatten(item, f"{name}.{key}" if name else str(key), out)
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            flatten(item, f"{name}.{i}" if name else str(i), out)
    elif hasattr(value, "to_tuple"):  # model outputs of transformers
        flatten(value.to_tuple(), name, out)
    elif is_record(value):
        flatten({f.name: getattr(value, f.name) for f in dataclasses.fields(value)}, name, out)
    else:
        out.append((name, value))


def is_record(value: Any) -> bool:
    """Is it an instance of a dataclass?"""
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def unflatten(value: Any, leaves: Iterator[Any]) -> Any:
    """The same nesting with every tensor replaced by the next of `leaves`."""
    if isinstance(value, dict):
        return {key: unflatten(item, leaves) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [unflatten(item, leaves) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if is_record(value):
        made = copy.copy(value)
        for f in dataclasses.fields(value):
            object.__setattr__(made, f.name, unflatten(getattr(value, f.name), leaves))  # it may be frozen
        return made
    return next(leaves) if isinstance(value, torch.Tensor) else value


@dataclass
class Arguments:
    """What get_inputs() gave, bound to the forward's arguments, defaults filled in; tensors in the forward's order."""

    bound: inspect.BoundArguments
    names: list[str]  # of tensors
    tensors: list[torch.Tensor]
    scalars: list[dict[str, Any]]
    constants: dict[str, str]  # arguments that are neither: name -> repr
    upstream: int = 0  # of a backward: how many of the tensors, the last ones, are gradients of the outputs

    def skeleton(self) -> Arguments:
        """The same call without its tensors' memory, to be filled by with_tensors()."""
        empty = iter([torch.empty(0) for _ in self.tensors])
        bound = inspect.BoundArguments(
            self.bound.signature, {n: unflatten(v, empty) for n, v in self.bound.arguments.items()}
        )
        return Arguments(bound, self.names, [], self.scalars, self.constants, self.upstream)

    def with_tensors(self, tensors: list[torch.Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        leaves = iter(tensors)
        bound = inspect.BoundArguments(
            self.bound.signature, {n: unflatten(v, leaves) for n, v in self.bound.arguments.items()}
        )
        return bound.args, bound.kwargs


# ---- a task with sizes chosen -----------------------------------------------------------------


class Task:
    """A task file executed with one set of constants, on one device."""

    def __init__(
        self, source: Source, values: dict[str, int], device: torch.device, variant: int = 0, backward: bool = False
    ) -> None:
        self.source, self.device = source, device
        self.values = {**source.constants, **values}
        self.module = source.execute(values)
        self.numbers_read = numbers_read(self.module)  # before anything runs that may change them
        self.backward = backward or getattr(self.module, "BACKWARD", False) is True
        self.keeps_strides = getattr(self.module, "KEEP_STRIDES", False) is True  # of results that lie channels last
        self.path = source.path
        self.variant, self.variants = variant, 1  # of get_inputs_list()
        self.counting = False  # a number of forward is how many elements a mask leaves: masks.py
        self.returns: Any = 0  # how the last forward's results were nested (truth.py)

    def at(self, values: dict[str, int]) -> Task:
        """The same task with other constants, on the host."""
        task = Task(self.source, values, torch.device("cpu"), self.variant, self.backward)
        task.counting = self.counting
        return task

    def arguments(self, seed: int, device: torch.device | None = None) -> Arguments:
        with task_errors(self.path, "get_inputs() fails"), self._seeded(seed) as device_first:
            made = device_first(self._get_inputs)
        if isinstance(made, torch.Tensor):
            made = [made]
        if not isinstance(made, (list, tuple, dict)):
            raise use(f"{self.path}: get_inputs() gives {type(made).__name__}, not a list", FORMAT)
        arguments = self._name(
            list(made) if not isinstance(made, dict) else [],
            made if isinstance(made, dict) else {},
            device or self.device,
        )
        return self._with_upstream(arguments, seed, device or self.device) if self.backward else arguments

    def _with_upstream(self, arguments: Arguments, seed: int, device: torch.device) -> Arguments:
        """A gradient for each output of the forward, as further inputs."""
        from .backward import upstream
        from .truth import run

        model = self.model(seed, device)
        more = upstream(run(self, model, arguments, arguments.tensors), seed)
        arguments.names += [n for n, _ in more]
        arguments.tensors += [t for _, t in more]
        arguments.upstream = len(more)
        return arguments

    def _get_inputs(self) -> Any:
        several = getattr(self.module, "get_inputs_list", None)
        if several is None:
            return self.module.get_inputs()
        made = several()
        if not isinstance(made, (list, tuple)) or self.variant >= len(made):
            raise use(f"{self.path}: get_inputs_list() has no entry {self.variant}", "it returns a list of what get_inputs() would return")
        self.variants = len(made)
        return made[self.variant]

    def model(self, seed: int, device: torch.device | None = None) -> torch.nn.Module:
        """A fresh model with parameters drawn under `seed`, on the device, in the mode it made itself (train, as a rule)."""
        init: Any = getattr(self.module, "get_init_inputs", list)
        with task_errors(self.path, "Model(*get_init_inputs()) fails"), self._seeded(seed) as device_first:

            def make() -> torch.nn.Module:
                made = init_by_name(self.module.Model, init())
                model = self.module.Model(**made) if isinstance(made, dict) else self.module.Model(*made)
                if any(isinstance(p, torch.nn.parameter.UninitializedTensorMixin) for p in (*model.parameters(), *model.buffers())):
                    self._complete(model)
                return model

            model = device_first(make).to(device or self.device)
            for owner, name in plain_tensors(model):
                setattr(owner, name, getattr(owner, name).to(device or self.device))
            return model.requires_grad_(False)

    def _complete(self, model: torch.nn.Module) -> None:
        """Lazy modules have the sizes of their parameters from a first call."""
        made = self._get_inputs()
        made = [made] if isinstance(made, torch.Tensor) else made
        with torch.no_grad():
            model(**made) if isinstance(made, dict) else model(*made)

    def init_inputs(self, seed: int) -> Any:
        """What model(seed) hands to Model."""
        init: Any = getattr(self.module, "get_init_inputs", list)
        with task_errors(self.path, "get_init_inputs() fails"), self._seeded(seed) as device_first:
            return init_by_name(self.module.Model, device_first(init))

    @functools.cached_property
    def _signature(self) -> inspect.Signature:
        """Of forward, without self."""
        signature = inspect.signature(self.module.Model.forward)
        return signature.replace(parameters=list(signature.parameters.values())[1:])

    def _name(self, positional: list[Any], keyword: dict[str, Any], device: torch.device) -> Arguments:
        signature = self._signature
        with task_errors(self.path, "get_inputs() does not fit Model.forward"):
            bound = signature.bind(*positional, **keyword)
        given = set(bound.arguments)
        bound.apply_defaults()
        leaves: list[tuple[str, Any]] = []
        for name, value in bound.arguments.items():
            spread = signature.parameters[name].kind == inspect.Parameter.VAR_KEYWORD
            flatten(value, "" if spread else name, leaves)
        tensors = [(n, v) for n, v in leaves if isinstance(v, torch.Tensor)]
        scalars = [
            {
                "name": n,
                "type": type(v).__name__,
                "value": v,
                **({} if n.split(".")[0] in given else {"default": True}),
            }
            for n, v in leaves
            if type(v) in (int, float, bool)
        ]
        others = {
            n: repr(v)[:200]
            for n, v in leaves
            if not isinstance(v, (torch.Tensor, int, float, bool)) and v is not None
        }
        return Arguments(
            bound, [n for n, _ in tensors], [v.to(device).detach() for _, v in tensors], scalars, others
        )

    @contextlib.contextmanager
    def _seeded(self, seed: int) -> Iterator[Any]:
        """Seeds every generator a task may use; yields a caller that makes tensors on the device where the task allows it."""

        def seed_all() -> None:
            if self.device.type == "cpu" and not torch.cuda.is_initialized():
                torch.default_generator.manual_seed(seed)  # torch.manual_seed() would keep a stack trace for CUDA each time
            else:
                torch.manual_seed(seed)
            random.seed(seed)
            if "numpy" in sys.modules:
                sys.modules["numpy"].random.seed(seed % (1 << 32))

        def device_first(function: Any) -> Any:
            seed_all()
            if self.device.type != "cpu" and hasattr(self.device, "__enter__"):
                with contextlib.suppress(Exception), self.device:
                    return function()
                seed_all()  # a task that mixes devices or brings its own generator: make it on the CPU
            return function()

        with torch.no_grad():
            yield device_first


def plain_tensors(model: torch.nn.Module) -> list[tuple[torch.nn.Module, str]]:
    """Tensors a module keeps as ordinary attributes: neither parameter nor buffer, so .to() leaves them."""
    return [
        (owner, name)
        for owner in model.modules()
        for name, value in vars(owner).items()
        if isinstance(value, torch.Tensor)
    ]


@dataclass
class Held:
    """A tensor the model holds, that a kernel is handed as an input."""

    name: str
    role: str  # "parameter", "buffer"
    tensor: torch.Tensor


def held_tensors(model: torch.nn.Module) -> list[Held]:
    """state_dict order first; then buffers that are not saved and plain attributes, in module order."""
    parameters = (
        {name for name, _ in model.named_parameters(remove_duplicate=False)}
        if _names_duplicates()
        else {name for name, _ in model.named_parameters()}
    )
    held = [
        Held(name, "parameter" if name in parameters else "buffer", value.detach())
        for name, value in model.state_dict(keep_vars=True).items()
        if isinstance(value, torch.Tensor)
    ]
    names = {h.name for h in held}
    held += [Held(name, "buffer", value) for name, value in model.named_buffers() if name not in names]
    path_of = {id(module): name for name, module in model.named_modules()}
    for owner, name in plain_tensors(model):
        prefix = path_of[id(owner)]
        held.append(Held(f"{prefix}.{name}" if prefix else name, "buffer", getattr(owner, name)))
    return held


@functools.lru_cache(maxsize=1)
def _names_duplicates() -> bool:
    return "remove_duplicate" in inspect.signature(torch.nn.Module.named_parameters).parameters
