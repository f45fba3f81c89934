#!/usr/bin/env python3
"""Results of attention.py, attention_blocks.py and attention_checks.py as the tables of attention.md.

    bench/gpu/attention_table.py RESULT.json... [-- ROW...]        of several results, the first that has a row counts
"""

import json
import sys
from pathlib import Path

BACKENDS = ("default", "cudnn", "flash", "efficient", "math", "compile", "flex")
CHECKED = ("ours", "cudnn", "flash", "efficient", "math")


def heading(*titles: str) -> None:
    print("\n| " + " | ".join(titles) + " |\n" + "|---" * len(titles) + "|")


def attentions(rows: dict[str, dict]) -> None:
    heading("attention", "ours us", "TFLOP/s", *(f"{n} us" for n in BACKENDS), "best of PyTorch / ours", "rms error, ours / default", "MHz, W")
    for name, row in rows.items():
        columns = row["columns"]
        ours = min((c for n, c in columns.items() if n not in BACKENDS), key=lambda c: c["us"])
        theirs = [f"{columns[n]['us']:.1f}" if n in columns else "-" for n in BACKENDS]
        best = min(c["us"] for n, c in columns.items() if n in BACKENDS)
        clock, _, power, _ = row["clocks"].split(", ")
        print(f"| {name} | {ours['us']:.1f} | {ours['tflops']:.0f} | {' | '.join(theirs)} | {best / ours['us']:.3f} "
              f"| {ours['rms']:.1e} / {columns['default']['rms']:.1e} | {clock}, {float(power):.0f} |")


def decodings(rows: dict[str, dict]) -> None:
    heading("decoding", "ours us", *(f"{n} us" for n in BACKENDS[:3]), "best of PyTorch / ours", "share of the floor, ours / best", "rms error, ours / default")
    for name, row in rows.items():
        columns = row["columns"]
        ours = min((c for n, c in columns.items() if n not in BACKENDS), key=lambda c: c["us"])
        best = min((c for n, c in columns.items() if n in BACKENDS), key=lambda c: c["us"])
        theirs = [f"{columns[n]['us']:.1f}" if n in columns else "-" for n in BACKENDS[:3]]
        print(f"| {name} | {ours['us']:.1f} | {' | '.join(theirs)} | {best['us'] / ours['us']:.3f} | {ours['floor']:.3f} / {best['floor']:.3f} "
              f"| {ours['rms']:.1e} / {columns['default']['rms']:.1e} |")


def blocks(rows: dict[str, dict]) -> None:
    heading("block", "ours us", "split us", "eager us", "torch.compile us", "eager / best of ours", "rms error, ours / split / eager")
    for name, row in rows.items():
        us = {c: f"{row[c]['us']:.1f}" if c in row else "-" for c in ("ours", "split", "eager", "compile")}
        rms = [f"{row[c]['rms']:.1e}" if c in row else "-" for c in ("ours", "split", "eager")]
        best = min(row[c]["us"] for c in ("ours", "split") if c in row)
        print(f"| {name} | {' | '.join(us.values())} | {row['eager']['us'] / best:.2f} | {' / '.join(rms)} |")
    if "qkv" in rows and "product" in rows:
        # What a block takes longer than its product alone, each of PyTorch's and of ours; asked is 4.0.
        product, whole = rows["product"], rows["qkv"]
        behind = {c: whole[c]["us"] - product["eager" if c == "eager" else "ours"]["us"] for c in ("ours", "split", "eager") if c in whole}
        heading("attention behind its product, D96 S512 causal", "us", "eager / it")
        for column, us in behind.items():
            print(f"| {column} | {us:.1f} | {behind['eager'] / us:.2f} |")


def checks(found: dict[str, dict]) -> None:
    heading("errors, max / rms", *CHECKED)
    for name, row in found.get("errors", {}).items():
        cells = [f"{row[n]['max']:.1e} / {row[n]['rms']:.2e}" if n in row else "-" for n in CHECKED]
        print(f"| {name} | {' | '.join(cells)} |")
    for name, row in found.get("repeats", {}).items():
        print(f"{name}: {row['runs']} runs, {row['different']} different")


def main() -> None:
    args = sys.argv[1:]
    cut = args.index("--") if "--" in args else len(args)
    rows: dict[str, dict] = {}
    whole: dict[str, dict] = {}
    for path in args[:cut]:
        result = json.loads(Path(path).read_text())
        if "errors" in result or "repeats" in result:
            checks(result)
            continue
        for name, row in result.items():
            (rows if "columns" in row else whole).setdefault(name, row)
    wanted = args[cut + 1 :]
    shown = {n: r for n, r in rows.items() if not wanted or n in wanted}
    whole_rows = {n: r for n, r in shown.items() if "floor" not in r["columns"]["default"]}
    if whole_rows:
        attentions(whole_rows)
    if len(whole_rows) < len(shown):
        decodings({n: r for n, r in shown.items() if n not in whole_rows})
    if whole:
        blocks({n: r for n, r in whole.items() if "ours" in r and "eager" in r})


main()
