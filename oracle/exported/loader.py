# SPDX-License-Identifier: Apache-2.0
"""Runs the judged binary of an exported kernel inside PyTorch. The same file in every export; nothing is compiled.

    native.py        the operator in C, by loader-MACHINE.so: all launches in one call
    launcher.py      loads code and launches through the CUDA driver, in Python
    gradients.py     what autograd asks for
    facts.py         what a model has besides tensors: is it the one that was judged?
    backward/        where the gradients are a judged kernel's: its export
    launches.json    the table: judged shapes, dtypes and scalars, each with its launch list as plain data
    kernel-N.cubin   the code that was judged (kernel-N.ptx: judged on simt, cutegen's CUDA device on the CPU)
    reference.py     the task: Model, get_inputs, get_init_inputs
    record.json      verdict, hashes, device, versions

1. Code runs only if its SHA-256 is the one that was judged, on the architecture it was judged on.
2. A launch list runs only for the shapes, dtypes, strides, alignment and other arguments (numbers, texts, None, names
   of a dict) it was judged with; other strides and addresses are copied to such, everything else is an error, or left
   to Model where the export says so.
3. The operator is pure: outputs are new, inputs stay as they are. An input that requires grad gets its gradient
   (gradients.py), or an error.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import os
import shutil
import subprocess
import tempfile
import threading
import warnings
import weakref
from typing import Any, Callable

import torch
from torch.autograd import forward_ad

DTYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i64": torch.int64,
    "i32": torch.int32,
    "i16": torch.int16,
    "i8": torch.int8,
    "u8": torch.uint8,
    "bool": torch.bool,
}
FORMAT = 1

# ---- simt: the same code on a CPU --------------------------------------------------------------------


def run_simt(folder: str, number: int, ins: list[torch.Tensor], outs: list[torch.Tensor]) -> None:
    """The judged PTX on cutegen's simt, in a process of its own: slow, for trying things out."""
    program = os.environ.get("CUTEGEN_PROGRAM") or shutil.which("cutegen")
    if not program:
        raise RuntimeError("this export was judged on simt and runs through cutegen alone: put cutegen on the PATH, or set CUTEGEN_PROGRAM")
    back = {dtype: name for name, dtype in DTYPES.items()}
    with tempfile.TemporaryDirectory(prefix="cutegen-") as work:
        command = [program, "simt", "run", folder, "--json", "--check", "off", "--case", str(number)]
        for kind, tensors in (("input", ins), ("output", outs)):
            for k, tensor in enumerate(tensors):
                path = os.path.join(work, f"{kind}{k}")
                if kind == "input":
                    with open(path, "wb") as out:
                        out.write(_storage_bytes(tensor))
                sizes = ",".join(str(n) for n in tensor.shape) or "1"
                command += [f"--{kind}", f"{back[tensor.dtype]}[{sizes}]=@{path}"]
        done = subprocess.run(command, capture_output=True, check=False)
        said = done.stdout.decode(errors="replace")
        if '"outcome":"ok"' not in said.replace(" ", ""):
            raise RuntimeError("simt: " + (said + done.stderr.decode(errors="replace"))[-1500:])
        for k, tensor in enumerate(outs):
            with open(os.path.join(work, f"output{k}"), "rb") as data:
                raw = bytearray(data.read())
            if tensor.numel():
                tensor.copy_(torch.frombuffer(raw, dtype=tensor.dtype).view(tensor.shape))


def _storage_bytes(tensor: torch.Tensor) -> bytes:
    """The elements in the order they have in memory; the tensor is dense."""
    order = sorted(range(tensor.dim()), key=lambda d: (-tensor.stride(d), d))
    flat = tensor.detach().permute(order).contiguous().reshape(-1).view(torch.uint8)
    return flat.numpy().tobytes()


def _recorded(folder: str, name: str) -> bytes:
    """A file as record.json knows it."""
    try:
        with open(os.path.join(folder, "record.json"), "rb") as file:
            known = json.loads(file.read())["files"][name]
        with open(os.path.join(folder, name), "rb") as file:
            text = file.read()
    except (OSError, ValueError, KeyError, TypeError) as err:
        raise RuntimeError(f"{folder} is not a whole export, {name} or record.json cannot be read ({err}): copy all files, or export again") from err
    if hashlib.sha256(text).hexdigest() != known:
        raise RuntimeError(f"{folder}/{name} was changed after the export: its SHA-256 differs from record.json; export again, or see cutegen verify")
    return text


# ---- one export ----------------------------------------------------------------------------------------


def _arranged(returns: Any, outs: list[Any]) -> Any:
    """The outputs as Model returns them: a tensor, tuple, list or dict."""
    if isinstance(returns, int):
        return outs[returns]
    kind, items = next(iter(returns.items()))
    if kind == "dict":
        return {name: _arranged(item, outs) for name, item in items.items()}
    if kind == "value":
        return items
    made = [_arranged(item, outs) for item in items]
    return made if kind == "list" else tuple(made)


# ---- arguments as they were judged ---------------------------------------------------------------------

_NUMBERS = {"bool": (bool,), "int": (int,), "float": (float,)}


def _fits(data: dict[str, Any], value: Any, tensors: list[Any]) -> bool:
    """Is this argument what was judged, but for the numbers in its tensors? They are added in the judged order."""
    ((kind, judged),) = data.items()
    if kind == "tensor":
        tensors.append(value)
        return isinstance(value, torch.Tensor)
    if kind in ("list", "tuple"):
        return isinstance(value, (list, tuple)) and len(value) == len(judged) and all(_fits(d, v, tensors) for d, v in zip(judged, value))
    if kind == "dict":
        return isinstance(value, dict) and value.keys() == judged.keys() and all(_fits(d, value[k], tensors) for k, d in judged.items())
    if kind in _NUMBERS:
        known = float.fromhex(judged) if kind == "float" else int(judged)
        return isinstance(value, _NUMBERS[kind]) and (kind == "bool" or not isinstance(value, bool)) and (value == known or value != value and known != known)
    if kind == "none":
        return value is None
    if kind == "dtype":
        return value is getattr(torch, judged)
    if kind == "device":
        return isinstance(value, (torch.device, str))
    return isinstance(value, str) and value == judged


def _loosely(value: Any, tensors: list[Any]) -> bool:
    """The same where the judged arguments are not plain data: only tensors in lists can be told apart."""
    if isinstance(value, (list, tuple)):
        return all(_loosely(item, tensors) for item in value)
    tensors.append(value)
    return isinstance(value, torch.Tensor)


def _words(value: Any) -> str:
    """An argument in an error's text."""
    if isinstance(value, torch.Tensor):
        return "a tensor"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_words(item) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_words(item)}' for key, item in value.items())}}}"
    return repr(value)[:80]


def _judged_words(data: dict[str, Any]) -> str:
    ((kind, judged),) = data.items()
    if kind in ("list", "tuple"):
        return f"[{', '.join(_judged_words(item) for item in judged)}]"
    if kind == "dict":
        return f"{{{', '.join(f'{key}: {_judged_words(item)}' for key, item in judged.items())}}}"
    plain = {"tensor": "a tensor", "none": "None", "device": "a device", "dtype": f"torch.{judged}"}
    return plain.get(kind) or (repr(float.fromhex(judged)) if kind == "float" else str(judged) if kind in _NUMBERS else repr(judged))


_PLAIN_TENSORS = (torch.Tensor, torch.nn.Parameter)


def _modes() -> tuple[Callable[[], Any], ...] | None:
    """What tells whether anything of torch's wants to see operators called; None: this torch cannot say."""
    names = ("_len_torch_dispatch_stack", "_len_torch_function_stack", "_is_tracing")
    found: list[Any] = [getattr(torch._C, name, None) for name in names]
    found.append(getattr(getattr(torch._C, "_functorch", None), "peek_interpreter_stack", None))
    return tuple(found) if all(found) else None


class Export:
    """What NAME_new.py uses: the table, the operator, and ModelNew's forward. `launcher`, `gradients`, `native`,
    `facts`: those files, loaded. `how` says what launches: "native", or "python: " and why."""

    def __init__(self, folder: str, reference: Any, launcher: Any, gradients: Any, native: Any, facts: Any) -> None:
        text = _recorded(folder, "launches.json")
        self.folder, self.reference, self.launcher, self.table = folder, reference, launcher, json.loads(text)
        self.about = facts
        self.numbers = facts.numbers_read(reference) if self.table.get("constants") is not None else {}
        if self.table.get("format") != FORMAT:
            raise RuntimeError(f"{folder}: launches.json has format {self.table.get('format')}, this loader reads {FORMAT}")
        self.cases, self.device = self.table["cases"], self.table["device"]
        self.returns, self.fallback, self.call = self.table["returns"], self.table["fallback"], self.table["call"]
        self.plain = self.returns == 0  # one tensor, not nested
        first = self.cases[0]
        self.inputs, self.output_count = first["inputs"], len(first["outputs"])
        self.listed = len(self.inputs) > 64  # arguments of an operator, by torch's dispatcher: more tensors are one, a list
        self.upstream = self.table["upstream"]  # of a backward: the last arguments are gradients of Model's results
        self.argument_tensors = sum(t["role"] == "input" for t in self.inputs) - self.upstream
        self.held = [t["name"].split(".") for t in self.inputs if t["role"] != "input"]
        self.dtypes = [[DTYPES[t["dtype"]] for t in case["inputs"]] for case in self.cases]
        self.shapes = [[tuple(t["shape"]) for t in case["inputs"]] for case in self.cases]
        self.forward_dtypes = [self._without_upstream(dtypes) for dtypes in self.dtypes]
        self.forward_shapes = [self._without_upstream(shapes) for shapes in self.shapes]
        self.strides = [[tuple(t["strides"]) for t in case["inputs"]] for case in self.cases]
        self.outs = [[(tuple(t["shape"]), tuple(t["strides"]), DTYPES[t["dtype"]]) for t in case["outputs"]] for case in self.cases]
        self.scalars = [[s["value"] for s in case["scalars"]] for case in self.cases]
        self.alignment = self.table["alignment"]
        self.kinds = [list(zip(*kinds)) for kinds in zip(self.shapes, self.dtypes, self.strides)]
        parameters = list(inspect.signature(reference.Model.forward).parameters.values())[1:]
        self.parameters = [(p.name, p.default is not p.empty, p.default) for p in parameters]
        self.spread = any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)
        self.calls = [self._pattern(case.get("call")) for case in self.cases]
        self.facts: dict[str, Any] | None = None
        self.watched: Any = weakref.WeakKeyDictionary()
        self.training, self.training_counts = self.table["training"], self._training_counts()
        self.lock = threading.RLock()
        self.driver: Any = None
        self.modules: dict[tuple[int, int], Any] = {}
        self.launchers: dict[tuple[int, int], Any] = {}
        self.with_gradients = gradients
        kernel = None
        if self.upstream or self.table["gradients"] == "kernel":
            kernel = self if self.upstream else Export(os.path.join(folder, "backward"), reference, launcher, gradients, native, facts)
        self.gradients = gradients.Gradients(self, kernel)
        guard = torch._C._AutoDispatchBelowAutograd
        self.below: Any = guard if hasattr(guard, "__enter__") else _below_autograd
        compiler = getattr(torch, "compiler", None)
        self.compiling = getattr(compiler, "is_compiling", bool)
        self.modes: Any = _modes()
        # Whether _directly may be tried: nothing but tensors to compare, no gradients to make.
        flat = all(call is not None and all("tensor" in data for data in call) for call in self.calls)
        self.direct = self.modes is not None and self.device["kind"] == "cuda" and not self.upstream and flat
        self.warned: set[str] = set()
        self.native: Any = None
        self.how = "python: this export was judged on simt"
        self.namespace = f"cutegen_{self.table['name']}_{self._identity(text, kernel)}"
        with vars(torch).setdefault("_cutegen_lock", threading.RLock()):  # of the process: each export has a loader of its own
            self._register(native)
            run = getattr(torch.ops, self.namespace).run.default
            self.operator: Any = (lambda *ins: run(list(ins))) if self.listed else run

    def _identity(self, text: bytes, kernel: Any) -> str:
        """Of what the operator does, gradients included: exports that differ in either are two operators."""
        parts = [text, _recorded(self.folder, "reference.py"), kernel.namespace.encode() if kernel not in (None, self) else b""]
        return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()[:12]

    def _pattern(self, call: Any) -> list[Any] | None:
        """The judged arguments in the forward's order; None: they were not plain data."""
        if call is None:
            return None
        args, kwargs = call["list"][0]["list"], call["list"][1]["dict"]
        if self.spread:
            return [*args, *kwargs.values()]
        return [*args, *(kwargs[p[0]] for p in self.parameters[len(args) :])]

    def _without_upstream(self, items: list[Any]) -> list[Any]:
        return items[: self.argument_tensors] + items[self.argument_tensors + self.upstream :]

    # ---- the module -------------------------------------------------------------------------------------

    def accept(self, model: torch.nn.Module) -> None:
        """Was the kernel judged for a model made like this one? Called when a ModelNew is made."""
        other, mine, judged = self._other_facts(model)
        if other and not self.fallback:
            raise ValueError(
                f"this kernel was judged with {other} = {self.about.shown(judged.get(other, self.about.GONE))}, not {self.about.shown(mine.get(other, self.about.GONE))}{self._reduced()}; "
                "use Model, or run cutegen for a task made like that"
            )
        if other:
            object.__setattr__(model, "_cutegen_unjudged", f"{other} = {self.about.shown(mine.get(other, self.about.GONE))}")
        if self.table["writes"]:
            self._warn(f"Model.forward also writes into {', '.join(self.table['writes'])}; ModelNew does not")

    def forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.direct and not self.compiling() and not kwargs and len(args) == len(self.parameters) == self.argument_tensors:
            if not self._unjudged(model) and not (self.training_counts and model.training != self.training):
                made = self._directly([*args, *self._held(model)] if self.held else args)
                if made is not None:
                    return made if self.plain else _arranged(self.returns, [made] if self.output_count == 1 else list(made))
        given: Any = args
        if kwargs or len(args) != len(self.parameters):
            given = self._bound(args, kwargs)
        tensors, scalars = self._sorted_out(given)
        if len(tensors) != self.argument_tensors:
            raise self._arguments_wrong(given)
        if any(t.numel() == 0 for t in tensors):
            return self.reference.Model.forward(model, *args, **kwargs)  # nothing to compute: Model knows its shape
        held = self._held(model)
        if any(t is None for t in held):
            return self._without_tensor(model, args, kwargs, held)
        if not self.compiling() and self._transformed():
            return self._of_reference(model, args, kwargs)
        number, found = self._judged_call(given, held)
        tensors = found if number >= 0 else tensors + held
        if number < 0 or self._unjudged(model) or (self.training_counts and model.training != self.training):
            return self._otherwise(model, args, kwargs, (tensors, scalars, given))
        if self.upstream:
            wants_grad = torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
            return self.gradients.forward(tensors) if wants_grad else self.reference.Model.forward(model, *args, **kwargs)
        made = self._made(tensors)
        if self.plain:
            return made
        return _arranged(self.returns, [made] if self.output_count == 1 else list(made))

    def _unjudged(self, model: torch.nn.Module) -> Any:
        """What of this model is not as it was judged: since it was made, or set later. Not followed by torch.compile."""
        if model._cutegen_unjudged or self.compiling():
            return model._cutegen_unjudged
        watched = self.watched.get(model)
        if watched is not None and self.about.unchanged(watched):
            return None
        other, mine, _ = self._other_facts(model)
        if other:
            return f"{other} = {self.about.shown(mine.get(other, self.about.GONE))}"
        self.watched[model] = self.about.watched(model)
        return None

    def _other_facts(self, model: torch.nn.Module) -> tuple[str, dict[str, Any], dict[str, Any]]:
        """The first fact in which this model differs from the judged one, if any; the facts of both. A private attribute that
        the judged one lacks is none of Model's."""
        mine, judged = self.about.plain_facts(model), self.judged_facts()
        mine.update(self.numbers)
        for key in sorted(set(mine) | set(judged)):
            if key not in judged and key.rpartition(".")[2].startswith("_"):
                continue
            if mine.get(key, self.about.GONE) != judged.get(key, self.about.GONE):
                return key, mine, judged
        return "", mine, judged

    def judged_facts(self) -> dict[str, Any]:
        """As they were before the reference's forward ran, which may set attributes."""
        with self.lock:
            if self.facts is None:
                model = self.gradients.model()
                self.training_counts = self.training_counts or any(map(self.about.has_modes, model.modules()))
                self.facts = {**self.about.plain_facts(model), **(self.table.get("constants") or {})}
            return self.facts

    def _transformed(self) -> bool:
        """Is this inside torch.func's transforms, or do tangents go along? The kernel knows nothing of either."""
        return forward_ad._current_level >= 0 or self.modes is not None and self.modes[-1]() is not None

    def _of_reference(self, model: Any, args: Any, kwargs: Any) -> Any:
        if self.table["gradients"] == "none":
            raise RuntimeError("this kernel has no derivatives, and runs in no transform of torch.func: use Model, or export with --gradients reference")
        return self.reference.Model.forward(model, *args, **kwargs)

    def _made(self, tensors: list[Any]) -> Any:
        """The operator's results, by the shortest way that torch allows."""
        if self.compiling() or torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
            return self.operator(*tensors)
        with self.below():  # autograd has nothing to do: save its call
            return self.operator(*tensors)

    def run(self, *tensors: torch.Tensor) -> Any:
        """As the operator does it, and sooner: for callers that torch does not trace."""
        made = self._directly(tensors) if self.direct and len(tensors) == len(self.inputs) else None
        return self.operator(*tensors) if made is None else made

    def _held(self, model: Any) -> list[Any]:
        """The model's own tensors, in the operator's order."""
        found = []
        for path in self.held:
            owner = model
            for name in path[:-1]:
                owner = getattr(owner, name, None)
            held = None if owner is None else owner._parameters.get(path[-1])  # not by getattr: Module's takes microseconds
            found.append(getattr(owner, path[-1], None) if held is None else held)
        return found

    def _directly(self, tensors: Any) -> Any:
        """What the operator would do in the end, without its dispatch; None: it has to be called, or something has to be
        copied or refused. Plain tensors of one GPU as they were judged, and no mode, transform or autograd of torch's."""
        for count in self.modes:
            if count():
                return None
        if forward_ad._current_level >= 0:
            return None
        wants_grad, device, number = torch.is_grad_enabled(), -1, -1
        for t in tensors:
            if type(t) not in _PLAIN_TENSORS or wants_grad and t.requires_grad or t.is_neg():
                return None
        device = tensors[0].get_device()
        if device < 0:
            return None
        if self.native is not None and not self.listed:
            return self._natively(tensors)
        for number, kinds in enumerate(self.kinds):
            pointers = []
            for t, kind in zip(tensors, kinds):
                pointer = t.data_ptr()
                other = t.shape != kind[0] or t.dtype != kind[1] or t.stride() != kind[2] or t.get_device() != device
                if other or pointer % self.alignment or not pointer:  # none: a tensor of zeros that has no memory
                    break
                pointers.append(pointer)
            else:
                return self._queued(number, tensors[0].device, device, pointers)
        return None

    def _natively(self, tensors: Any) -> Any:
        """By the operator's kernel in C, which copies what it must; None: to be refused."""
        for kinds in self.kinds:
            for t, kind in zip(tensors, kinds):
                if t.shape != kind[0] or t.dtype != kind[1]:
                    break
            else:
                with self.below():
                    return self.operator(*tensors)
        return None

    def _sorted_out(self, given: Any) -> tuple[list[Any], list[Any]]:
        """Tensors and numbers of nested arguments, in order."""
        tensors, scalars = [], []
        for value in given:
            if isinstance(value, torch.Tensor):
                tensors.append(value)
            elif isinstance(value, (list, tuple, dict)):
                inner = self._sorted_out(value.values() if isinstance(value, dict) else value)
                tensors += inner[0]
                scalars += inner[1]
            elif isinstance(value, (bool, int, float)):
                scalars.append(value)
        return tensors, scalars

    def _bound(self, args: Any, kwargs: dict[str, Any]) -> list[Any]:
        """The arguments in the forward's order, defaults filled in; torch.compile follows this, and not inspect.bind."""
        if self.spread:
            call = self.cases[0].get("call")
            names = list(call["list"][1]["dict"]) if call else list(kwargs)
            if set(kwargs) != set(names) or call and len(args) != len(call["list"][0]["list"]):
                raise TypeError(f"this kernel was judged with {len(call['list'][0]['list'])} arguments and the keywords {names}, got {len(args)} and {list(kwargs)}")
            return [*args, *(kwargs[name] for name in names)]
        if len(args) > len(self.parameters):
            raise TypeError(f"forward() takes {len(self.parameters)} arguments, {len(args)} were given")
        given = list(args)
        for name, has_default, default in self.parameters[len(args) :]:
            if name not in kwargs and not has_default:
                raise TypeError(f"forward() misses its argument {name}")
            given.append(kwargs[name] if name in kwargs else default)
        for name in kwargs:
            if all(name != p[0] for p in self.parameters[len(args) :]):
                raise TypeError(f"forward() got an argument {name} that it does not take, or twice")
        return given

    def _judged_call(self, given: Any, held: list[Any]) -> tuple[int, list[Any]]:
        """The number of the case that was judged with these arguments, or -1, and its tensors."""
        for number, call in enumerate(self.calls):
            tensors: list[Any] = []
            if call is None:
                fits = _loosely(given, tensors) and len(tensors) == self.argument_tensors
            else:
                fits = len(call) == len(given) and all(_fits(data, value, tensors) for data, value in zip(call, given))
            if fits and self._case([*tensors, *held], number) == number:
                return number, [*tensors, *held]
        return -1, []

    def call_of(self, tensors: Any) -> Any:
        """How Model.forward was called where these tensors were judged."""
        return self.cases[max(0, self._case(tensors))].get("call")

    def _case(self, tensors: Any, only: int = -1) -> int:
        """The number of the case that was judged with these tensors, or -1. Without upstream gradients: those follow from
        the rest. No two cases have the same."""
        whole = len(tensors) == len(self.inputs)
        for t in tensors:
            if t.layout != torch.strided:
                return -1
        shapes, dtypes = (self.shapes, self.dtypes) if whole else (self.forward_shapes, self.forward_dtypes)
        for number in range(len(shapes)):
            if only >= 0 and number != only:
                continue
            for t, shape, dtype in zip(tensors, shapes[number], dtypes[number]):
                if t.shape != shape or t.dtype != dtype:
                    break
            else:
                return number
        return -1

    def _without_tensor(self, model: Any, args: Any, kwargs: Any, held: list[Any]) -> Any:
        """A parameter or buffer of the judged model is None in this one."""
        name = ".".join(next(path for path, t in zip(self.held, held) if t is None))
        other = self._unjudged(model) or f"{name} = None"
        text = f"this ModelNew has {other}, and the kernel was judged with a tensor {name}: set it back, or use Model"
        if not self.fallback:
            raise ValueError(text)
        self._warn(f"left to Model: {text}")
        return self.reference.Model.forward(model, *args, **kwargs)

    def _otherwise(self, model: Any, args: Any, kwargs: Any, what: tuple[Any, Any, Any]) -> Any:
        """What was not judged: Model where the export says so, else an error. `what`: tensors, numbers, all arguments."""
        if not self.fallback:
            raise self._refusal(*what, model)
        self._warn(f"left to Model: {self._refusal(*what, model)}")
        return self.reference.Model.forward(model, *args, **kwargs)

    def _training_counts(self) -> bool:
        """Does the mode change what the model computes? Where the task reads it, or names parts that do; see judged_facts()."""
        try:
            source = inspect.getsource(self.reference)
        except (OSError, TypeError):
            return True
        return any(word in source for word in ("training", "Dropout", "dropout", "BatchNorm", "InstanceNorm", "RReLU", "rrelu"))

    # ---- refusals -------------------------------------------------------------------------------------

    def _arguments_wrong(self, given: Any) -> Exception:
        leaves: list[Any] = []
        self.with_gradients.leaves_of(list(given), leaves)
        for value in leaves:
            if type(value).__module__.partition(".")[0] == "numpy":
                return TypeError(f"got a {type(value).__module__}.{type(value).__name__}; tensors are wanted: torch.from_numpy(...)")
        count = sum(isinstance(v, torch.Tensor) for v in leaves)
        names = ", ".join(t["name"] for t in self.inputs[: self.argument_tensors])
        return TypeError(f"{self.argument_tensors} tensors are wanted ({names}), got {count}")

    def _reduced(self) -> str:
        return f" (judged with {self.table['scaled']})" if self.table["scaled"] else ""

    def _refusal(self, tensors: Any, scalars: Any = None, given: Any = None, model: Any = None) -> Exception:
        """Why these are not in the table, in words."""
        other = model is not None and self._unjudged(model)
        if other:
            return ValueError(f"this ModelNew has {other}, which this kernel was not judged with: set it back, or use Model")
        inputs, dtypes, table = self.inputs, self.dtypes, self.shapes
        if len(tensors) < len(inputs):
            inputs, dtypes, table = self._without_upstream(inputs), self.forward_dtypes, self.forward_shapes
        for k, (t, info) in enumerate(zip(tensors, inputs)):
            if t.layout != torch.strided:
                return ValueError(f"this kernel takes {info['name']} as a dense tensor, got {t.layout}: .to_dense()")
            types = list(dict.fromkeys(str(known[k]) for known in dtypes))
            if str(t.dtype) not in types:
                only = "that type" if len(types) == 1 else "those types"
                return ValueError(f"this kernel takes {info['name']} as {' or '.join(types)}, got {t.dtype}: it was judged in {only} only (no .half())")
        table = [shapes for shapes, known in zip(table, dtypes) if all(t.dtype == dtype for t, dtype in zip(tensors, known))]
        if not table:
            got = ", ".join(f"{info['name']} as {t.dtype}" for t, info in zip(tensors, inputs))
            return ValueError(f"this kernel was not judged with {got} together; use Model, or judge that with cutegen")
        if self.training_counts and model is not None and model.training != self.training:
            mode = ("eval", "train")
            return ValueError(
                f"this kernel was judged in {mode[self.training]} mode, the module is in {mode[model.training]} mode: call .{mode[self.training]}()"
            )
        for t, shape, info in zip(tensors, table[0], inputs):
            if t.dim() != len(shape):
                return ValueError(f"this kernel takes {info['name']} with {len(shape)} dimensions, {list(shape)}, got {list(t.shape)}")
        for k, (t, info) in enumerate(zip(tensors, inputs)):
            known = sorted({shapes[k] for shapes in table})
            if tuple(t.shape) not in known:
                shapes = " or ".join(str(list(shape)) for shape in known)
                return ValueError(
                    f"this kernel was judged for {info['name']} of shape {shapes}{self._reduced()}, got {list(t.shape)}; "
                    f"use Model, judge that shape with cutegen, or export with --fallback"
                )
        if scalars is not None and all(scalars != known for known in self.scalars):
            numbers = " or ".join(str(known) for k, known in enumerate(self.scalars) if known not in self.scalars[:k])
            return ValueError(f"this kernel was judged with scalar arguments {numbers}, got {scalars}")
        if given is not None and self.calls[0] is not None and not any(
            call is not None and len(call) == len(given) and all(_fits(data, value, []) for data, value in zip(call, given)) for call in self.calls
        ):
            judged = ", ".join(_judged_words(data) for data in self.calls[0])
            return ValueError(f"this kernel was judged with the arguments ({judged}), got ({', '.join(_words(v) for v in given)})")
        return ValueError("this combination of arguments was not judged; use Model, or export with --fallback")

    def _warn(self, text: str) -> None:
        if text not in self.warned:
            self.warned.add(text)
            warnings.warn(text, stacklevel=4)

    # ---- the operator ---------------------------------------------------------------------------------

    def _register(self, native: Any) -> None:
        """torch.ops.NAMESPACE.run; the same one where this export is loaded twice."""
        space = getattr(torch.ops, self.namespace)
        kept = getattr(space, "_cutegen_export", None)
        if kept is not None:
            self.native, self.how = kept.native, kept.how
            return
        library = torch.library.Library(self.namespace, "DEF")
        takes = "Tensor[] ins" if self.listed else ", ".join(f"Tensor in{k}" for k in range(len(self.inputs)))
        gives = "Tensor" if self.output_count == 1 else f"({', '.join(['Tensor'] * self.output_count)})"
        tags = [getattr(torch.Tag, name) for name in ("pt2_compliant_tag",) if hasattr(torch, "Tag") and hasattr(torch.Tag, name)]
        schema = f"run({takes}) -> {gives}"
        if tags:
            library.define(schema, tags=tuple(tags))
        else:
            library.define(schema)
        if self.device["kind"] == "cuda":
            self._open_native(native)
        if self.native is None or self.listed:
            library.impl("run", self._given(self._run_cuda if self.device["kind"] == "cuda" else self._not_here), "CUDA")
        library.impl("run", self._given(self._run_simt if self.device["kind"] == "simt" else self._not_here), "CPU")
        if hasattr(torch.library, "register_fake"):
            torch.library.register_fake(f"{self.namespace}::run", self._given(self._fake), lib=library)
        else:
            library.impl("run", self._given(self._fake), "Meta")
        self._register_autograd(library)
        space._cutegen_library, space._cutegen_export = library, self  # they must live as long as the operator is called

    def _given(self, body: Callable[..., Any]) -> Callable[..., Any]:
        return (lambda ins: body(*ins)) if self.listed else body

    def _open_native(self, native: Any) -> None:
        """The kernel in C, where this machine and this torch can have it; `how` says which it is."""
        name = native.file_name()
        try:
            if os.environ.get("CUTEGEN_LOADER") == "python":
                raise native.Unavailable("CUTEGEN_LOADER asks for it")
            if not os.path.exists(os.path.join(self.folder, name)):
                raise native.Unavailable(f"this export has no {name}")
            shim = native.Shim()
            _recorded(self.folder, name)
            made = native.Native(native.open_library(os.path.join(self.folder, name)), shim, self.launcher, self.table, self._prepare, self._judged_case)
            if not self.listed:
                made.register(self.namespace, "run")
            self.native, self.how = made, "native"
        except native.Unavailable as err:
            self.how = f"python: {err}"

    def _register_autograd(self, library: Any) -> None:
        without = self.table["gradients"] == "none" or self.call is None
        library.impl("run", self._given(self._refuse_gradients if without else self._with_gradients), "Autograd")

    def _refuse_tangents(self) -> None:
        if forward_ad._current_level >= 0:
            raise RuntimeError("the operator has no forward-mode derivatives: call ModelNew, which leaves them to Model")

    def _refuse_gradients(self, *ins: torch.Tensor) -> Any:
        self._refuse_tangents()
        if torch.is_grad_enabled() and any(t.requires_grad for t in ins):
            names = ", ".join(i["name"] for t, i in zip(ins, self.inputs) if t.requires_grad)
            raise RuntimeError(
                f"{names} requires grad, and this kernel has no gradients: call it under torch.no_grad(), or export with --gradients reference"
            )
        return self.below_autograd(*ins)

    def _with_gradients(self, *ins: torch.Tensor) -> Any:
        """As torch.library.register_autograd does it; not that one, which drops tangents without a word."""
        if forward_ad._current_level >= 0:
            self._refuse_tangents()
        if torch.is_grad_enabled():
            for t in ins:
                if t.requires_grad:
                    return self.with_gradients.Run.apply(self, *ins)
        with self.below():
            return self.operator(*ins)

    def below_autograd(self, *ins: torch.Tensor) -> Any:
        with self.below():
            return self.operator(*ins)

    def judged_gradients(self, ins: list[torch.Tensor], grads: list[Any], call: Any) -> list[Any] | None:
        """Of a backward: the gradient of each of `ins`, None where there is none; None: not judged for this call."""
        number, first = self._case(ins), self.argument_tensors
        if number < 0 or self.cases[number].get("call") != call:
            return None
        kinds = zip(self.dtypes[number][first : first + self.upstream], self.shapes[number][first : first + self.upstream])
        given = [g for g in grads if g is None or g.is_floating_point()]
        filled = [torch.zeros(s, dtype=d, device=ins[0].device) if g is None else g for g, (d, s) in zip(given, kinds)]
        made = self.operator(*ins[:first], *filled, *ins[first:])
        by_name = dict(zip((t["name"] for t in self.cases[0]["outputs"]), [made] if self.output_count == 1 else made))
        return [by_name.get(f"grad_{t['name']}") for t in self._without_upstream(self.inputs)]

    def _fake(self, *ins: torch.Tensor) -> Any:
        number = self._case(ins)
        if number < 0:
            raise self._refusal(ins)
        return self._empty(number, ins[0].device)

    def _empty(self, number: int, device: torch.device) -> Any:
        made = [torch.empty_strided(shape, strides, dtype=dtype, device=device) for shape, strides, dtype in self.outs[number]]
        return made[0] if self.output_count == 1 else tuple(made)

    def _copied(self, t: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
        return torch.empty_strided(t.shape, strides, dtype=t.dtype, device=t.device).copy_(t)

    def _fitted(self, number: int, ins: Any) -> list[torch.Tensor]:
        """The inputs with the strides and the alignment that were judged: copies where they have others."""
        return [
            self._copied(t, strides) if t.stride() != strides or t.data_ptr() % self.alignment else t
            for t, strides in zip(ins, self.strides[number])
        ]

    def _judged_case(self, ins: Any) -> int:
        number = self._case(ins)
        if number < 0:
            raise self._refusal(ins)
        if len(ins) > 1:
            place = ins[0].device
            for t, info in zip(ins, self.inputs):
                if t.device != place:
                    raise ValueError(f"{info['name']} is on {t.device}, {self.inputs[0]['name']} on {place}")
        return number

    def _run_cuda(self, *ins: torch.Tensor) -> Any:
        return self._launched(self._judged_case(ins), ins)

    def _launched(self, number: int, ins: Any) -> Any:
        pointers, kept = [], []
        for t, strides in zip(ins, self.strides[number]):
            pointer = t.data_ptr()
            if pointer % self.alignment or t.stride() != strides:
                t = self._copied(t, strides)
                kept.append(t)
                pointer = t.data_ptr()
            pointers.append(pointer)
        return self._queued(number, ins[0].device, ins[0].device.index, pointers)

    def _queued(self, number: int, place: torch.device, device: int, pointers: list[int]) -> Any:
        """Queues the launches of a case; `pointers`: of its inputs."""
        launcher = self.launchers.get((number, device)) or self._prepare(number, device)
        made = [torch.empty_strided(shape, strides, dtype=dtype, device=place) for shape, strides, dtype in self.outs[number]]
        for t in made:
            pointers.append(t.data_ptr())
        room = torch.empty(launcher.workspace_bytes, dtype=torch.uint8, device=place) if launcher.workspace_bytes else None
        launcher.launch(torch._C._cuda_getCurrentRawStream(device), pointers, 0 if room is None else room.data_ptr())
        return made[0] if self.output_count == 1 else tuple(made)

    def _run_simt(self, *ins: torch.Tensor) -> Any:
        number = self._judged_case(ins)
        made = self._empty(number, ins[0].device)
        run_simt(self.folder, number, self._fitted(number, ins), [made] if self.output_count == 1 else list(made))
        return made

    def _not_here(self, *ins: torch.Tensor) -> Any:
        if self.device["kind"] == "simt":
            raise RuntimeError(
                "this kernel was judged on simt, for CPU tensors; on a GPU it was not: judge and export it there (cutegen export RUN --device cuda:0)"
            )
        raise RuntimeError(f"this kernel is for {self.device['name']} ({self.device['arch']}); its inputs are on the CPU")

    def _prepare(self, number: int, device: int) -> Any:
        with self.lock:
            self.driver = self.driver or self.launcher.open_driver()
            which = self._code_for(number, device)
            if (which, device) not in self.modules:
                self.modules[which, device] = self.launcher.Module(self.driver, device, self.code(which))
            module, case = self.modules[which, device], self.cases[number]
            if self.native is not None:
                self.native.ready(number, device, self.driver, module.context.value, self.launcher.functions_of(module, case))
                if self.listed:
                    self.launchers[number, device] = self.native.launching(number, device)
                return self.launchers.get((number, device))
            self.launchers[number, device] = self.launcher.Launcher(module, case)
            return self.launchers[number, device]

    def _code_for(self, number: int, device: int) -> int:
        """Which code file runs on this GPU: the judged one on its architecture, PTX elsewhere if the export has it."""
        major, minor = torch.cuda.get_device_capability(device)
        here = torch.cuda.get_device_properties(device)
        which = self.cases[number]["module"]
        code, judged = self.table["modules"][which], self.device
        if judged["arch"].rstrip("af") == f"sm_{major}{minor}":
            if here.multi_processor_count < judged["sm_count"]:
                raise RuntimeError(
                    f"judged on {judged['name']} with {judged['sm_count']} SMs; {here.name} has {here.multi_processor_count}: judge it there"
                )
            if here.name != judged["name"]:
                self._warn(f"this kernel was judged on {judged['name']}, not on {here.name}")
            return which
        if code.get("ptx") is None:
            raise RuntimeError(
                f"this kernel was judged on {judged['name']} ({judged['arch']}) and runs on that architecture only; this is {here.name} "
                f"(sm_{major}{minor}): judge and export it there, cutegen export RUN --device cuda:{device}"
            )
        self._warn(f"{here.name} (sm_{major}{minor}): the driver compiles this kernel anew; what runs was NOT judged")
        return code["ptx"]

    def code(self, which: int) -> bytes:
        """The bytes of a code file, if they are what was judged."""
        entry = self.table["modules"][which]
        try:
            with open(os.path.join(self.folder, entry["file"]), "rb") as file:
                code = file.read()
        except OSError as err:
            raise RuntimeError(f"the judged code cannot be read ({err}): copy all files of the export, or export again") from err
        if hashlib.sha256(code).hexdigest() != entry["sha256"]:
            raise RuntimeError(f"{entry['file']} is not the code that was judged: its SHA-256 differs from launches.json")
        return code


@contextlib.contextmanager
def _below_autograd():
    """Operators called in here are not seen by autograd; torch 1.13 knows this only as an object's life."""
    guard = torch._C._AutoDispatchBelowAutograd()
    if hasattr(guard, "__enter__"):
        with guard:
            yield
    else:
        try:
            yield
        finally:
            del guard
