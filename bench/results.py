#!/usr/bin/env python3
"""Write docs/results.md from the tables kept in bench/.

    bench/results.py            rewrites docs/results.md
    bench/results.py --check    exits 1 if docs/results.md is not what this writes

A table to show stands in a bench document between two comments:

    <!-- results: TITLE -->
    <!-- results: TITLE | columns 1-5,8 -->      only these columns
    <!-- end -->

The order of documents is that of SOURCES, the order of tables that of the document.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "results.md"
SOURCES = [
    ("Memory-bound kernels on an H200", "bench/gpu/memory.md"),
    ("Matrix products on an H200", "bench/gpu/gemm.md"),
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
            line = re.sub(r"\| (-+)(?= \|)", r"|\1", line).replace(" |-", "|-").replace("- |", "-|")
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


def main() -> int:
    text = page()
    if sys.argv[1:] == ["--check"]:
        if TARGET.read_text() != text:
            print("docs/results.md is not what bench/results.py writes; run it")
            return 1
        return 0
    if sys.argv[1:]:
        sys.exit(__doc__)
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
