# SPDX-License-Identifier: Apache-2.0
"""One loaded task: its description, its buffers, the draw in them and the judgement of what a candidate made of it.

1. The truth for a draw is computed at compare(), from a private copy of the inputs, after the candidate ran.
2. A load replaces the one before; release() leaves no file and no device memory behind.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import hashlib
import itertools
import math
import secrets
import tempfile
from pathlib import Path
from typing import Any

import torch

from . import compare_parts, scale, sizes
from .baseline import COMPILED
from .buffers import Buffer, Pool, pattern_bits
from .canary import planted
from .compare import ROUNDOFF, compare_output
from .describe import SIZES, Analysis, tensor_entry
from .draw import check_distribution, lean, nearly, redraw, seed_number, stir_parameters
from .exchange import Exchange, memory_of
from .facts import Known, look, words
from .fault import Fault, is_out_of_memory, machine, memory, memory_is_finite, no_memory, use
from .graph import Graph, Limit, OnMeta, TooBig, node_flops, tensor_part
from .noise import Disturb, longest_sums, runs_for, stored_roundoff
from .operators import RANDOM
from .parts import PART_BYTES, TRIED_ROWS, Plan, plan, same_but_for_rows
from .plain_data import encode
from .task import (
    DTYPES,
    MAX_DIMS,
    MAX_TENSORS,
    Arguments,
    Source,
    Task,
    held_tensors,
    neighbours_unchanged,
    read_source,
)
from .trivial import Standing
from .truth import (
    SETTINGS,
    in_float32,
    on_meta,
    run,
    run_double,
    run_double_on_host,
    set_arithmetic,
    setting_name,
    tf32_allowed,
    trace,
)

FIRST_SEED = 20
MOVING = {"nonzero", "masked_select", "index", "_unique2", "unique_dim", "unique_consecutive", "nonzero_numpy"}  # their results' sizes may
LOOKS = 3  # draws that facts are based on
MAX_NODES = 2000
SMALL_BYTES = 1 << 30
GIVEN_BACK_BYTES = 1 << 30  # torch keeps less than that between two requests
STALE_AT_ONCE = 1 << 26
LEFT_BYTES = 64 << 20  # of an oracle that rests: more is held by something that waits for the collector
FLOPS_LIMIT = 5e7
NO_HALF = (
    "not implemented for 'Half'",
    "not implemented for 'BFloat16'",
    "not supported for Half",
    "expected scalar type Float but found",
)


@dataclasses.dataclass
class Draw:
    """What is in the buffers now, privately."""

    arguments: Arguments
    model: torch.nn.Module
    tensors: list[torch.Tensor]  # forward inputs
    held: list[torch.Tensor]  # parameters and buffers
    distribution: str = "task"
    marks: dict[int, torch.Tensor] | None = None  # in parts: fingerprints of the inputs that have no copy here


class Session:
    def __init__(self, request: dict[str, Any]) -> None:
        setting = request.get("baseline") or "defaults"
        if setting not in SETTINGS:
            raise use(f"no setting {setting!r} of the baseline", "one of: " + ", ".join(SETTINGS))
        set_arithmetic(*SETTINGS[setting])
        self.asked = _identity(request)
        self.room = int(request.get("room") or 0)  # bytes a judgement may take; 0: what is free
        self.device = _device(request.get("device", "cpu"))
        self.source = read_source(Path(_field(request, "task", str)).absolute())
        self.variant = int(request.get("variant") or 0)
        self.backward = bool(request.get("backward"))
        self.values = self._sizes(request)
        self.task = Task(self.source, self.values, self.device, self.variant, self.backward)
        # As the user says, and the task, which may switch TF32 on where it is read.
        self.tf32 = tf32_allowed()
        set_arithmetic(*self.tf32)
        self.narrow: torch.dtype | None = (
            None  # a 16-bit type this PyTorch cannot compute in: float32 stands in
        )
        self.draw_now: Draw | None = None
        self.standing = Standing()
        self.exchange: Exchange | None = None  # the draw is for a guest, which gets it in files
        self.baselines: dict[str, Any] = {}
        self.timed: dict[str, Any] = {}  # the last timing of each baseline, for baseline.py
        self.flush: Any = None
        self._make_pool(request)
        try:
            with memory_is_finite("the task"), Limit(free_bytes(self.device) // 8):
                self._learn()
            self._make_buffers()
        except BaseException as err:
            self.release()
            if isinstance(err, TooBig):
                raise memory(f"{self.source.path} needs more memory than there is: {err}") from err
            raise

    # ---- between two users --------------------------------------------------------------------

    def is_for(self, request: dict[str, Any]) -> bool:
        """Is this the task and the sizes asked for, and has nothing it was read from changed?"""
        return self.asked == _identity(request) and neighbours_unchanged()

    def rest(self) -> None:
        """Lets go of all memory that a draw needs; what was learnt about the task stays."""
        self.draw_now = None
        self._end_exchange()
        self.baselines = {name: call for name, call in self.baselines.items() if name in COMPILED}
        for call in self.baselines.values():
            call.rest()
        self.flush = None
        self._release_pool()
        self.resting = True
        self.give_back()

    def give_back(self, least: int = 0) -> None:
        """Device memory that torch keeps for later and nobody uses, where it is at least so much."""
        if self.device.type != "cuda":
            return
        if torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device) >= least:
            torch.cuda.empty_cache()
        if self.resting and torch.cuda.memory_reserved(self.device) > LEFT_BYTES:
            gc.collect()  # a captured graph and its results refer to each other
            torch.cuda.empty_cache()

    def is_small(self) -> bool:
        """May its device memory be given back a little later? While processes that had it open end, the driver takes a tenth of a
        second for each of them; but whoever comes next must not find a GPU full of buffers that nobody needs."""
        held = sum(b.bytes for pool in [*self.former, self.pool] for b in pool.buffers)
        return self.device.type == "cuda" and held < SMALL_BYTES

    def wake(self, request: dict[str, Any]) -> None:
        """New buffers, where the next user wants them."""
        self.rest()
        self.standing = Standing()
        self._make_pool(request)
        self._make_buffers()

    def wake_up(self) -> None:
        """After a rest between two steps of the same user."""
        if self.resting:
            self._make_pool({} if self.own_work else {"work": str(self.pool.work)})
            self._make_buffers()

    def _make_pool(self, request: dict[str, Any]) -> None:
        self.resting = False
        self.own_work = "work" not in request
        self.former: list[Pool] = []
        self.pool = Pool(
            self.device, Path(request["work"] if not self.own_work else tempfile.mkdtemp(prefix="cutegen-"))
        )

    # ---- load ---------------------------------------------------------------------------------

    def _sizes(self, request: dict[str, Any]) -> dict[str, int]:
        self.fixed = fixed = request.get("set") or {}
        for name, value in fixed.items():
            if name not in self.source.constants and name not in self.source.literals:
                known = ", ".join(f"{n}={v}" for n, v in self.source.constants.items()) or "none"
                if self.source.literals:
                    known += "; and numbers written out: " + ", ".join(self.source.literals)
                raise use(
                    f"{self.source.path} has no integer constant {name!r} at top level", f"it has: {known}"
                )
            if type(value) is not int or value < 0:
                raise use(f"{name} must be a whole number, not {value!r}", "for example --set N=512")
        most = request.get("max_elements")
        if not most:
            return dict(fixed)
        with Limit(8 * int(most)), contextlib.suppress(TooBig):
            self.source.execute(fixed)  # what does not load at all is no matter of size
        limits = scale.Limits(int(most), float(request.get("max_flops") or FLOPS_LIMIT))
        written = {**self.source.constants, **self.source.literals}
        try:
            chosen = self._choose(self.source.constants, fixed, limits)
        except Fault:
            if not self.source.literals:
                raise
            chosen = self._choose(written, fixed, limits)  # sizes written out, where names are not enough
        return {n: v for n, v in chosen.items() if v != written[n] or n in fixed}

    def _choose(self, sizes: dict[str, int], fixed: dict[str, int], limits: scale.Limits) -> dict[str, int]:
        return scale.choose(sizes, fixed, limits, lambda values: _cost(self.source, values, limits, self.variant, self.backward))

    def _learn(self) -> None:
        """Runs the task a few times to find out what it is."""
        first = self.task.arguments(FIRST_SEED)
        model = self.task.model(FIRST_SEED)
        self.training = model.training
        _check_tensors(self.task, first.tensors + [h.tensor for h in held_tensors(model)])
        self.graph, results = self._trace(model, first)
        self._refuse_random(model, first, results)
        self.of_sizes = sizes.annotate(self.task, self.fixed, self.values, self.graph, FIRST_SEED)
        self.output_names = [name for name, _ in results]
        self.outputs = [
            {**info, "strides": _contiguous(info["shape"])}
            for info in (self.graph.nodes[n].parts[p] for n, p in self.graph.outputs)
        ]
        _check_tensors(self.task, [r for _, r in results])
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
        self.rules.tf32 = self.analysis.classify()[0] == "gemm" and (
            (products and self.analysis.has_product()) or (convolutions and self.analysis.has_convolution())
        )
        self._find_domains(model, first, results)
        self.plan = self._plan_parts(model, first)

    def _plan_parts(self, model: torch.nn.Module, first: Arguments) -> Plan | None:
        """How a large task is cut; None: it is small, or its rows depend on each other."""
        size = sum(math.prod(i["shape"]) * SIZES[i["dtype"]] for i in self.inputs + self.outputs)
        if self.narrow or size < (SMALL_BYTES if self.device.type == "cuda" else self.room or size + 1):
            return None
        found = plan(self.graph, len(first.tensors), min(PART_BYTES, self.room // 8 or PART_BYTES))
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
        twin, tensors = in_float32(model, arguments.tensors)
        graph, results = trace(self.task, twin, arguments, tensors, relabel={"f32": DTYPES[self.narrow]})
        return graph, [(n, r.to(self.narrow) if r.dtype == torch.float32 else r) for n, r in results]

    def reference(
        self, model: torch.nn.Module, arguments: Arguments, tensors: list[torch.Tensor]
    ) -> list[torch.Tensor]:
        """PyTorch's own answer."""
        if self.narrow:
            twin, wide = in_float32(model, tensors)
            return [
                r.to(self.narrow) if r.dtype == torch.float32 else r
                for _, r in run(self.task, twin, arguments, wide)
            ]
        if self.graph.mutated:
            tensors = [t.clone() for t in tensors]
        return [r for _, r in run(self.task, model, arguments, tensors)]

    def _refuse_random(
        self, model: torch.nn.Module, arguments: Arguments, results: list[tuple[str, torch.Tensor]]
    ) -> None:
        hint = "a kernel can only be judged against one right answer: call self.eval() in __init__, or draw the noise in get_inputs()"
        random = [node.op for _, node in self.graph.operators() if node.name in RANDOM]
        if random:
            raise use(f"{self.task.path}: forward is random ({random[0]})", hint)
        again = self.reference(model, arguments, arguments.tensors)
        for (name, one), two in zip(results, again):
            if one.shape != two.shape or not torch.equal(_bits(one), _bits(two)):
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

    def _refuse_moving_shapes(self, model: torch.nn.Module, results: list[tuple[str, torch.Tensor]]) -> None:
        """Results whose sizes follow from values have no buffer that fits."""
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
        bounded = any(
            node.name == "binary_cross_entropy" for _, node in self.graph.operators()
        )  # CUDA would abort on others
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

    def _bears(
        self, model: torch.nn.Module, arguments: Arguments, places: list[int], nans: list[int]
    ) -> bool:
        """Does the reference give as few NaN as before with normal values, as far as their domain allows, in these inputs?"""
        generator = torch.Generator(self.device).manual_seed(FIRST_SEED)
        tensors = list(arguments.tensors)
        for k in places:
            tensors[k] = redraw(tensors[k], self.known[k], "normal", generator)
        try:
            made = self.reference(model, arguments, tensors)
        except Fault:
            return False
        return all(
            int(torch.isnan(r).sum()) <= n if r.is_floating_point() else True for r, n in zip(made, nans)
        )

    def _make_buffers(self) -> None:
        back = {name: dtype for dtype, name in DTYPES.items()}
        self._check_room()
        self.in_buffers = [
            self.pool.add(f"in{k}", back[i["dtype"]], i["shape"], i["strides"])
            for k, i in enumerate(self.inputs)
        ]
        self.out_buffers = [
            self.pool.add(f"out{k}", back[o["dtype"]], o["shape"], o["strides"])
            for k, o in enumerate(self.outputs)
        ]

    def need_bytes(self) -> int:
        """Of the device, for a judgement: buffers, the largest input once more while it is drawn or the baseline's result, and
        a part; or private copies, the truth and the errors of all of it."""
        tensors = self.inputs + self.outputs
        if self.plan:
            sizes = [math.prod(i["shape"]) * SIZES[i["dtype"]] for i in tensors]
            return sum(sizes) + max(sizes) + self.plan.rows * self.plan.row_bytes
        return sum(math.prod(i["shape"]) * (2 * SIZES[i["dtype"]] + 8) for i in tensors)

    def _check_room(self) -> None:
        """Better said now than met by the machine."""
        need, (free, total) = self.need_bytes(), memory_now(self.device)
        if need > free:
            raise no_memory(f"{self.task.path} needs about {need / 1e9:.1f} GB to be judged", need, free, total)

    def description(self) -> dict[str, Any]:
        kind, evidence = self.analysis.classify()
        nodes = self.graph.write()
        facts = [line for k, known in enumerate(self.known) for line in words(f"in{k}", known)]
        facts += [
            f"in{k}: forward writes into it; only what forward returns is judged"
            for k in sorted(self.graph.mutated)
        ]
        live = self.graph.live()
        facts += [f"in{k} is not used by forward" for k in range(len(self.inputs)) if k not in live]
        if not self.graph.exact:
            facts.append("forward writes into views, which the graph does not show exactly")
        if self.narrow:
            facts.append(
                f"this PyTorch cannot compute in {DTYPES[self.narrow]} on the CPU: the reference is float32, rounded at the end"
            )
        facts += [
            f"forward uses a tensor of shape {node.shape} that is neither argument nor part of the model: the kernel is not given it"
            for number, node in enumerate(self.graph.nodes)
            if node.op == "constant" and node.numel > 1 and number in live
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
            "training": self.training,
            "judged_source": self.source.rewritten(self.values) if changed else None,
            "backward": self.task.backward,
            "tf32": self.rules.tf32,
            "tf32_products": self.tf32[0],
            "settings_differ": kind == "gemm" and any(i["dtype"] == "f32" for i in self.inputs),
            "baseline": setting_name(self.tf32),
            "class": kind,
            "evidence": evidence,
            "graph": nodes[:MAX_NODES],
            "graph_truncated": len(nodes) > MAX_NODES,
            "graph_exact": self.graph.exact,
            "bytes_min": self.analysis.bytes_min(),
            "flops_min": self.analysis.flops_min(),
            "flops": self.analysis.flops_written(),
            "facts": facts,
            "structure": {f"in{k}": _structure(known) for k, known in enumerate(self.known)},
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

    def _full_size(self) -> dict[str, Any] | None:
        """What the task is as it is written, from shapes alone; None where its code needs numbers."""
        set_by_user = {n: v for n, v in self.values.items() if n in self.fixed}
        try:
            with OnMeta():
                task = Task(self.source, set_by_user, torch.device("cpu"), self.variant, self.backward)
                arguments = task.arguments(FIRST_SEED, torch.device("meta"))
                model = task.model(FIRST_SEED, torch.device("meta"))
            graph, results = trace(task, model, arguments, arguments.tensors)
        except Exception:  # whatever a task does on tensors without numbers
            return None
        known = [dataclasses.replace(k, shape=list(graph.nodes[i].shape)) for i, k in enumerate(self.known)]
        whole = Analysis(graph, known)
        return {
            "inputs": [node.shape for node in graph.nodes[: graph.leaves]],
            "outputs": [list(r.shape) for _, r in results],
            "bytes_min": whole.bytes_min(),
            "flops_min": whole.flops_min(),
            "flops": whole.flops_written(),
        }

    # ---- draw ---------------------------------------------------------------------------------

    def make(self, seed: str, distribution: str) -> Draw:
        number = seed_number(seed)
        arguments = self.task.arguments(number)
        model = self.task.model(number + 1)
        generator = torch.Generator(self.device).manual_seed(number + 2)
        tensors = [
            redraw(t, known, distribution, generator) for t, known in zip(arguments.tensors, self.known)
        ]
        if distribution != "task":
            tensors = [lean(t, known, up=bool(number & 1)) for t, known in zip(tensors, self.known)]
        stir_parameters(model, distribution, generator)
        held = [h.tensor for h in held_tensors(model)]
        self.check_shapes(tensors + held)
        return Draw(self.arguments, model, tensors, held, distribution)

    def new_draw(
        self, model: torch.nn.Module, tensors: list[torch.Tensor], held: list[torch.Tensor], distribution: str, marks: Any
    ) -> Draw:
        return Draw(self.arguments, model, tensors, held, distribution, marks)

    def check_shapes(self, tensors: list[torch.Tensor]) -> None:
        for tensor, info in zip(tensors, self.inputs):
            if list(tensor.shape) != info["shape"] or DTYPES.get(tensor.dtype) != info["dtype"]:
                raise use(
                    f"{self.task.path}: {info['name']} has shape {list(tensor.shape)} in this draw, {info['shape']} at first",
                    "a task has one set of shapes; make them constants",
                )

    def near(self, base: Draw, seed: str, distribution: str) -> None:
        """Changes a few elements of the inputs where they lie; outputs stay as the last run left them."""
        if base.marks is not None:
            compare_parts.near(self, base, seed, distribution)
            return
        base.tensors = self._changed_a_little(base, seed, distribution)
        for buffer, value in zip(self.in_buffers, base.tensors):
            self.fill(buffer, value)

    def _changed_a_little(self, base: Draw, seed: str, distribution: str) -> list[torch.Tensor]:
        fresh = self.make(seed, distribution)
        generator = torch.Generator(self.device).manual_seed(seed_number(seed) + 3)
        return [nearly(t, f, known, generator) for t, f, known in zip(base.tensors, fresh.tensors, self.known)]

    def draw(self, request: dict[str, Any]) -> dict[str, Any]:
        distribution = check_distribution(request.get("distribution", "task"))
        self.wake_up()
        if request.get("guest"):
            return self._draw_for_guest(request, distribution)
        self._end_exchange()
        if request.get("near"):
            with memory_is_finite("the draw"):
                self.near(self._drawn(), str(_field(request, "seed", str)), distribution)
            self._settle()
            return {"buffers": {b.name: b.wire() for b in self.in_buffers + self.out_buffers}}
        self.draw_now = None
        if request.get("anew") and self.device.type == "cuda" and not self.plan:  # what is large lies where it lies
            self.former.append(self.pool)  # who has them open may still look there: given back with the rest
            self.pool = Pool(self.device, self.pool.work)
            self._make_buffers()
        with memory_is_finite("the draw"):
            shift = int(request.get("shift", 0))
            drawn = self._fill_inputs(str(_field(request, "seed", str)), distribution, shift)
            for buffer in self.out_buffers:
                buffer.prepare(shift)
                if request.get("stale"):  # numbers that somebody might have left there
                    for piece in buffer.tensor().reshape(-1).split(STALE_AT_ONCE):
                        piece.copy_(torch.rand(piece.shape, device=self.device).mul_(2))
        self.give_back(GIVEN_BACK_BYTES)
        self._settle()
        self.draw_now = drawn
        return {"buffers": {b.name: b.wire() for b in self.in_buffers + self.out_buffers}}

    def _fill_inputs(self, seed: str, distribution: str, shift: int) -> Draw:
        if self.plan:
            return compare_parts.draw(self, seed, distribution, shift)
        drawn = self.make(seed, distribution)
        for buffer, value in zip(self.in_buffers, drawn.tensors + drawn.held):
            buffer.prepare(shift)
            self.fill(buffer, value)
        return drawn

    @staticmethod
    def fill(buffer: Buffer, value: torch.Tensor) -> None:
        target = buffer.tensor()
        if 0 in buffer.strides and buffer.bytes:  # an expanded input: write each element once
            index = tuple(slice(0, 1) if s == 0 else slice(None) for s in buffer.strides)
            target, value = target[index], value[index]
        target.copy_(value)

    # ---- a guest ------------------------------------------------------------------------------

    def _draw_for_guest(self, request: dict[str, Any], distribution: str) -> dict[str, Any]:
        """Draws, and hands out what its constructor takes. The inputs themselves follow at hand(), when the module is made."""
        seed = str(_field(request, "seed", str))
        self._end_exchange()
        with memory_is_finite("the draw"):
            if request.get("near"):
                self._drawn().tensors = self._changed_a_little(self._drawn(), seed, distribution)
            else:
                self.draw_now = None
                self.draw_now = self.make(seed, distribution)
        self.exchange = exchange = Exchange(str(request["guest"]))
        tensors: list[dict[str, Any]] = []

        def note(tensor: torch.Tensor) -> int:
            place = exchange.put(f"init{len(tensors)}", tensor.detach())
            tensors.append({**place, **tensor_part(tensor.detach().contiguous())})
            return len(tensors) - 1

        init = self.task.init_inputs(seed_number(seed) + 1)
        return {"init": encode(init, note, f"get_init_inputs() of {self.task.path}"), "tensors": tensors}

    def hand(self) -> dict[str, Any]:
        """The draw's inputs and weights in files, and how forward is called with them."""
        drawn, exchange = self._drawn(), self.exchange
        if exchange is None:
            raise use("nothing was drawn for a guest", "draw with guest first")
        exchange.clear()
        places = {
            f"in{k}": exchange.put(f"in{k}", value, info["strides"])
            for k, (value, info) in enumerate(zip(drawn.tensors + drawn.held, self.inputs))
        }
        for k, b in enumerate(self.out_buffers):
            places[f"out{k}"] = exchange.expect(f"out{k}", b.bytes)
        count = iter(range(len(drawn.tensors)))
        args, kwargs = drawn.arguments.with_tensors([torch.empty(0) for _ in drawn.tensors])
        call = encode([list(args), kwargs], lambda _: next(count), f"get_inputs() of {self.task.path}")
        return {"buffers": places, "call": call}

    def _taken_from_guest(self, drawn: Draw) -> tuple[list[torch.Tensor], list[str], str]:
        """(copies of its outputs, inputs it changed, a hash of the outputs)"""
        exchange, back = self.exchange, {name: dtype for dtype, name in DTYPES.items()}
        assert exchange is not None
        made = [
            exchange.output(f"out{k}", o["shape"], o["strides"], back[o["dtype"]]) for k, o in enumerate(self.outputs)
        ]
        changed = []
        for k, (info, value) in enumerate(zip(self.inputs, drawn.tensors + drawn.held)):
            now = exchange.get(f"in{k}", info["shape"], info["strides"], back[info["dtype"]])
            if now is None or not torch.equal(_bits(now), _bits(value.cpu())):
                changed.append(f"in{k}")
        digest = hashlib.blake2b(digest_size=16)
        for tensor in made:
            digest.update(memory_of(tensor.contiguous()))
        return [m.to(self.device) for m in made], changed, digest.hexdigest()

    def _end_exchange(self) -> None:
        if self.exchange is not None:
            self.exchange.close()
            self.exchange = None

    def _settle(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    # ---- judge --------------------------------------------------------------------------------

    def answers(self, drawn: Draw) -> tuple[list[torch.Tensor], list[torch.Tensor], bool]:
        """(reference, truth, is the truth float64) for a draw."""
        reference = self.reference(drawn.model, drawn.arguments, drawn.tensors)
        truth = self._truth(drawn)
        usable = (
            truth is not None
            and len(truth) == len(reference)
            and all(t.shape == r.shape for t, r in zip(truth, reference))
        )
        return reference, truth if usable and truth else reference, usable

    def _truth(self, drawn: Draw) -> list[torch.Tensor] | None:
        """On the device; on the host where the device has no room and this is not a part, which can be made smaller."""
        try:
            return run_double(self.task, drawn.model, drawn.arguments, drawn.tensors)
        except (MemoryError, RuntimeError, Fault) as err:
            if drawn.marks is not None or self.device.type == "cpu" or not is_out_of_memory(err):
                raise
        self.give_back()
        return run_double_on_host(self.task, drawn.model, drawn.arguments, drawn.tensors)

    def noise(self, drawn: Draw, truth: list[torch.Tensor]) -> dict[int, torch.Tensor] | None:
        """For each floating point output, what rounding on the way does to each of its elements (flat): noise.py."""
        runs = runs_for(max(t.numel() for t in truth))
        terms, stored = longest_sums(self.graph), stored_roundoff(self.graph)
        summed = ROUNDOFF[self.rules.compute]
        where, run_there = truth[0].device, run_double if truth[0].device.type == self.device.type else run_double_on_host
        square = {k: torch.zeros_like(t).reshape(-1) for k, t in enumerate(truth) if t.is_floating_point()}
        for _ in range(runs):
            generator = torch.Generator(where).manual_seed(secrets.randbits(60))
            disturb = Disturb(terms, stored, summed, generator)
            made = run_there(self.task, drawn.model, drawn.arguments, drawn.tensors, disturb)
            if made is None or any(m.shape != t.shape for m, t in zip(made, truth)):
                return None
            for k, total in square.items():
                total.add_((made[k].reshape(-1) - truth[k].reshape(-1)).square_())
        return {k: torch.nan_to_num((total / runs).sqrt_(), nan=0.0, posinf=0.0) for k, total in square.items()}

    def compare(self) -> dict[str, Any]:
        drawn = self._drawn()
        with memory_is_finite("the comparison"):
            if drawn.marks is not None:
                answer = compare_parts.compare(self, drawn)
            else:
                answer = self._compare_whole(drawn)
        self.give_back(GIVEN_BACK_BYTES)
        return answer

    def _compare_whole(self, drawn: Draw) -> dict[str, Any]:
        # Copied first: whoever made the outputs may still be running, and the reference does not exist yet.
        if self.exchange:
            made, modified, digest = self._taken_from_guest(drawn)
            guards = []
        else:
            made, digest = [b.as_bits().clone().view(b.dtype) for b in self.out_buffers], ""  # bits: a bool stays what it is
            guards = [hit for b in self.in_buffers + self.out_buffers for hit in b.guards_hit()]
            modified = [
                b.name
                for b, value in zip(self.in_buffers, drawn.tensors + drawn.held)
                if not torch.equal(b.as_bits(), _bits(value))
            ]
        reference, truth, exact = self.answers(drawn)
        on_host = any(t.device.type == "cpu" for t in truth) and self.device.type != "cpu"
        noise = functools.lru_cache(None)(lambda: self.noise(drawn, truth) if exact else None)
        outputs = [
            compare_output(name, m, r, t, self.rules, noise=lambda k=k: (noise() or {}).get(k))
            for k, (name, m, r, t) in enumerate(zip(self.output_names, made, reference, truth))
        ]
        return {
            **({"hash": digest} if digest else {}),
            "outputs": outputs,
            "canary": planted([r.to(t.device) for r, t in zip(reference, truth)], truth, self.rules),
            "inputs_modified": modified,
            "guards_hit": guards,
            "truth": "float64" if exact else "reference",
            "trivial": [] if on_host else self.standing.narrow(self, drawn, reference, truth),
            "way": "whole, float64 on the host" if on_host else "whole",
        }

    def write_reference(self) -> dict[str, Any]:
        """Puts PyTorch's own answer where a candidate would put its: how tests and other tools see a right answer."""
        drawn = self._drawn()
        if drawn.marks is not None:
            compare_parts.write_reference(self, drawn)
        else:
            for buffer, value in zip(
                self.out_buffers, self.reference(drawn.model, drawn.arguments, drawn.tensors)
            ):
                buffer.tensor().copy_(value)
        self._settle()
        return {}

    def _drawn(self) -> Draw:
        if self.draw_now is None:
            raise use("nothing was drawn", "draw before compare")
        return self.draw_now

    def release(self) -> None:
        self.draw_now = None
        self._end_exchange()
        self.baselines.clear()
        self._release_pool()

    def _release_pool(self) -> None:
        for pool in [*self.former, self.pool]:
            pool.release()
        self.former = []
        if self.own_work:
            with contextlib.suppress(OSError):  # it rests twice
                self.pool.work.rmdir()


# ---- helpers ----------------------------------------------------------------------------------


def _field(request: dict[str, Any], name: str, kind: type) -> Any:
    value = request.get(name)
    if not isinstance(value, kind):
        raise use(f"the request has no {name!r}", "see docs/architecture.md")
    return value


def _identity(request: dict[str, Any]) -> tuple[Any, ...]:
    """What makes two loads the same: the file as it is now, the sizes and the device."""
    path = Path(_field(request, "task", str)).absolute()
    return (
        str(path),
        read_source(path).text,
        request.get("device", "cpu"),
        sorted((request.get("set") or {}).items()),
        request.get("max_elements"),
        request.get("max_flops"),
        request.get("room"),
        request.get("baseline") or "defaults",
        request.get("variant"),
        bool(request.get("backward")),
    )


def _device(name: str) -> torch.device:
    if name == "cpu":
        return torch.device("cpu")
    if not name.startswith("cuda"):
        raise use(f"no device {name!r}", "cpu or cuda:0")
    if not torch.cuda.is_available():
        raise machine(
            "this PyTorch sees no CUDA device", "use --device simt, or a Python whose torch has CUDA"
        )
    index = int(name.split(":")[1]) if ":" in name else 0
    if index >= torch.cuda.device_count():
        raise use(f"there is no {name}: {torch.cuda.device_count()} CUDA devices", "cuda:0 is the first")
    return torch.device("cuda", index)


def open_device(name: str) -> None:
    """Starts the device's context and a first kernel."""
    device = _device(name)
    if device.type == "cuda":
        torch.rand(1 << 10, device=device).double().sum().item()


def memory_now(device: torch.device) -> tuple[int, int]:
    """(free, in all) bytes of the device; a host's total is what is free."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
        return torch.cuda.mem_get_info(device)
    free = free_bytes(device)
    return free, free


def free_bytes(device: torch.device) -> int:
    """Memory that can be had now."""
    if device.type == "cuda":
        return memory_now(device)[0]
    with contextlib.suppress(OSError, ValueError), open("/proc/meminfo", encoding="ascii") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    return 1 << 62


def _cost(source: Source, values: dict[str, int], limits: scale.Limits, variant: int, backward: bool) -> scale.Cost:
    """What the task costs at these sizes. On meta tensors where that works: no arithmetic; else executed on the CPU, if not far too big."""
    most = 8 * limits.elements
    too_big = scale.Cost(limits.elements + 1, math.inf, 0)
    try:
        with Limit(most):
            task = Task(source, values, torch.device("cpu"), variant, backward)
            arguments = task.arguments(FIRST_SEED)
            model = task.model(FIRST_SEED)
        if max((t.numel() for t in arguments.tensors), default=0) > limits.elements:
            return too_big
        try:
            graph, _ = trace(
                task, on_meta(model), arguments, [t.to("meta") for t in arguments.tensors], limit=most
            )
        except (Fault, NotImplementedError):
            twin, tensors = in_float32(model, arguments.tensors)
            graph, _ = trace(task, twin, arguments, tensors, limit=most)
    except TooBig:
        return too_big
    sizes = [math.prod(part["shape"]) for node in graph.nodes for part in node.parts]
    return scale.Cost(
        max(sizes, default=0), sum(node_flops(graph.nodes, n) for _, n in graph.operators()), sum(sizes)
    )


def _check_tensors(task: Task, tensors: list[torch.Tensor]) -> None:
    for tensor in tensors:
        if tensor.layout != torch.strided or tensor.dtype not in DTYPES:
            raise use(
                f"{task.path}: a tensor of type {tensor.dtype}, {tensor.layout} cannot be handed to a kernel",
                "types: " + ", ".join(DTYPES.values()),
            )
        if tensor.dim() > MAX_DIMS:
            raise use(
                f"{task.path}: a tensor has {tensor.dim()} dimensions, {MAX_DIMS} at most",
                "flatten some of them",
            )


def _contiguous(shape: list[int]) -> list[int]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return strides[::-1]


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.view(pattern_bits(tensor.dtype)[0])


def _structure(known: Known) -> dict[str, Any]:
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
