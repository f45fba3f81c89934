# SPDX-License-Identifier: Apache-2.0
"""Draw and judge a large task part by part (parts.py), so that the device holds its buffers and little else.

1. Inputs that are cut have no private copy. Their fingerprints are taken when they are drawn; every part is copied, the copy is
   checked against them, and reference and truth are computed from the copy.
2. Outputs are fingerprinted before anything is computed, and each part's copy is checked against that: what was written
   later counts as wrong.
3. The figures of all parts are added up and judged once, by the rules of compare.py. noise.py is used in a second pass, only if the first
   one would reject the answer.
4. When out of memory it halves the parts and starts again; if a part cannot be halved, the caller gets the error.
"""

from __future__ import annotations

import dataclasses
import gc
import secrets
from collections.abc import Iterator
from typing import Any

import torch

from .buffers import Buffer, bits
from .canary import planted
from .compare import Limits, Sums, class_name, compare_output, figures, forgive, judge, limits_of, measure, measure_quickly
from .compare import explained as explain_errors
from .compare import worst as worst_elements
from .draw import lean, nearly, redraw, seed_number, stir_parameters
from .fault import Fault, is_out_of_memory
from .fingerprint import copied, fingerprints
from .parts import Plan
from .pattern import Pattern
from .task import held_tensors

DRAWN_AT_ONCE = 1 << 25  # elements; far below the size of blocks that torch does not split (main.py)
LEAST_ROWS = 64  # of a piece that is drawn: a mixed draw needs some
SMALL = 1 << 24  # an output of fewer elements is put together and compared whole
MOST_WORST = 8


# ---- draw --------------------------------------------------------------------------------------


def _pieces(tensor: torch.Tensor) -> Iterator[slice]:
    step = max(DRAWN_AT_ONCE // max(tensor[0].numel(), 1), LEAST_ROWS)
    return (slice(top, min(top + step, len(tensor))) for top in range(0, len(tensor), step))


def draw(session: Any, seed: str, distribution: str, shift: int) -> Any:
    """Session.make() and the filling of the input buffers, without a copy of what is cut."""
    number = seed_number(seed)
    own, model = session.task.arguments(number).tensors, session.task.model(number + 1)
    generator = torch.Generator(session.device).manual_seed(number + 2)
    session.check_shapes(own + [h.tensor for h in held_tensors(model)])
    kept: list[torch.Tensor] = []
    for k, (buffer, known) in enumerate(zip(session.in_buffers, session.known[: len(own)])):
        buffer.prepare(shift)
        whole, own[k] = own[k], torch.empty(0)  # given back as soon as it is in its buffer
        fresh = _maker(known, distribution, generator, bool(number & 1))
        if k in session.plan.cut and not known.structured():
            for rows in _pieces(whole):
                buffer.tensor()[rows].copy_(fresh(whole[rows]))
            kept.append(buffer.tensor())
        else:
            kept.append(fresh(whole))
            session.fill(buffer, kept[-1])
            if k in session.plan.cut:
                kept[-1] = buffer.tensor()
        del whole
    stir_parameters(model, distribution, generator, up=bool(number & 1))
    held = [h.tensor for h in held_tensors(model)]
    for buffer, value in zip(session.in_buffers[len(kept) :], held):
        buffer.prepare(shift)
        session.fill(buffer, value)
    return session.new_draw(model, kept, held, distribution, _marks(session))


def _maker(known: Any, distribution: str, generator: torch.Generator, up: bool) -> Any:
    def fresh(task_own: torch.Tensor) -> torch.Tensor:
        value = redraw(task_own, known, distribution, generator)
        return value if distribution == "task" else lean(value, known, up)

    return fresh


def near(session: Any, base: Any, seed: str, distribution: str) -> None:
    """Changes a few rows of the inputs in place."""
    number = seed_number(seed)
    own = session.task.arguments(number).tensors
    generator = torch.Generator(session.device).manual_seed(number + 2)
    change = torch.Generator(session.device).manual_seed(number + 3)
    for k, (buffer, known) in enumerate(zip(session.in_buffers, session.known[: len(own)])):
        whole, own[k] = own[k], torch.empty(0)
        fresh = _maker(known, distribution, generator, bool(number & 1))
        if k in session.plan.cut and not known.structured():
            for rows in _pieces(whole):
                buffer.tensor()[rows].copy_(nearly(buffer.tensor()[rows], fresh(whole[rows]), known, change))
        else:
            value = nearly(base.tensors[k], fresh(whole), known, change)
            session.fill(buffer, value)
            base.tensors[k] = buffer.tensor() if k in session.plan.cut else value
        del whole
    base.marks = _marks(session)


def _marks(session: Any) -> dict[int, torch.Tensor]:
    return {k: fingerprints(session.in_buffers[k].tensor(), session.plan.unit) for k in session.plan.cut}


# ---- one output over all parts -----------------------------------------------------------------


def _add_sums(total: Sums, one: Any) -> None:
    for field in dataclasses.fields(Sums):
        if field.name != "excess":
            both = getattr(total, field.name), getattr(one, field.name)
            setattr(total, field.name, max(both) if "max" in field.name else sum(both))


class Tally:
    """The sums over the parts of one output."""

    def __init__(self, name: str, dtype: torch.dtype, elements: int, rules: Any) -> None:
        self.name, self.dtype, self.elements, self.rules = name, dtype, elements, rules
        self.limits: Limits | None = limits_of(dtype, rules) if dtype.is_floating_point else None
        # Where TF32 is allowed, fp32's own limits say which of the two classes it is.
        self.strict = limits_of(dtype, rules.strict()) if rules.tf32 and dtype == torch.float32 else None
        self.begin()

    def begin(self) -> None:
        self.sums, self.pattern = Sums(torch.empty(0)), Pattern()
        self.strict_sums = Sums(torch.empty(0))
        self.worst: list[dict[str, Any]] = []
        self.exact: list[dict[str, Any]] = []
        self.pieces: list[tuple[torch.Tensor, ...]] = []

    def add(
        self,
        top: int,
        got: torch.Tensor,
        reference: torch.Tensor,
        truth: torch.Tensor,
        noise: tuple[torch.Tensor, torch.Tensor] | None,
    ) -> None:
        """`noise`: with what is allowed, and of fp32."""
        if self.elements <= SMALL:
            self.pieces.append((got, reference, truth, *(n.reshape(got.shape) for n in noise or ())))
        elif self.limits is None:
            self._add_exact(top, compare_output(self.name, got, reference, truth, self.rules))
        else:
            self._add_floating(top, got, reference, truth, noise)

    def _add_exact(self, top: int, found: dict[str, Any]) -> None:
        self.exact.append(found)
        self._note(top, found["worst"], Pattern(found["pattern"], found["relation"]))

    def _add_floating(
        self,
        top: int,
        got: torch.Tensor,
        reference: torch.Tensor,
        truth: torch.Tensor,
        noise: tuple[torch.Tensor, torch.Tensor] | None,
    ) -> None:
        assert self.limits is not None
        if noise is None:
            one = measure_quickly(got, reference, truth, self.limits)
        else:
            one = measure(got, reference, truth, self.limits, noise[0])
        _add_sums(self.sums, one)
        if self.strict is not None:
            like = self.rules.as_fp32(reference, truth)
            _add_sums(
                self.strict_sums,
                measure_quickly(got, like, truth, self.strict)
                if noise is None
                else measure(got, like, truth, self.strict, noise[1]),
            )
        if one.beyond:
            excess = one.excess.reshape(got.shape)
            pattern = Pattern() if self.pattern.text else explain_errors(excess > 1.0, got, truth, one.unwritten)
            self._note(top, worst_elements(excess, got, truth), pattern)

    def _note(self, top: int, worst: list[dict[str, Any]], pattern: Pattern) -> None:
        for element in worst[: MOST_WORST - len(self.worst)]:
            element["index"][0] += top
            self.worst.append(element)
        if pattern.text and not self.pattern.text:
            self.pattern = pattern._replace(text=f"from row {top} on: {pattern.text}") if top else pattern

    def changed(self, top: int, elements: int) -> None:
        """Rows that were written while they were compared."""
        self.sums.beyond += elements
        self.sums.misplaced += elements
        self.pattern = Pattern(f"from row {top} on: still being written after the kernel had ended")

    def comparison(self) -> dict[str, Any]:
        if self.pieces:
            got, reference, truth, *noise = (torch.cat(column) for column in zip(*self.pieces))
            known = (lambda strict=False: noise[strict].reshape(-1)) if noise else None
            found = compare_output(self.name, got, reference, truth, self.rules, noise=known)
            found["wrong"] += self.sums.beyond
            found["pattern"] = found["pattern"] or self.pattern.text
            return found
        if self.limits is None:
            return self._exact()
        found = judge(self.elements, self.dtype, self.sums, self.limits)
        return {
            "name": self.name,
            "elements": self.elements,
            **figures(self.sums),
            **found,
            "class": class_name(self.dtype, self._as_fp32()),
            "worst": self.worst,
            "pattern": self.pattern.text if found["beyond"] else "",
            "relation": self.pattern.relation if found["beyond"] else "",
        }

    def _as_fp32(self) -> bool:
        if self.strict is None:
            return True
        found = judge(self.elements, self.dtype, self.strict_sums, self.strict)
        return not (found["beyond"] or found["imprecise"])

    def _exact(self) -> dict[str, Any]:
        found = dict(self.exact[0], elements=self.elements, worst=self.worst, pattern=self.pattern.text, relation=self.pattern.relation)
        for key in ("wrong", "unwritten", "beyond"):
            found[key] = sum(one[key] for one in self.exact)
        found["wrong"] += self.sums.beyond
        found["max_abs"] = max(one["max_abs"] for one in self.exact)
        return found


# ---- judge -------------------------------------------------------------------------------------


def compare(session: Any, drawn: Any) -> dict[str, Any]:
    """Session.compare() for a task in parts."""
    rows: int | None = session.plan.rows
    while True:
        assert rows is not None
        try:
            return _compare(session, drawn, rows)
        except (MemoryError, RuntimeError, Fault) as err:
            rows = session.plan.smaller(rows) if is_out_of_memory(err) else None
            if rows is None:
                raise
        # Outside of the handler: the error's trace holds what the part had, and with newer versions of torch it is
        # part of a cycle.
        gc.collect()
        session.give_back()


def _compare(session: Any, drawn: Any, rows: int) -> dict[str, Any]:
    plan: Plan = session.plan
    outputs = [fingerprints(b.tensor(), plan.unit) for b in session.out_buffers]
    guards = [hit for b in session.in_buffers + session.out_buffers for hit in b.guards_hit()]
    whole = [k for k in range(len(session.in_buffers)) if k not in plan.cut]
    values = drawn.tensors + drawn.held
    modified = {f"in{k}" for k in whole if not torch.equal(session.in_buffers[k].as_bits(), bits(values[k]))}
    work = _Work(session, drawn, rows, outputs, modified)
    trivial = work.run(noisy=False, sample=True)
    if work.turned_down() and work.usable:
        work.run(noisy=True, sample=False)
    return {
        "outputs": [t.comparison() for t in work.tallies],
        "inputs_modified": sorted(work.modified),
        "guards_hit": guards,
        "truth": "float64" if work.usable else "reference",
        "trivial": trivial,
        "canary": work.canary,
        "way": plan.words(rows),
    }


class _Work:
    def __init__(self, session: Any, drawn: Any, rows: int, outputs: list[torch.Tensor], modified: set[str]) -> None:
        self.session, self.drawn, self.rows, self.outputs, self.modified = session, drawn, rows, outputs, modified
        self.usable = True
        self.canary: dict[str, Any] | None = None
        self.tallies = [
            Tally(name, b.dtype, b.tensor().numel(), session.rules.of(k))
            for k, (name, b) in enumerate(zip(session.output_names, session.out_buffers))
        ]

    def turned_down(self) -> bool:
        found = [t.comparison() for t in self.tallies]
        return any(f["beyond"] or f["imprecise"] for f in found)

    def run(self, noisy: bool, sample: bool) -> list[str]:
        parts, trivial = self.session.plan.parts(self.rows), []
        lot = secrets.randbelow(max(len(parts) - 1, 1))  # trivial answers are tried on one; not the last, of another size
        for tally in self.tallies:
            tally.begin()
        for number, (top, end) in enumerate(parts):
            piece = self._piece(top, end)
            reference, truth = self._answers(piece)
            noise = self._noise(piece, truth) if noisy else {}
            for k, (tally, buffer) in enumerate(zip(self.tallies, self.session.out_buffers)):
                got = self._copy(buffer, k, top, end)
                if got is not None and self.session.has_infinities(self.drawn):
                    got = forgive(got, reference[k], truth[k])
                if got is None:
                    tally.changed(top, buffer.tensor()[top:end].numel())
                else:
                    tally.add(top, got, reference[k], truth[k], noise.get(k))
            if sample and number == lot:
                trivial = self.session.standing.narrow(self.session, piece, reference, truth)
                self.canary = planted(reference, truth, self.session.rules)
        return trivial

    def _noise(self, piece: Any, truth: list[torch.Tensor]) -> dict[int, tuple[torch.Tensor, torch.Tensor]]:
        allowed = self.session.noise(piece, truth)
        of_fp32 = self.session.noise(piece, truth, strict=True) if allowed and self.session.rules.tf32 else allowed
        return {k: (allowed[k], of_fp32[k]) for k in allowed} if allowed and of_fp32 else {}

    def _piece(self, top: int, end: int) -> Any:
        """A draw of these rows, private and checked."""
        plan, tensors = self.session.plan, list(self.drawn.tensors)
        for k in plan.cut:
            tensors[k], marks = copied(self.session.in_buffers[k].tensor()[top:end], plan.unit)
            if not torch.equal(marks, _of(self.drawn.marks[k], top, end, plan.unit)):
                self.modified.add(f"in{k}")
        return dataclasses.replace(self.drawn, tensors=tensors)

    def _answers(self, piece: Any) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        reference, truth, exact = self.session.answers(piece)
        self.usable = self.usable and exact
        return reference, truth

    def _copy(self, buffer: Buffer, k: int, top: int, end: int) -> torch.Tensor | None:
        plan = self.session.plan
        got, marks = copied(buffer.as_bits()[top:end], plan.unit)
        return got.view(buffer.dtype) if torch.equal(marks, _of(self.outputs[k], top, end, plan.unit)) else None


def _of(marks: torch.Tensor, top: int, end: int, unit: int) -> torch.Tensor:
    return marks[top // unit : -(-end // unit)]


def write_reference(session: Any, drawn: Any) -> None:
    """PyTorch's own answer, part by part."""
    for top, end in session.plan.parts():
        tensors = [t[top:end] if k in session.plan.cut else t for k, t in enumerate(drawn.tensors)]
        for buffer, value in zip(session.out_buffers, session.reference(drawn.model, drawn.arguments, tensors)):
            buffer.tensor()[top:end].copy_(value)
