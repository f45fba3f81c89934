#!/usr/bin/env python3
"""Write docs/results.md from the tables kept in bench/, and what known kernels reach, for prompts.

    bench/results.py            rewrites docs/results.md and peaks/reached.json
    bench/results.py --check    exits 1 if one of them is not what this writes

A table to show stands in a bench document between two comments:

    <!-- results: TITLE -->
    <!-- results: TITLE | columns 1-5,8 -->      only these columns
    <!-- end -->

The order of documents is that of SOURCES, the order of tables that of the document.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "results.md"
SOURCES = [
    ("Memory-bound kernels on an H200", "bench/gpu/memory.md"),
    ("Matrix products on an H200", "bench/gpu/gemm.md"),
    ("Attention on an H200", "bench/gpu/attention.md"),
    ("Convolutions on an H200", "bench/gpu/conv.md"),
    ("From an edit to a verdict", "bench/gpu/results/speed.md"),
    ("Repeatability of times", "bench/gpu/results/timing.md"),
    ("Faulting kernels", "bench/gpu/results/faults.md"),
    ("Exported modules", "bench/gpu/results/export.md"),
    ("Hand-written steps", "bench/gpu/steps.md"),
    ("The loop", "bench/loop/results.md"),
    ("From an edit to a verdict on simt", "bench/loop/edit_to_verdict.md"),
    ("Several products in one task", "bench/gemm_coverage.md"),
    ("simt", "bench/simt/results.md"),
]
REACHED = ROOT / "peaks" / "reached.json"
# Tables with a column "of the limit", and what the tasks of each are. Memory-bound ones are reductions unless named here.
CLASS_OF = {"bench/gpu/memory.md": "reduction", "bench/gpu/gemm.md": "gemm"}
POINTWISE = (
    "relu leaky_relu sigmoid tanh gelu gelu_tanh selu hard_sigmoid softplus elu hard_tanh swish softsign rope matrix-scalar"
).split() + ["diag(A) @ B, 4096"]
HEAD = """# Results

Measured tables, copied from `bench/` by `bench/results.py`; do not edit this page. Each source says on which machine,
when and by which command its tables were measured, and what falls short.
"""
WIDTH = 120


def columns_of(spec: str) -> list[int]:
    """Zero-based columns of "1-3,5"."""
    wanted: list[int] = []
    for part in spec.split(","):
        first, _, last = part.partition("-")
        wanted += range(int(first) - 1, int(last or first))
    return wanted


def select(table: str, spec: str | None) -> str:
    if spec is None:
        return table
    wanted = columns_of(spec)
    lines = []
    for line in table.splitlines():
        if line.startswith("|"):
            cells = line.strip().strip("|").split("|")
            line = "| " + " | ".join(cells[i].strip() for i in wanted if i < len(cells)) + " |"
            if set(line) <= set("| -"):
                line = line.replace(" ", "")
        lines.append(line)
    return "\n".join(lines)


def tables_of(path: str) -> list[tuple[str, str]]:
    """(title, Markdown) of every marked table of a document."""
    text = (ROOT / path).read_text()
    opened = len(re.findall(r"^<!-- results:", text, re.M))
    found = re.findall(r"^<!-- results: (.*?)(?: \| columns ([\d,-]+))? -->\n(.*?)^<!-- end -->$", text, re.M | re.S)
    if len(found) != opened:
        sys.exit(f"results.py: {path}: {opened} tables begin, {len(found)} end; each needs a <!-- end -->")
    if not found:
        sys.exit(f"results.py: {path}: no <!-- results: TITLE --> in it")
    return [(title, select(body.strip(), spec or None)) for title, spec, body in found]


def page() -> str:
    parts = [HEAD]
    for title, path in SOURCES:
        parts.append(f"\n## {title}\n\nFrom `{path}`.\n")
        for name, table in tables_of(path):
            parts.append(f"\n### {name}\n\n{table}\n")
    text = "".join(parts)
    for line in text.splitlines():
        if len(line) > WIDTH:
            sys.exit(f"results.py: over {WIDTH} characters, give its table a list of columns: {line[:60]}")
    return text


def limits_of(path: str) -> list[tuple[str, str, float]]:
    """(class, task, fraction of the floor) of every row that has one."""
    rows = []
    for _, table in tables_of(path):
        lines = [[c.strip() for c in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("|")]
        if "of the limit" not in lines[0]:
            continue
        at = lines[0].index("of the limit")
        for cells in lines[2:]:
            figure = re.fullmatch(r"([\d.]+)( %)?", cells[at])
            if figure:
                plain = re.sub(r"_b?f16$", "", cells[0])
                of = "pointwise" if plain in POINTWISE else CLASS_OF[path]
                rows.append((of, cells[0], float(figure[1]) / (100 if figure[2] else 1)))
    return rows


def reached() -> str:
    """By class: the best, its task, the median and of how many. A floor is what nothing is below: at most 1."""
    rows = [row for path in CLASS_OF for row in limits_of(path)]
    classes = {}
    for name in ("pointwise", "reduction", "gemm"):
        mine = [(part, task) for of, task, part in rows if of == name]
        best, task = max(mine)
        median = statistics.median(part for part, _ in mine)
        classes[name] = {"tasks": len(mine), "best": min(best, 1), "task": task, "median": round(min(median, 1), 3)}
    return json.dumps({"device": "an NVIDIA H200", "source": "docs/results.md", "classes": classes}, indent=2) + "\n"


def main() -> int:
    written = {TARGET: page(), REACHED: reached()}
    if sys.argv[1:] == ["--check"]:
        stale = [path for path, text in written.items() if not path.exists() or path.read_text() != text]
        for path in stale:
            print(f"{path.relative_to(ROOT)} is not what bench/results.py writes; run it")
        return bool(stale)
    if sys.argv[1:]:
        sys.exit(__doc__)
    for path, text in written.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
