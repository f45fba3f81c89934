# SPDX-License-Identifier: Apache-2.0
"""A loaded task in use: its buffers, the draw in them and the judgement of a candidate's outputs.

1. The truth for a draw is computed at compare(), from a private copy of the inputs, after the candidate ran.
2. A load replaces the one before; release() leaves no file and no device memory behind.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import hashlib
import math
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from . import compare_parts, ties
from .baseline import COMPILED
from .buffers import Buffer, Pool, bits
from .canary import planted
from .compare import ROUNDOFF, compare_output, forgive
from .describe import SIZES
from .devices import memory_now
from .draw import check_distribution, lean, nearly, redraw, seed_number, stir_parameters
from .exchange import Exchange, memory_of
from .fault import Fault, is_out_of_memory, memory_is_finite, no_memory, use
from .graph import tensor_part
from .jumps import Jumps, can_jump
from .loaded import SMALL_BYTES, Loaded, field
from .noise import Disturb, longest_sums, runs_for, short_factors, stored_roundoff
from .parts import PART_BYTES
from .plain_data import encode
from .task import DTYPES, Arguments, held_tensors, neighbours_unchanged, read_source
from .trivial import Standing
from .truth import run_double, run_double_on_host

GIVEN_BACK_BYTES = 1 << 30  # torch keeps less than that between two requests
STALE_AT_ONCE = 1 << 26
STEP = 3.0  # less than NOISE_RMS and NOISE_ELEMENT: the other side of a step is allowed, and little more
LEFT_BYTES = 64 << 20  # of an oracle that rests: more is held by something that waits for the collector


@dataclasses.dataclass
class Draw:
    """Private copies of what is in the buffers now."""

    arguments: Arguments
    model: torch.nn.Module
    tensors: list[torch.Tensor]  # forward inputs
    held: list[torch.Tensor]  # parameters and buffers
    distribution: str = "task"
    marks: dict[int, torch.Tensor] | None = None  # in parts: fingerprints of the inputs that have no copy here


@dataclasses.dataclass
class Rounding:
    """What rounding may do to results: by their numbers."""

    off: dict[int, torch.Tensor]  # floats, flat: how far
    others: dict[int, list[torch.Tensor]]  # integers and flags: other answers that are as right

    def add(self, made: list[torch.Tensor] | None, truth: list[torch.Tensor]) -> None:
        """The results of a push."""
        for k, (value, real) in enumerate(zip(made or [], truth)):
            if k not in self.off:
                self.others.setdefault(k, []).append(value)
                continue
            step = torch.nan_to_num((value - real).abs_().reshape(-1), 0.0, 0.0, 0.0).div_(STEP)
            self.off[k] = torch.maximum(self.off[k], step)


class Session(Loaded):
    def __init__(self, request: dict[str, Any]) -> None:
        self.asked = _identity(request)
        super().__init__(request)
        self.draw_now: Draw | None = None
        self.standing = Standing()
        self.exchange: Exchange | None = None  # the draw is for a guest, which gets it in files
        self.baselines: dict[str, Any] = {}
        self.timed: dict[str, Any] = {}  # the last timing of each baseline, for baseline.py
        self.flush: Any = None
        self._make_pool(request)
        try:
            self._make_buffers()
        except BaseException:
            self.release()
            raise

    # ---- between two users --------------------------------------------------------------------

    def is_for(self, request: dict[str, Any]) -> bool:
        """Is this the task and the sizes asked for, and has nothing it was read from changed?"""
        return self.asked == _identity(request) and neighbours_unchanged()

    def rest(self) -> None:
        """Releases all memory that a draw needs; what was learnt about the task is kept."""
        self.draw_now = None
        self._end_exchange()
        self.drop_baselines()
        self._release_pool()
        self.resting = True
        self.give_back()

    def drop_baselines(self) -> None:
        """Releases what baselines hold; the draw is kept."""
        self.baselines = {name: call for name, call in self.baselines.items() if name in COMPILED}
        for call in self.baselines.values():
            call.rest(self.draw_now.model if self.draw_now else None)
        self.flush = None
        self.give_back()

    def give_back(self, least: int = 0) -> None:
        """Device memory that torch caches and does not use, where it is at least so much."""
        if self.device.type != "cuda":
            return
        if torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device) >= least:
            torch.cuda.empty_cache()
        if self.resting and torch.cuda.memory_reserved(self.device) > LEFT_BYTES:
            gc.collect()  # a captured graph and its results refer to each other
            torch.cuda.empty_cache()

    def is_small(self) -> bool:
        """May its device memory be given back a little later? While processes that had it open end, the driver takes a tenth of a
        second for each of them; but the next process must not find a GPU full of unused buffers."""
        held = sum(b.bytes for pool in [*self.former, self.pool] for b in pool.buffers)
        return self.device.type == "cuda" and held < SMALL_BYTES

    def wake(self, request: dict[str, Any]) -> None:
        """New buffers, in the folder that the next user names."""
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
            part = min(self.plan.rows * self.plan.row_bytes, max(PART_BYTES, 2 * self.plan.row_bytes))  # or smaller ones
            return sum(sizes) + max(sizes) + part
        return sum(math.prod(i["shape"]) * (2 * SIZES[i["dtype"]] + 8) for i in tensors)

    def _check_room(self) -> None:
        """Reports a lack of memory now, before the machine runs out."""
        need, (free, total) = self.need_bytes(), memory_now(self.device)
        if need > free:
            raise no_memory(f"{self.task.path} needs about {need / 1e9:.1f} GB to be judged", need, free, total)

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
        stir_parameters(model, distribution, generator, up=bool(number & 1))
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
                self.near(self._drawn(), str(field(request, "seed", str)), distribution)
            self._settle()
            return {"buffers": {b.name: b.wire() for b in self.in_buffers + self.out_buffers}}
        self.draw_now = None
        if request.get("anew") and self.device.type == "cuda" and not self.plan:  # what is large lies where it lies
            self.former.append(self.pool)  # who has them open may still look there: given back with the rest
            self.pool = Pool(self.device, self.pool.work)
            self._make_buffers()
        with memory_is_finite("the draw"):
            shift = int(request.get("shift", 0))
            drawn = self._fill_inputs(str(field(request, "seed", str)), distribution, shift)
            for buffer in self.out_buffers:
                buffer.prepare(shift)
                if request.get("stale"):  # numbers that an earlier run might have left there
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
        seed = str(field(request, "seed", str))
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
            if now is None or not torch.equal(bits(now), bits(value.cpu())):
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

    def noise(self, drawn: Draw, truth: list[torch.Tensor], strict: bool = False) -> dict[int, torch.Tensor] | None:
        """For each floating point output, what rounding on the way does to each of its elements (flat): noise.py. A CPU has no
        TF32: there, unless `strict`, the noise is that of the reference on a GPU."""
        found = self.rounding(drawn, truth, strict)
        return found.off if found else None

    def rounding(self, drawn: Draw, truth: list[torch.Tensor], strict: bool = False, more: bool = False) -> Rounding | None:
        """By runs with noise, and by runs that push operators which jump to either side: jumps.py. Outputs that are computed in
        f64 have runs of their own."""
        kinds = [self.rules.of(k).compute for k in range(len(truth))]
        made = {kind: self._rounding(drawn, truth, strict, kind, more) for kind in set(kinds)}
        if None in made.values():
            return None
        found = Rounding({}, {})
        for k, kind in enumerate(kinds):
            own = made[kind]
            assert own
            found.off |= {k: own.off[k]} if k in own.off else {}
            found.others |= {k: own.others[k]} if k in own.others else {}
        return found

    def _rounding(self, drawn: Draw, truth: list[torch.Tensor], strict: bool, kind: torch.dtype, more: bool) -> Rounding | None:
        runs = runs_for(max(t.numel() for t in truth), more)
        terms, summed = longest_sums(self.graph), ROUNDOFF[kind]
        stored = summed if kind == torch.float64 else stored_roundoff(self.graph)
        where, run_there = truth[0].device, run_double if truth[0].device.type == self.device.type else run_double_on_host
        tf32 = self.rules.tf32 and not strict and self.device.type == "cpu"
        short = short_factors(*self.tf32) if tf32 else frozenset()
        jumps = Jumps() if can_jump(self.graph) else None

        def results(mode: Any) -> list[torch.Tensor] | None:
            made = run_there(self.task, drawn.model, drawn.arguments, drawn.tensors, mode)
            return None if made is None or any(m.shape != t.shape for m, t in zip(made, truth)) else made

        def generator() -> torch.Generator:
            return torch.Generator(where).manual_seed(secrets.randbits(60))

        square = {k: torch.zeros_like(t).reshape(-1) for k, t in enumerate(truth) if t.is_floating_point()}
        if jumps and results(jumps.look()) is None:
            return None
        if jumps and jumps.left <= 0:
            jumps = None  # too large to be looked for
        for number in range(runs):
            disturb = Disturb(terms, stored, summed, generator(), short, nearest=number == 0)
            made = results(_nested(disturb, jumps.watch(disturb)) if jumps else disturb)
            if made is None:
                return None
            for k, total in square.items():
                total.add_((made[k].reshape(-1) - truth[k].reshape(-1)).square_())
        found = Rounding({k: torch.nan_to_num((total / runs).sqrt_(), nan=0.0, posinf=0.0) for k, total in square.items()}, {})
        if jumps:
            for number in jumps.pushes(max(t.numel() for t in truth)):
                found.add(results(jumps.push(number, generator())), truth)
        return found

    def has_choices(self) -> bool:
        """Does a result consist of indices from an operator that may choose among equal elements?"""
        nodes = self.graph.nodes
        return any(part == 1 and nodes[n].name in ties.EACH_ONCE | ties.ONE for n, part in self.graph.outputs)

    def compare(self) -> dict[str, Any]:
        drawn = self._drawn()
        with memory_is_finite("the comparison"):
            if drawn.marks is not None:
                answer = compare_parts.compare(self, drawn)
            else:
                answer = self._compare_whole(drawn)
        if self.has_infinities(drawn):
            for output in answer["outputs"]:
                output["pattern"] += "; a few inputs of this draw are infinite" if output["pattern"] else ""
        self.give_back(GIVEN_BACK_BYTES)
        return answer

    def has_infinities(self, drawn: Draw) -> bool:
        return self.infinite and drawn.distribution == "zeros"

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
                if not torch.equal(b.as_bits(), bits(value))
            ]
        reference, truth, exact = self.answers(drawn)
        if self.has_infinities(drawn):
            made = [forgive(m, r, t) for m, r, t in zip(made, reference, truth)]
        wanted = reference
        if self.has_choices():
            wanted = ties.settle(lambda: self.reference(drawn.model, drawn.arguments, drawn.tensors), made, reference)
        on_host = any(t.device.type == "cpu" for t in truth) and self.device.type != "cpu"
        jumping = can_jump(self.graph)  # what operators that jump keep has room for as many runs as there are
        found = functools.lru_cache(None)(lambda strict, more: self.rounding(drawn, truth, strict, more) if exact else None)

        def noise(k: int, strict: bool = False, more: bool = False) -> torch.Tensor | None:
            made = found(strict, more)
            return made.off.get(k) if made else None

        def others(k: int) -> list[torch.Tensor]:
            made = found(False, False)
            return made.others.get(k, []) if made else []

        outputs = [
            compare_output(
                name,
                m,
                r,
                t,
                self.rules.of(k),
                noise=functools.partial(noise, k),
                others=functools.partial(others, k),
                more_noise=None if jumping else functools.partial(noise, k, more=True),
            )
            for k, (name, m, r, t) in enumerate(zip(self.output_names, made, wanted, truth))
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


@contextlib.contextmanager
def _nested(*modes: Any) -> Iterator[None]:
    """All of them, entered where run_double() enters one: the inputs have become float64 without them."""
    with contextlib.ExitStack() as stack:
        for mode in modes:
            stack.enter_context(mode)
        yield


def _identity(request: dict[str, Any]) -> tuple[Any, ...]:
    """The identity of a load: the file's current content, the sizes and the device."""
    path = Path(field(request, "task", str)).absolute()
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
        bool(request.get("as_written")),
    )
