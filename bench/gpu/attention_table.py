#!/usr/bin/env python3
"""Rows of attention.py's results as a table.

    bench/gpu/attention_table.py RESULT.json... [-- ROW...]        of several results, the first that has a row counts
"""

import json
import sys
from pathlib import Path

BACKENDS = ("default", "cudnn", "flash", "efficient", "math")


def main() -> None:
    args = sys.argv[1:]
    cut = args.index("--") if "--" in args else len(args)
    rows: dict[str, dict] = {}
    for path in args[:cut]:
        for name, row in json.loads(Path(path).read_text()).items():
            rows.setdefault(name, row)
    print("| attention | ours us | TFLOP/s | " + " us | ".join(BACKENDS) + " us | best of PyTorch / ours | rms error, ours / default |")
    print("|---" * (len(BACKENDS) + 5) + "|")
    for name, row in rows.items():
        if args[cut + 1 :] and name not in args[cut + 1 :]:
            continue
        columns = row["columns"]
        ours = min((c for n, c in columns.items() if n not in BACKENDS), key=lambda c: c["us"])
        theirs = [f"{columns[n]['us']:.1f}" if n in columns else "-" for n in BACKENDS]
        best = min(c["us"] for n, c in columns.items() if n in BACKENDS)
        print(f"| {name} | {ours['us']:.1f} | {ours['tflops']:.0f} | {' | '.join(theirs)} | {best / ours['us']:.2f} "
              f"| {ours['rms']:.1e} / {columns['default']['rms']:.1e} |")


main()
