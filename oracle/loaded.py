# SPDX-License-Identifier: Apache-2.0
"""A loaded task: what a few runs of it reveal, before there are buffers or draws.

In: a request with a task file, a device and sizes. Out: the operator graph, inputs and outputs, facts about them, the rules for
the comparison, how it is judged in parts, and the description that goes to the user and the model.

1. Tasks that cannot be judged are refused here: random results, shapes that depend on values, tensors that no kernel takes.
2. PyTorch's own answer (reference) is that of the task's type, also where this PyTorch cannot compute in it.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
from pathlib import Path
from typing import Any

import torch

from . import primitives, sizes, ties
from .buffers import bits
from .describe import SIZES, Analysis, tensor_entry
from .devices import free_bytes, memory_now, named_device
from .draw import bears_infinities, leaves_domain, redraw
from .facts import Known, look, words
from .fault import Fault, memory, memory_is_finite, use
from .graph import Graph, Limit, Node, OnMeta, TooBig, tensor_part
from .operators import RANDOM
from .parts import PART_BYTES, TRIED_ROWS, Plan, plan, same_but_for_rows
from .plain_data import encode
from .scale import sizes_for
from .task import DTYPES, FIRST_SEED, MAX_DIMS, MAX_TENSORS, Arguments, Task, held_tensors, read_source
from .truth import NO_HALF, SETTINGS, StandIn, in_float32, run, run_on, set_arithmetic, setting_name, tf32_allowed, trace, twin_of
from .whole import WholeAttention

MOVING = {"nonzero", "masked_select", "index", "_unique2", "unique_dim", "unique_consecutive", "nonzero_numpy"}  # their results' sizes may
ABORTS = {"binary_cross_entropy"}  # on CUDA, with all that the process has, where a value is out of range
DIVIDING = frozenset(  # or a root, or a logarithm: what zeros do to them is worth a draw
    """div reciprocal rsqrt sqrt log norm linalg_vector_norm std std_mean native_layer_norm native_group_norm
    native_batch_norm _native_batch_norm_legit cudnn_batch_norm _fused_rms_norm""".split()
)
LOOKS = 3  # draws that facts are based on
MAX_NODES = 8000
READS = ("_local_scalar_dense", "item")
MASK_COUNTED = "forward computes with how many elements a mask leaves (len(), numel(), shape), so the graph is that of one draw: write mask.sum()"
NUMBERS_READ = "aten._local_scalar_dense: forward computes with a number that it reads from a tensor (item(), int(), if), so the graph is that of one draw"
SMALL_BYTES = 1 << 30


def _differ(a: torch.Tensor, b: torch.Tensor) -> bool:
    """By more than the order of sums makes."""
    a, b = (torch.nan_to_num(t.double()) for t in (a, b))
    return bool(((a - b).abs() > 1e-2 * (a.abs() + a.abs().mean())).any())


class Loaded:
    def __init__(self, request: dict[str, Any]) -> None:
        setting = request.get("baseline") or "defaults"
        if setting not in SETTINGS:
            raise use(f"no setting {setting!r} of the baseline", "one of: " + ", ".join(SETTINGS))
        set_arithmetic(*SETTINGS[setting])
        self.room = int(request.get("room") or 0)  # bytes a judgement may take; 0: what is free
        self.device = named_device(request.get("device", "cpu"))
        self.source = read_source(Path(field(request, "task", str)).absolute())
        self.variant = int(request.get("variant") or 0)
        self.backward = bool(request.get("backward"))
        self.fixed: dict[str, int] = request.get("set") or {}
        self.as_written = bool(request.get("as_written"))  # described at its own sizes, whatever it was examined at
        self.values = sizes_for(self.source, self.fixed, request, self.variant, self.backward)
        self.task = Task(self.source, self.values, self.device, self.variant, self.backward)
        # As the user says, and the task, which may switch TF32 on where it is read.
        self.tf32 = tf32_allowed()
        set_arithmetic(*self.tf32)
        self.narrow: torch.dtype | None = None  # a 16-bit type this PyTorch cannot compute in: float32 stands in
        self.by_operator = False  # for each operator, not for the whole model
        try:
            with memory_is_finite("the task"), Limit(free_bytes(self.device) // 8):
                self._examine()
        except TooBig as err:
            raise memory(f"{self.source.path} needs more memory than there is: {err}") from err

    def _examine(self) -> None:
        """Runs the task a few times to examine it."""
        first = self.task.arguments(FIRST_SEED)
        model = self.task.model(FIRST_SEED)
        self.training = model.training
        check_tensors(self.task, first.tensors + [h.tensor for h in held_tensors(model)])
        self.graph, results = self._trace(model, first)
        check_tensors(self.task, [r for _, r in results])
        self._refuse_random(model, first, results)
        self._find_numbers_read(model, first)
        self.of_sizes = sizes.annotate(self.task, self.fixed, self.values, self.graph, FIRST_SEED)
        self.output_names = [name for name, _ in results]
        self.outputs = [
            {**info, "strides": buffer_strides(self.task, info)}
            for info in (self.graph.nodes[n].parts[p] for n, p in self.graph.outputs)
        ]
        self.arguments = first.skeleton()
        self.held = held_tensors(model)
        self.inputs = [tensor_entry(n, "input", tensor_part(t)) for n, t in zip(first.names, first.tensors)]
        self.inputs += [tensor_entry(h.name, h.role, tensor_part(h.tensor)) for h in self.held]
        if len(self.inputs) > MAX_TENSORS or len(self.outputs) > MAX_TENSORS:
            raise use(
                f"{self.task.path}: {len(self.inputs)} input and {len(self.outputs)} output tensors, {MAX_TENSORS} of each at most",
                "a task is one operator or a small block, not a whole network",
            )
        if not any(r.numel() for _, r in results):
            raise use(
                f"{self.task.path}: nothing is computed: {', '.join(f'{n} is {list(r.shape)}' for n, r in results)}",
                "give the task sizes above zero",
            )
        self._refuse_moving_shapes(model, results)
        self.known = [Known() for _ in self.inputs]
        self._look(first, model)
        for seed in range(FIRST_SEED + 1, FIRST_SEED + LOOKS):
            self._look(self.task.arguments(seed), self.task.model(seed) if self.held else model)
        self.analysis = Analysis(self.graph, self.known)
        self.rules = self.analysis.rules()
        for k, length in self.analysis.factors().items():
            self.known[k].factors = length
        products, convolutions = self.tf32
        self.rules.tf32 = self.analysis.classify()[0] in ("gemm", "convolution", "attention") and (
            (products and self.analysis.has_product()) or (convolutions and self.analysis.has_convolution())
        )
        self.rules.short = self.rules.tf32 and self.device.type == "cuda"
        self._find_domains(model, first, results)
        self._find_zero_rows(model, first, results)
        self._find_ties(model, first)
        self._find_rows(len(first.tensors))
        self.beyond = self._has_answers_beyond(model, first)
        self.plan = self._plan_parts(model, first)

    def _find_rows(self, forward_inputs: int) -> None:
        """Which inputs' rows stay apart, so that an infinity among them (draw.py) leaves the other rows as they are."""
        floats = all(o["dtype"] in ("f32", "f16", "bf16", "f64") for o in self.outputs)
        found = plan(self.graph, forward_inputs) if floats else None
        for k in found.cut if found else ():
            self.known[k].rows_apart = True
        self.infinite = any(bears_infinities(known) for known in self.known)

    def _plan_parts(self, model: torch.nn.Module, first: Arguments) -> Plan | None:
        """How a large task is divided; None: it is small, or its rows depend on each other."""
        size = sum(math.prod(i["shape"]) * SIZES[i["dtype"]] for i in self.inputs + self.outputs)
        if self.narrow or size < (SMALL_BYTES if self.device.type == "cuda" else self.room or size + 1):
            return None
        most = max(PART_BYTES, memory_now(self.device)[1] // 32) if self.device.type == "cuda" else PART_BYTES
        found = plan(self.graph, len(first.tensors), min(most, self.room // 8 or most))
        if found is None:
            return None
        few = [t[:TRIED_ROWS] if k in found.cut else t for k, t in enumerate(first.tensors)]
        try:
            part, _ = trace(self.task, model, first, few)
        except Fault:
            return None
        return found if same_but_for_rows(self.graph, part, found.batch, TRIED_ROWS) else None

    def _trace(
        self, model: torch.nn.Module, arguments: Arguments
    ) -> tuple[Graph, list[tuple[str, torch.Tensor]]]:
        try:
            return trace(self.task, model, arguments, arguments.tensors)
        except Fault as fault:
            narrow = {t.dtype for t in arguments.tensors + list(model.parameters())} & {
                torch.float16,
                torch.bfloat16,
            }
            if (
                self.device.type != "cpu"
                or len(narrow) != 1
                or not any(words_ in fault.text for words_ in NO_HALF)
            ):
                raise
            self.narrow = narrow.pop()
        with StandIn():
            graph, results = trace(self.task, model, arguments, arguments.tensors)
        try:
            twin, tensors = in_float32(model, arguments.tensors)
            made = run(self.task, twin, arguments, tensors)
        except Fault:  # it converts to the 16-bit type itself
            self.by_operator = True
            return graph, results
        return graph, [(n, r.to(t.dtype)) for (n, r), (_, t) in zip(made, results)]

    def reference(
        self, model: torch.nn.Module, arguments: Arguments, tensors: list[torch.Tensor]
    ) -> list[torch.Tensor]:
        """PyTorch's own answer."""
        if self.by_operator:
            with StandIn():
                return [r for _, r in run(self.task, model, arguments, [t.clone() for t in tensors])]
        if self.narrow:
            twin, wide = in_float32(model, tensors)
            back = {name: dtype for dtype, name in DTYPES.items()}
            kinds = [back[self.graph.nodes[n].parts[p]["dtype"]] for n, p in self.graph.outputs]
            return [r.to(k) for k, (_, r) in zip(kinds, run(self.task, twin, arguments, wide))]
        if self.graph.mutated:
            tensors = [t.clone() for t in tensors]
        return [r for _, r in run(self.task, model, arguments, tensors)]

    def _refuse_random(
        self, model: torch.nn.Module, arguments: Arguments, results: list[tuple[str, torch.Tensor]]
    ) -> None:
        hint = "a kernel can only be judged against one right answer: call self.eval() in __init__, or draw the noise in get_inputs()"
        random = [n.op for _, n in self.graph.operators() if n.name in RANDOM and not is_steady(n)]
        if random:
            raise use(f"{self.task.path}: forward is random ({random[0]})", hint)
        again = self.reference(model, arguments, arguments.tensors)
        if self.graph.keepers:  # do they only keep what they would make again?
            twin = twin_of(model)
            for _ in range(2):
                again = [r for _, r in run_on(self.task, twin, arguments, [t.clone() for t in arguments.tensors])]
        for (name, one), two in zip(results, again):
            if one.shape != two.shape or not torch.equal(bits(one), bits(two)):
                distance = (
                    (one.double() - two.double()).abs().max() / one.double().abs().max().clamp_min(1e-30)
                    if one.shape == two.shape
                    else math.inf
                )
                if not float(distance) < max(
                    1e-3, 16 * torch.finfo(one.dtype).eps if one.is_floating_point() else 0
                ):
                    raise use(
                        f"{self.task.path}: forward is random or keeps state: two runs on the same input give different values of {name!r}",
                        hint,
                    )

    def _find_numbers_read(self, model: torch.nn.Module, first: Arguments) -> None:
        """`x * y.max().item()`, `x / len(y[mask])`: the graph has the number of one draw. It is exact where another draw gives the
        same graph."""
        self.numbers_read = False
        reads = any(node.name in READS and not self.graph.is_fixed(number) for number, node in enumerate(self.graph.nodes))
        if not reads and not self.graph.masked:
            return
        if self._is_of_any_draw():
            return
        self.task.counting = self.graph.masked
        if self.task.counting:
            self.graph, _ = self._trace(model, first)
        if not self.task.counting or not self._is_of_any_draw():
            self.numbers_read, self.graph.exact = reads, False
            self.graph.gap = self.graph.gap or MASK_COUNTED

    def _is_of_any_draw(self) -> bool:
        """Has another draw the same graph?"""
        try:
            other, _ = self._trace(self.task.model(FIRST_SEED + 1), self.task.arguments(FIRST_SEED + 1))
            return other.write() == self.graph.write()
        except Fault:
            return False

    def _refuse_moving_shapes(self, model: torch.nn.Module, results: list[tuple[str, torch.Tensor]]) -> None:
        """Refuses results whose sizes depend on values, since no buffer fits them."""
        if not any(node.name in MOVING for _, node in self.graph.operators()):
            return
        other = self.task.arguments(FIRST_SEED + 1)
        for (name, one), two in zip(results, self.reference(model, other, other.tensors)):
            if one.shape != two.shape:
                raise use(
                    f"{self.task.path}: the shape of {name!r} depends on the values of the inputs: {list(one.shape)} for one draw, {list(two.shape)} for another",
                    "a kernel's outputs have one shape: return the values where they are, with a mask or a count beside them",
                )

    def _look(self, arguments: Arguments, model: torch.nn.Module) -> None:
        tensors = arguments.tensors + [h.tensor for h in held_tensors(model)]
        same = len(tensors) == len(self.known) and all(
            list(t.shape) == i["shape"] for t, i in zip(tensors, self.inputs)
        )
        if not same:
            raise use(
                f"{self.task.path}: shapes differ from draw to draw",
                "a task has one set of shapes; make them constants",
            )
        for known, tensor in zip(self.known, tensors):
            look(known, tensor)

    def _find_domains(
        self, model: torch.nn.Module, arguments: Arguments, results: list[tuple[str, torch.Tensor]]
    ) -> None:
        """Which inputs bear any value, which must stay positive or in range: tried, all at once and then one at a time."""
        bounded = any(node.name in ABORTS for _, node in self.graph.operators())
        free = [
            k
            for k, t in enumerate(arguments.tensors)
            if t.is_floating_point() and not self.known[k].few_values
        ]
        nans = [int(torch.isnan(r).sum()) if r.is_floating_point() else 0 for _, r in results]
        if self.analysis.float_index():
            for k in free:
                self.known[k].domain = "task"
            return
        if not bounded and self._bears(model, arguments, free, nans):
            return
        for k in free:
            known = self.known[k]
            for known.domain in (  # noqa: B020
                ["range"] if bounded else ["any", *(["positive"] if known.low >= 0 else []), "range", "task"]
            ):
                if known.domain == "task" or self._bears(model, arguments, [k], nans):
                    break

    def _find_zero_rows(
        self, model: torch.nn.Module, arguments: Arguments, results: list[tuple[str, torch.Tensor]]
    ) -> None:
        """Where something is divided by a norm, a deviation or a sum, rows of zeros show what an eps is for; unless the reference
        has no answer to them."""
        if not any(node.name.rstrip("_") in DIVIDING for _, node in self.graph.operators()):
            return
        some = [k for k, t in enumerate(arguments.tensors) if t.dim() > 1 and t.is_floating_point() and self.known[k].domain == "any"]
        for k in some:
            self.known[k].zero_rows = True
        finite = [int(torch.isfinite(r).sum()) if r.is_floating_point() else 0 for _, r in results]
        if some and not self._bears(model, arguments, some, [r.numel() - n for n, (_, r) in zip(finite, results)], "zeros"):
            for k in some:
                self.known[k].zero_rows = False

    def _find_ties(self, model: torch.nn.Module, arguments: Arguments) -> None:
        """Where indices of equal elements (ties.py) are read by the forward itself, two right orders may give different results:
        then no ties are drawn."""
        names = ties.EACH_ONCE | ties.ONE
        if not any(self.graph.nodes[n].name in names and part == 1 for n, part in self.graph.readers()):
            return
        generator = torch.Generator(self.device).manual_seed(FIRST_SEED)
        for distribution in ("zeros", "wide"):
            tensors = [redraw(t, known, distribution, generator) for t, known in zip(arguments.tensors, self.known)]
            try:
                made = self.reference(model, arguments, tensors)
                with ties.LastFirst():
                    turned = self.reference(model, arguments, tensors)
            except Fault:
                return
            if any(a.shape != b.shape or _differ(a, b) for a, b in zip(made, turned) if a.is_floating_point()):
                for known in self.known:
                    known.no_ties = True
                return

    def _bears(
        self, model: torch.nn.Module, arguments: Arguments, places: list[int], nans: list[int], distribution: str = "normal"
    ) -> bool:
        """Does the reference give as few NaN as before with normal values, as far as their domain allows, in these inputs?"""
        generator = torch.Generator(self.device).manual_seed(FIRST_SEED)
        tensors = list(arguments.tensors)
        for k in places:
            tensors[k] = redraw(tensors[k], self.known[k], distribution, generator)
        try:
            made = self.reference(model, arguments, tensors)
        except Fault:
            return False
        return all(
            int(torch.isnan(r).sum()) <= n if r.is_floating_point() else True for r, n in zip(made, nans)
        )

    def _has_answers_beyond(self, model: torch.nn.Module, arguments: Arguments) -> bool:
        """Is there a domain, and does the reference answer outside of it, if only with NaN?"""
        if not any(leaves_domain(self.known[k]) for k in range(len(arguments.tensors))):
            return False
        if any(node.name in ABORTS for _, node in self.graph.operators()):
            return False
        generator = torch.Generator(self.device).manual_seed(FIRST_SEED)
        tensors = [redraw(t, known, "beyond", generator) for t, known in zip(arguments.tensors, self.known)]
        try:
            made = self.reference(model, arguments, tensors)
        except Fault:
            return False
        return [list(r.shape) for r in made] == [o["shape"] for o in self.outputs]

    # ---- its description --------------------------------------------------------------------

    def description(self) -> dict[str, Any]:
        if self.as_written:
            return self._in_full().description()
        kind, evidence = self.analysis.classify()
        nodes = self.graph.write()
        primitives.expand(self.graph, nodes)
        facts = [line for k, known in enumerate(self.known) for line in words(f"in{k}", known)]
        mutated = sorted(self.graph.mutated)
        facts += [f"in{k}: forward writes into it; only what forward returns is judged" for k in mutated]
        if self.beyond:
            facts.append("beyond the domain of an input, outputs are NaN where the reference's are: no clamping, no zeros")
        live = self.graph.live()
        facts += [f"in{k} is not used by forward" for k in range(len(self.inputs)) if k not in live]
        if not self.graph.exact:
            facts.append(NUMBERS_READ if self.numbers_read else self.graph.gap)
        if self.narrow:
            facts.append(
                f"this PyTorch cannot compute in {DTYPES[self.narrow]} on the CPU: the reference is float32, rounded at the end"
            )
        facts += [
            f"forward uses a tensor of shape {node.shape} that is neither argument nor part of the model: the kernel is not given it"
            for number, node in enumerate(self.graph.nodes)
            if node.op == "constant" and node.numel > 1 and number in live and "values" not in node.kwargs
        ]
        facts += [
            f"forward uses a constant tensor of shape {node.shape}: its numbers are the values of node {number} of the graph"
            for number, node in enumerate(self.graph.nodes)
            if "values" in node.kwargs and number in live
        ]
        if self.rules.tf32:
            where = " and ".join(n for n, on in zip(("products", "convolutions"), self.tf32) if on)
            facts.append(f"TF32 is allowed in {where}: the reference and the baselines use it too, where they run on a GPU")
        facts += sizes.facts(self.of_sizes)
        facts += [f"argument {name} is always {value}" for name, value in self.arguments.constants.items()]
        written = {**self.source.literals, **self.source.constants}
        changed = {n: [written[n], v] for n, v in self.values.items() if v != written[n]}
        return {
            "name": self.source.path.stem,
            "inputs": self.inputs,
            "scalars": self.arguments.scalars,
            "outputs": [tensor_entry(n, "output", o) for n, o in zip(self.output_names, self.outputs)],
            "returns": self.task.returns,
            "variants": self.task.variants,
            "call": self._call(),
            "same_forward": sizes.same_forward(self.task, FIRST_SEED) if self.fixed or self.task.variants > 1 else None,
            "training": self.training,
            "constants": self.task.numbers_read,
            "judged_source": self.source.rewritten(self.values) if changed else None,
            "backward": self.task.backward,
            "upstream": self.arguments.upstream,
            "tf32": self.rules.tf32,
            "tf32_products": self.tf32[0],
            "settings_differ": kind in ("gemm", "convolution", "attention") and any(i["dtype"] == "f32" for i in self.inputs),
            "baseline": setting_name(self.tf32),
            "class": kind,
            "evidence": evidence,
            "graph": nodes[:MAX_NODES],
            "graph_truncated": len(nodes) > MAX_NODES,
            "graph_exact": self.graph.exact,
            "graph_gap": NUMBERS_READ if self.numbers_read else self.graph.gap or None,
            "bytes_min": self.analysis.bytes_min(),
            "flops_min": self.analysis.flops_min(),
            "flops": self.analysis.flops_written(),
            "facts": facts,
            "written": [self.inputs[k]["name"] for k in mutated if k < len(self.inputs)],
            "beyond": self.beyond,
            "structure": {f"in{k}": structure(known) for k, known in enumerate(self.known)},
            "scaled": changed or None,
            "full": self._full_size() if changed else None,
            "of_sizes": self.of_sizes,
            "torch": torch.__version__,
            "source_constants": self.source.constants,
            "tolerance": {"terms": self.rules.terms, "operators": self.rules.operators},
        }

    def _call(self) -> dict[str, Any] | None:
        """How forward is called, tensors by number; None where an argument is not plain data."""
        count = itertools.count()
        args, kwargs = self.arguments.with_tensors([torch.empty(0)] * len(self.arguments.names))
        try:
            return encode([list(args), kwargs], lambda _: next(count), "the call")
        except Fault:
            return None

    def _traced_in_full(self) -> tuple[Task, Graph, list[tuple[str, torch.Tensor]]] | None:
        """The task as it is written, from shapes alone; None where its code needs numbers."""
        set_by_user = {n: v for n, v in self.values.items() if n in self.fixed}
        try:
            with OnMeta():
                task = self.task.at(set_by_user)
                arguments = task.arguments(FIRST_SEED, torch.device("meta"))
                model = task.model(FIRST_SEED, torch.device("meta"))
            with WholeAttention():
                return (task, *trace(task, model, arguments, arguments.tensors))
        except Exception:  # whatever a task does on tensors without numbers
            return None

    def _full_size(self) -> dict[str, Any] | None:
        traced = self._traced_in_full()
        if traced is None:
            return None
        _, graph, results = traced
        whole = Analysis(graph, self._known_in_full(graph))
        return {
            "inputs": [node.shape for node in graph.nodes[: graph.leaves]],
            "outputs": [list(r.shape) for _, r in results],
            "bytes_min": whole.bytes_min(),
            "flops_min": whole.flops_min(),
            "flops": whole.flops_written(),
        }

    def _known_in_full(self, graph: Graph) -> list[Known]:
        return [dataclasses.replace(k, shape=list(graph.nodes[i].shape)) for i, k in enumerate(self.known)]

    def _in_full(self) -> Loaded:
        """The task at the sizes it has written: shapes traced without numbers, facts from the sizes it was examined at."""
        full = copy.copy(self)
        full.as_written = False
        if all(n in self.fixed for n in self.values):
            return full
        traced = self._traced_in_full()
        if traced is None or (traced[1].leaves, len(traced[2])) != (self.graph.leaves, len(self.outputs)):
            raise use(
                f"{self.source.path} cannot be described at its own sizes without its tensors: its code depends on their values or sizes",
                "describe it with them (--no-scale), or set smaller sizes: --set N=512",
            )
        full.task, full.graph, results = traced
        full.values = {n: v for n, v in self.values.items() if n in self.fixed}
        full.inputs = [{**i, **full.graph.nodes[k].parts[0]} for k, i in enumerate(self.inputs)]
        full.outputs = [
            {**o, "shape": list(r.shape), "strides": buffer_strides(self.task, tensor_part(r))}
            for o, (_, r) in zip(self.outputs, results)
        ]
        full.known = self._known_in_full(full.graph)
        full.of_sizes = sizes.annotate(full.task, self.fixed, full.values, full.graph, FIRST_SEED)
        full.analysis = Analysis(full.graph, full.known)
        full.rules = dataclasses.replace(full.analysis.rules(), tf32=self.rules.tf32, short=self.rules.short)
        return full


# ---- helpers ----------------------------------------------------------------------------------


def is_steady(node: Node) -> bool:
    """An operator that draws numbers in training alone, outside of it."""
    return node.name.startswith("rrelu_with_noise") and not (len(node.args) > 4 and node.args[4].get("value"))


def field(request: dict[str, Any], name: str, kind: type) -> Any:
    value = request.get(name)
    if not isinstance(value, kind):
        raise use(f"the request has no {name!r}", "see docs/architecture.md")
    return value


def check_tensors(task: Task, tensors: list[torch.Tensor]) -> None:
    for tensor in tensors:
        if tensor.layout != torch.strided or tensor.dtype not in DTYPES:
            raise use(
                f"{task.path}: a tensor of type {tensor.dtype}, {tensor.layout} cannot be handed to a kernel",
                f"types: {', '.join(DTYPES.values())}; dense ones, and torch.view_as_real() of a complex one",
            )
        if tensor.dim() > MAX_DIMS:
            raise use(
                f"{task.path}: a tensor has {tensor.dim()} dimensions, {MAX_DIMS} at most",
                "flatten some of them",
            )


def contiguous(shape: list[int]) -> list[int]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return strides[::-1]


def buffer_strides(task: Task, part: dict[str, Any]) -> list[int]:
    """Of an output buffer: contiguous, or channels last where the task keeps that order of its result."""
    shape, dims = part["shape"], len(part["shape"])
    order = [0, *range(2, dims), 1]
    last = contiguous([shape[d] for d in order]) if dims in (4, 5) else []
    kept = [last[order.index(d)] for d in range(dims)] if last else []
    return kept if task.keeps_strides and part["strides"] == kept else contiguous(shape)


def structure(known: Known) -> dict[str, Any]:
    return {
        "triangle": (
            "diagonal"
            if known.upper and known.lower
            else "upper" if known.upper else "lower" if known.lower else None
        ),
        "symmetric": known.symmetric,
        "low": known.low if math.isfinite(known.low) else None,
        "high": known.high if math.isfinite(known.high) else None,
        "domain": known.domain,
        "few_values": known.few_values,
    }
