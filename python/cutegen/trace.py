# SPDX-License-Identifier: Apache-2.0
"""trace.py - a module and its example inputs as a task file: ATen operators, shapes, and how to draw like values.

The file is self-contained: the oracle loads it in a confined process, so it contains none of the caller's code or weights.
Inputs and state are drawn anew from what the given tensors look like (range, mean, spread); integers and masks that
the module keeps are written down as they are.

1. The task computes what the module computes for these shapes, in this mode (train or eval), with these plain
   arguments. Whoever uses the kernel checks all three.
2. The key depends on operators, shapes, dtypes, strides and kinds of values, never on the values of weights.
"""

from __future__ import annotations

import base64
import hashlib
import inspect
import math
import operator
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Callable

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

KEPT_BYTES = 256 << 10  # a constant's values in the task file, which may have 1 MiB
PLAIN = (bool, int, float, str, type(None))


class Untraceable(Exception):
    """Why this module cannot become a task."""


@dataclass(frozen=True)
class Task:
    """A task file and what its kernel is called with."""

    name: str
    source: str
    key: str  # hash of what the kernel depends on
    inputs: list[int]  # which of the flat tensors the kernel takes, in its order
    shapes: list[tuple[int, ...]]
    dtypes: list[torch.dtype]
    outputs: int


# ---- values --------------------------------------------------------------------------------------------


def _number(value: float) -> str:
    if math.isfinite(value):
        return repr(float(f"{value:.3g}"))
    return f"float('{value}')"


def _literal(tensor: torch.Tensor) -> str | None:
    """The values themselves, packed; None where they are too many."""
    if tensor.numel() * tensor.element_size() > 64 * KEPT_BYTES or tensor.dtype == torch.bfloat16:
        return None
    packed = base64.b64encode(zlib.compress(tensor.detach().cpu().contiguous().numpy().tobytes(), 9)).decode()
    if len(packed) > KEPT_BYTES:
        return None
    return f"_values('{packed}', {tensor.dtype}, {tuple(tensor.shape)})"


def _floats(tensor: torch.Tensor, shape: str, weight: bool) -> tuple[str, str]:
    """An expression that draws like this tensor, and the kind of values it has."""
    wide = tensor.detach().to(torch.float64)
    low, high = float(wide.min()), float(wide.max())
    if not (math.isfinite(low) and math.isfinite(high)):
        literal = _literal(tensor)
        if literal is None:
            raise Untraceable("a tensor of the module or its inputs has infinities or NaN, and too many values to write down")
        return literal, literal
    if low == high:
        return f"torch.full({shape}, {_number(low)})", "full"
    if low >= 0 and not weight and high <= 1:
        return f"torch.rand({shape})", "rand"
    if low >= 0:
        return f"torch.rand({shape}) * {_number(high - low)} + {_number(low)}", "positive"
    spread, mean = float(wide.std(unbiased=False)), float(wide.mean())
    text = f"torch.randn({shape})"
    if abs(spread - 1) > 0.1:
        text += f" * {_number(spread)}"
    if abs(mean) > 0.1 * spread:
        text += f" + {_number(mean)}"
    return text, "normal"


def _drawn(tensor: torch.Tensor, weight: bool) -> tuple[str, str]:
    """How to draw a tensor like this one: an expression, and what of it the key depends on."""
    shape, order = tuple(tensor.shape), _order(tensor)
    sizes = repr(tuple(shape[d] for d in order))
    if not tensor.numel():
        raise Untraceable("an empty tensor is among the inputs")
    if tensor.is_complex() or tensor.layout != torch.strided:
        raise Untraceable(f"a tensor of {tensor.dtype} and {tensor.layout} is among the inputs: kernels take plain real ones")
    if _is_fake(tensor):
        if not tensor.is_floating_point():
            raise Untraceable("an integer or bool tensor whose values are not known is among the inputs")
        text, kind = f"torch.randn({sizes})" + (f" * {_number(shape[-1] ** -0.5)}" if weight and len(shape) > 1 else ""), "normal"
    elif tensor.is_floating_point():
        text, kind = _floats(tensor, sizes, weight)
    else:
        literal = _literal(tensor) if weight else None
        if literal is not None:
            return literal, literal
        if tensor.dtype == torch.bool:
            text, kind = f"torch.rand({sizes}) < {_number(float(tensor.double().mean()))}", "bool"
        else:
            text = f"torch.randint({int(tensor.min())}, {int(tensor.max()) + 1}, {sizes})"
            kind = text  # an index may not be larger than it was
    if text.startswith("_values("):
        return text, kind
    if tensor.dtype not in (torch.float32, torch.bool):
        text = f"({text}).to({tensor.dtype})"
    if order != sorted(order):
        text = f"({text}).permute({[order.index(d) for d in range(len(order))]})"
    return text, kind


def _order(tensor: torch.Tensor) -> list[int]:
    """The dimensions from the slowest to the fastest where the tensor is dense, else as for a contiguous one."""
    order = sorted(range(tensor.dim()), key=lambda d: (-tensor.stride(d), d))
    step = 1
    for d in reversed(order):
        if tensor.shape[d] != 1 and tensor.stride(d) != step:
            return list(range(tensor.dim()))
        step *= tensor.shape[d]
    return order


def _is_fake(tensor: torch.Tensor) -> bool:
    return type(tensor).__name__ == "FakeTensor" or tensor.device.type == "meta"


# ---- the graph -----------------------------------------------------------------------------------------


def _graph(function: Callable[..., Any], tensors: Sequence[torch.Tensor]) -> torch.fx.GraphModule:
    """ATen operators as the oracle sees them: composite ones (linear, attention) whole where torch can. Under autocast they
    are traced below it, where its conversions are operators like others."""
    can = "pre_dispatch" in inspect.signature(make_fx).parameters and not any(autocast_state())
    more = {"pre_dispatch": True} if can else {}
    try:
        with torch.no_grad():
            traced: torch.fx.GraphModule = make_fx(function, **more)(*tensors)
    except Exception as error:  # whatever the module does that cannot be followed
        raise Untraceable(f"cannot be traced: {str(error).splitlines()[0] if str(error) else type(error).__name__}") from error
    return traced


def _distinct(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """A tensor that is given twice is two inputs: another call may give two."""
    seen: set[int] = set()
    found = []
    for tensor in tensors:
        found.append(tensor.detach().clone() if id(tensor) in seen else tensor)
        seen.add(id(tensor))
    return found


def autocast_state() -> tuple[Any, ...]:
    """Which types autocast computes in now, on GPUs and on the CPU."""
    if hasattr(torch, "get_autocast_dtype"):
        return tuple(torch.get_autocast_dtype(d) if torch.is_autocast_enabled(d) else None for d in ("cuda", "cpu"))
    gpu = torch.get_autocast_gpu_dtype() if torch.is_autocast_enabled() else None  # torch 1.13
    return gpu, torch.get_autocast_cpu_dtype() if torch.is_autocast_cpu_enabled() else None


class _Writer:
    """The lines of a task's forward."""

    def __init__(self, traced: torch.fx.GraphModule, device: str) -> None:
        self.traced, self.device = traced, device
        self.names: dict[torch.fx.Node, str] = {}
        self.lines: list[str] = []
        self.constants: list[str] = []
        self.known: dict[Any, str] = {}

    def value(self, argument: Any) -> str:
        if isinstance(argument, torch.fx.Node):
            return self.names[argument]
        if isinstance(argument, (list, tuple)):
            inner = ", ".join(self.value(a) for a in argument)
            return f"[{inner}]" if isinstance(argument, list) else f"({inner}{',' if len(argument) == 1 else ''})"
        if isinstance(argument, torch.device):
            return self.device
        if isinstance(argument, (torch.dtype, torch.layout, torch.memory_format)):
            return str(argument)
        if isinstance(argument, float):
            return repr(argument) if math.isfinite(argument) else f"float('{argument}')"
        if isinstance(argument, PLAIN) or isinstance(argument, slice):
            return repr(argument)
        raise Untraceable(f"an operator has an argument of type {type(argument).__name__}")

    def call(self, node: torch.fx.Node) -> None:
        arguments = [self.value(a) for a in node.args] + [f"{k}={self.value(v)}" for k, v in node.kwargs.items()]
        target = node.target
        name = str(target)
        if target is operator.getitem:
            self.assign(node, f"{arguments[0]}[{arguments[1]}]")
        elif isinstance(target, torch._ops.OpOverload) and name.startswith(("aten.", "prims.")):
            if name in ("aten.detach.default", "aten.lift_fresh_copy.default", "aten.lift_fresh.default", "aten.alias.default"):
                self.names[node] = arguments[0]
            else:
                self.assign(node, f"torch.ops.{name}({', '.join(arguments)})")
        elif "_set_grad_enabled" in name:
            pass
        else:
            raise Untraceable(f"calls {name}, which is not an ATen operator")

    def assign(self, node: torch.fx.Node, text: str) -> None:
        self.names[node] = f"v{len(self.lines)}"
        self.lines.append(f"v{len(self.lines)} = {text}")

    def attribute(self, node: torch.fx.Node) -> None:
        held = self.traced
        for part in str(node.target).split("."):
            held = getattr(held, part)
        literal = _literal(held) if isinstance(held, torch.Tensor) and not _is_fake(held) else None
        if literal is None:
            raise Untraceable("the module holds a tensor outside its parameters and buffers, too large to write down")
        if literal not in self.known:
            self.known[literal] = f"c{len(self.constants)}"
            self.constants.append(literal)
        self.names[node] = f"self.{self.known[literal]}"


def _root(node: torch.fx.Node) -> torch.fx.Node:
    """Whose memory a node's result is: views lead to what they view."""
    while node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload) and node.args:
        returns, first = node.target._schema.returns, node.args[0]
        if not returns or returns[0].alias_info is None or not isinstance(first, torch.fx.Node):
            break
        node = first
    return node


def _check_pure(traced: torch.fx.GraphModule, results: list[torch.fx.Node]) -> None:
    """A kernel makes new results and changes nothing: what the graph writes must be its own."""
    for node in traced.graph.nodes:
        if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
            continue
        for k, argument in enumerate(node.target._schema.arguments):
            written = node.args[k] if k < len(node.args) else node.kwargs.get(argument.name)
            writes = argument.alias_info is not None and argument.alias_info.is_write
            if writes and isinstance(written, torch.fx.Node) and _root(written).op == "placeholder":
                raise Untraceable("it writes into its inputs")
            if argument.name in ("training", "use_input_stats") and written is True and "norm" in str(node.target):
                raise Untraceable("a norm in training mode writes its statistics")
    if any(_root(r).op == "placeholder" for r in results):
        raise Untraceable("a result is an input, or a view of one")


def _results(node: torch.fx.Node) -> list[torch.fx.Node]:
    found = node.args[0]
    return [r for r in (found if isinstance(found, (list, tuple)) else [found]) if isinstance(r, torch.fx.Node)]


def make_task(
    name: str,
    function: Callable[..., Any],
    tensors: Sequence[torch.Tensor],
    weights: int = 0,
    samples: Sequence[torch.Tensor] | None = None,
) -> Task:
    """A task that computes `function(*tensors)`, a list of tensors; the last `weights` of them are parameters.

    `samples`: tensors with the values to draw alike, where those that are traced have none.
    """
    traced = _graph(function, _distinct(tensors))
    holders = [n for n in traced.graph.nodes if n.op == "placeholder"]
    used = [i for i, n in enumerate(holders) if n.users]
    first_weight = len(tensors) - weights
    called = [i for i in used if i < first_weight]
    held = [i for i in used if i >= first_weight]
    if not called and not held:
        raise Untraceable("its result does not depend on any tensor")
    if not called:
        called, held = held, []  # a task has at least one input
    writer = _Writer(traced, "x0.device")
    writer.names.update({holders[i]: f"x{k}" for k, i in enumerate(called)})
    writer.names.update({holders[i]: f"self.w{k}" for k, i in enumerate(held)})
    results: list[torch.fx.Node] = []
    for node in traced.graph.nodes:
        if node.op == "call_function":
            writer.call(node)
        elif node.op == "get_attr":
            writer.attribute(node)
        elif node.op == "output":
            results = _results(node)
    if not writer.lines or not results:
        raise Untraceable("it computes nothing")
    _check_pure(traced, results)
    draws = [_drawn((samples or tensors)[i], i in held) for i in called + held]
    source = _written(name, writer, [d[0] for d in draws], len(called), [writer.names[r] for r in results])
    order = called + held
    shapes, dtypes = [tuple(tensors[i].shape) for i in order], [tensors[i].dtype for i in order]
    kinds = [(s, str(d), _order(tensors[i]), k[1]) for i, s, d, k in zip(order, shapes, dtypes, draws)]
    told = repr([writer.lines, writer.constants, kinds, [writer.names[r] for r in results], len(called)])
    return Task(name, source, hashlib.sha256(told.encode()).hexdigest(), order, shapes, dtypes, len(results))


def _written(name: str, writer: _Writer, draws: list[str], called: int, results: list[str]) -> str:
    arguments = ", ".join(f"x{k}" for k in range(called))
    body = "\n".join(f"        {line}" for line in writer.lines)
    held = [f"        self.w{k} = nn.Parameter({text}, requires_grad=False)\n" for k, text in enumerate(draws[called:])]
    held += [f"        self.register_buffer('c{k}', {text}, persistent=False)\n" for k, text in enumerate(writer.constants)]
    returned = results[0] if len(results) == 1 else f"({', '.join(results)})"
    unpack = ""
    if any("_values(" in text for text in draws + writer.constants):
        unpack = (
            "\n\ndef _values(packed, dtype, shape):\n"
            "    return torch.frombuffer(bytearray(zlib.decompress(base64.b64decode(packed))), dtype=dtype).reshape(shape).clone()\n"
        )
    inputs = "\n".join(f"        {text}," for text in draws[:called])
    imports = "import base64\nimport zlib\n\n" if unpack else ""
    return f'''"""{name}, traced by cutegen from a PyTorch module: its ATen operators at the shapes it was called with."""
{imports}import torch
import torch.nn as nn
{unpack}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
{"".join(held)}
    def forward(self, {arguments}):
{body}
        return {returned}


def get_inputs():
    return [
{inputs}
    ]


def get_init_inputs():
    return []
'''


# ---- modules -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """One way to call a module: flat tensors and the rest, and how results are nested."""

    tensors: list[torch.Tensor]
    plain: list[Any]  # leaves that are not tensors, None where a tensor stands
    spec: Any


@dataclass(frozen=True)
class Returned:
    """How a module's results are nested, with the plain values among them."""

    spec: Any
    plain: list[Any]
    tensors: list[bool]  # which of the leaves are tensors

    @property
    def one(self) -> bool:
        """A tensor by itself."""
        return self.spec == pytree.tree_flatten(0)[1]

    def nested(self, made: list[torch.Tensor]) -> Any:
        mine = iter(made)
        return pytree.tree_unflatten([next(mine) if t else p for t, p in zip(self.tensors, self.plain)], self.spec)


def flatten(args: Sequence[Any], kwargs: dict[str, Any]) -> Call:
    leaves, spec = pytree.tree_flatten((tuple(args), kwargs))
    tensors = [v for v in leaves if isinstance(v, torch.Tensor)]
    return Call(tensors, [None if isinstance(v, torch.Tensor) else v for v in leaves], spec)


def state_of(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def _functional(module: torch.nn.Module, state: dict[str, torch.Tensor], args: Any, kwargs: Any) -> Any:
    if hasattr(torch, "func") and hasattr(torch.func, "functional_call"):
        return torch.func.functional_call(module, state, args, kwargs)
    from torch.nn.utils.stateless import functional_call  # torch 1.13

    return functional_call(module, state, args, kwargs)


def task_of(module: torch.nn.Module, args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> tuple[Task, Returned]:
    """The task of a module called like this, and how its results are nested."""
    given, state = flatten(args, kwargs or {}), state_of(module)
    unfit = [v for v in given.plain if not isinstance(v, PLAIN)]
    if unfit:
        raise Untraceable(f"an argument of type {type(unfit[0]).__name__}: tensors and plain values are traced")
    if any(m._forward_hooks or m._forward_pre_hooks for m in module.modules()):
        raise Untraceable("it has hooks, which a kernel would not call")
    answer = _checked_run(module, args, kwargs or {}, [*given.tensors, *state.values()])
    leaves, spec = pytree.tree_flatten(answer)
    other = [v for v in leaves if not isinstance(v, (torch.Tensor, *PLAIN))]
    if other or not any(isinstance(v, torch.Tensor) for v in leaves):
        what = type(other[0]).__name__ if other else "no tensor"
        raise Untraceable(f"its result has {what} in it: tensors and plain values in tuples, lists and dicts are known")

    def function(*tensors: torch.Tensor) -> list[torch.Tensor]:
        mine = iter(tensors[: len(given.tensors)])
        flat = [next(mine) if p is None and i in places else p for i, p in enumerate(given.plain)]
        a, k = pytree.tree_unflatten(flat, given.spec)
        made = _functional(module, dict(zip(state, tensors[len(given.tensors) :])), a, k)
        return [v for v in pytree.tree_flatten(made)[0] if isinstance(v, torch.Tensor)]

    whole = pytree.tree_flatten((tuple(args), kwargs or {}))[0]
    places = {i for i, v in enumerate(whole) if isinstance(v, torch.Tensor)}
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(module).__name__).lower()
    returned = Returned(spec, [None if isinstance(v, torch.Tensor) else v for v in leaves], [isinstance(v, torch.Tensor) for v in leaves])
    return make_task(name, function, [*given.tensors, *state.values()], len(state)), returned


def _checked_run(module: torch.nn.Module, args: Sequence[Any], kwargs: dict[str, Any], tensors: list[torch.Tensor]) -> Any:
    """The module's own answer. A module that writes into its arguments or its state is not a function of them."""
    before = [t._version for t in tensors if not t.is_inference()]
    with torch.no_grad():
        returned = module(*args, **kwargs)
    if before != [t._version for t in tensors if not t.is_inference()]:
        raise Untraceable("it writes into its arguments, parameters or buffers (a norm in training mode does: call .eval())")
    return returned
