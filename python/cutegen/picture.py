# SPDX-License-Identifier: Apache-2.0
"""picture.py - progress in a terminal and in a notebook, and results as HTML and SVG. Needs nothing beyond Python."""

from __future__ import annotations

import sys
from html import escape
from typing import TYPE_CHECKING, Any

from cutegen.program import Json

if TYPE_CHECKING:
    from cutegen.kernels import Outcome
    from cutegen.optimized import Optimized
    from cutegen.verdict import Runs, Verdict

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 560, 220, 64, 34, 14
COLUMNS = ("run", "task", "model", "device", "state", "attempts", "best_us", "eager_us", "modelled")


def _microseconds(value: float) -> str:
    return f"{value:.3g} us" if value < 1e4 else f"{value / 1e3:.4g} ms"


# ---- the trajectory ------------------------------------------------------------------------------------


def trajectory_svg(outcome: Outcome) -> str:
    """Time per attempt, the best so far as a line; attempts that failed stand on the axis."""
    return _svg(outcome.attempts, outcome.eager_us, outcome.modelled)


def _svg(attempts: list[Json], eager: float | None, modelled: bool) -> str:
    times = [a["time_us"] for a in attempts if a.get("time_us")]
    top = max([*times, eager or 0.0], default=1.0) * 1.1 or 1.0
    span = max(len(attempts), 1)

    def x(i: int) -> float:
        return LEFT + (i + 0.5) * (WIDTH - LEFT - 12) / span

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'role="img" font-family="system-ui, sans-serif" font-size="11">'
        "<title>time of each attempt</title>"
        f'<path d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - 8}" fill="none" stroke="#888"/>'
    ]
    for share in (0.0, 0.5, 1.0):
        at = y(top * share / 1.1)
        parts.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end" fill="#777">{_microseconds(top * share / 1.1)}</text>')
    if eager:
        parts.append(f'<path d="M{LEFT} {y(eager):.1f}H{WIDTH - 8}" stroke="#b60" stroke-dasharray="5 4" fill="none"/>')
        parts.append(f'<text x="{WIDTH - 10}" y="{y(eager) - 4:.1f}" text-anchor="end" fill="#b60">PyTorch eager</text>')
    parts += _points(attempts, x, y)
    note = "modelled time" if modelled else "measured time"
    parts.append(f'<text x="{(WIDTH + LEFT) / 2}" y="{HEIGHT - 8}" text-anchor="middle" fill="#777">attempts ({note})</text></svg>')
    return "".join(parts)


def _points(attempts: list[Json], x: Any, y: Any) -> list[str]:
    parts, line, best = [], [], None
    for i, attempt in enumerate(attempts):
        hint = escape(f"{attempt.get('change') or 'attempt'}: {attempt.get('verdict')}")
        time = attempt.get("time_us")
        if time:
            best = time if best is None else min(best, time)
            parts.append(f'<circle cx="{x(i):.1f}" cy="{y(time):.1f}" r="4" fill="#2a7"><title>{hint}, {_microseconds(time)}</title></circle>')
        else:
            parts.append(f'<text x="{x(i):.1f}" y="{HEIGHT - BOTTOM - 4}" text-anchor="middle" fill="#c33">×<title>{hint}</title></text>')
        if best is not None:
            line.append(f"{x(i):.1f},{y(best):.1f}")
    if len(line) > 1:
        parts.insert(0, f'<polyline points="{" ".join(line)}" fill="none" stroke="#2a7" stroke-width="1.5"/>')
    return parts


# ---- progress ------------------------------------------------------------------------------------------


def _notebook() -> Any | None:
    """IPython's display, inside a notebook; a terminal's IPython is a terminal."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or type(shell).__name__ != "ZMQInteractiveShell":
        return None
    from IPython.display import display

    return display


class _Drawing:
    """What a notebook shows while a run goes on."""

    def __init__(self, name: str) -> None:
        self.name, self.stage, self.modelled = name, "", False
        self.attempts: list[Json] = []

    def _repr_html_(self) -> str:
        return f"<div><b>cutegen</b> {escape(self.name)}: {escape(self.stage)}</div>" + _svg(self.attempts, None, self.modelled)


class Progress:
    """One line per attempt on stderr, or a picture that is drawn anew in a notebook. `wanted` None: only in a notebook or a terminal."""

    def __init__(self, name: str, wanted: bool | None) -> None:
        self.name = name
        display = _notebook() if wanted is not False else None
        self.drawing = _Drawing(name) if display else None
        self.handle = display(self.drawing, display_id=True) if display else None
        self.lines = self.handle is None and (wanted or (wanted is None and sys.stderr.isatty()))

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *why: object) -> None:
        if self.drawing is not None and self.handle is not None:
            self.drawing.stage = "done"
            self.handle.update(self.drawing)

    def event(self, event: Json) -> None:
        kind = event.get("event")
        if kind == "stage" and self.drawing is not None:
            self.drawing.stage = str(event.get("text"))
        if kind == "attempt":
            self._attempt(event)
        if self.handle is not None and kind in ("stage", "attempt"):
            self.handle.update(self.drawing)

    def _attempt(self, event: Json) -> None:
        measured, judged = event.get("measurement") or {}, event["judgement"]
        if self.drawing is not None:
            self.drawing.modelled = bool(measured.get("modelled"))
            row = {"change": event.get("change"), "verdict": judged["verdict"], "time_us": measured.get("time_us")}
            self.drawing.attempts.append(row)
        if self.lines:
            print(f"cutegen: {self.name}: {judged['verdict']}: {judged['summary']}  [{event.get('change')}]", file=sys.stderr)


# ---- results -------------------------------------------------------------------------------------------


def optimized_text(made: Optimized) -> str:
    return f"device={made.device}, {made.verdict}"


def optimized_html(made: Optimized) -> str:
    name = escape(type(made.original).__name__)
    mark = "✓" if made.optimized else "–"
    head = f"<div><b>{mark} {name}</b> on {escape(made.device)}: {escape(made.verdict)}</div>"
    return head + "".join(trajectory_svg(o) for o in made.outcomes if o.attempts)


def verdict_html(verdict: Verdict) -> str:
    colour = "#2a7" if verdict.passed else "#c33"
    rows = "".join(f"<li><code>{escape(str(f.get('where')))}</code> {escape(str(f.get('text')))}</li>" for f in verdict.findings)
    advice = f"<div>{escape(verdict.advice)}</div>" if verdict.advice else ""
    return (
        f'<div><b style="color:{colour}">{escape(verdict.kind)}</b> {escape(verdict.summary)}</div>'
        f"{advice}{f'<ul>{rows}</ul>' if rows else ''}"
    )


def runs_html(runs: Runs) -> str:
    head = "".join(f"<th>{name}</th>" for name in COLUMNS)
    body = "".join("<tr>" + "".join(f"<td>{escape(_cell(row.get(name)))}</td>" for name in COLUMNS) + "</tr>" for row in runs)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><div>{len(runs)} of {runs.total} runs</div>"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else str(value)
